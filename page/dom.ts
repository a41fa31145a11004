type Child = Node | string | number | null | undefined;
type Attributes = Readonly<Record<string, string | number | boolean | ((event: Event) => void) | undefined>>;

/** Makes an element; text never becomes markup. An attribute that is a function listens to the event of its name. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children)
    if (child !== null && child !== undefined)
      element.append(String(child) === child ? child : child instanceof Node ? child : String(child));
  return element;
}

export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no #${id}`);
  return element;
}

/** Replaces the content of an element. A focused control is given its focus back by its `data-key`. */
export function show(id: string, ...children: readonly Child[]): void {
  const place = byId(id);
  const focused = document.activeElement;
  const key = focused instanceof HTMLElement && place.contains(focused) ? focused.dataset.key : undefined;
  const scroll = place.querySelector('.scroll')?.scrollLeft ?? 0;
  place.replaceChildren(
    ...children
      .filter((child) => child !== null && child !== undefined)
      .map((child) => (child instanceof Node ? child : String(child))),
  );
  const table = place.querySelector('.scroll');
  if (table !== null && scroll > 0) table.scrollLeft = scroll;
  if (key !== undefined) place.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

export function empty(text: string): HTMLElement {
  return h('p', { class: 'empty-text' }, text);
}

/** A column of a table. */
export interface Column<Row> {
  readonly head: string;
  readonly number?: boolean;
  /** Left out on small screens. */
  readonly wide?: boolean;
  readonly cell: (row: Row) => Child;
}

/** A table whose first column heads its rows. */
export function table<Row>(
  caption: string | undefined,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  rowClass: (row: Row) => string = () => '',
): HTMLElement {
  const classes = ({ number, wide }: Column<Row>) => [number ? 'number' : '', wide ? 'wide-only' : ''].join(' ').trim();
  const head = h('tr', {}, ...columns.map((column) => h('th', { scope: 'col', class: classes(column) }, column.head)));
  const body = rows.map((row) =>
    h(
      'tr',
      { class: rowClass(row) },
      ...columns.map((column, i) =>
        i === 0
          ? h('th', { scope: 'row', class: `name ${classes(column)}` }, column.cell(row))
          : h('td', { class: classes(column) }, column.cell(row)),
      ),
    ),
  );
  const whole = h(
    'table',
    {},
    caption === undefined ? null : h('caption', {}, caption),
    h('thead', {}, head),
    h('tbody', {}, ...body),
  );
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption ?? 'table' }, whole);
}

/** A share of 0 to 1 as a bar with its number; null = unknown. */
export function level(value: number | null, text: string, what: string): Child {
  if (value === null) return unknown();
  return h('span', {}, h('meter', { min: 0, max: 1, value: Math.min(1, value), 'aria-label': what }), text);
}

export function unknown(): HTMLElement {
  return h('span', { class: 'dim' }, 'unknown');
}
