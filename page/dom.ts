import { renewChildren } from './renew.ts';

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

/**
 * Gives an element another content. Nodes that stay are kept; when the focused control goes, the one that takes its
 * place gets the focus.
 */
export function show(id: string, ...children: readonly Child[]): void {
  const place = byId(id);
  const focused = document.activeElement;
  const position = focused !== null && place.contains(focused) ? controlsOf(place).indexOf(focused) : -1;
  renewChildren(
    place,
    children
      .filter((child) => child !== null && child !== undefined)
      .map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))),
  );
  if (position < 0 || place.contains(document.activeElement)) return;
  const left = controlsOf(place);
  (left[Math.min(position, left.length - 1)] as HTMLElement | undefined)?.focus({ preventScroll: true });
}

function controlsOf(place: Element): Element[] {
  return [...place.querySelectorAll('button, select, summary, [tabindex="0"]')];
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

/** Further properties of the rows of a table. */
export interface RowOptions<Row> {
  readonly classOf?: (row: Row) => string;
  /** Names a row for as long as it is shown, wherever it stands. */
  readonly keyOf?: (row: Row) => string;
}

/** A table whose first column heads its rows. @param name what it shows; `caption` is shown, too */
export function table<Row>(
  name: string | { readonly caption: string },
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { classOf = () => '', keyOf }: RowOptions<Row> = {},
): HTMLElement {
  const caption = typeof name === 'string' ? undefined : name.caption;
  const classes = ({ number, wide }: Column<Row>) => [number ? 'number' : '', wide ? 'wide-only' : ''].join(' ').trim();
  const head = h('tr', {}, ...columns.map((column) => h('th', { scope: 'col', class: classes(column) }, column.head)));
  const body = rows.map((row) =>
    h(
      'tr',
      { class: classOf(row), 'data-key': keyOf?.(row) },
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
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption ?? String(name) }, whole);
}

/** A share of 0 to 1 as a bar with its number; null = unknown. */
export function level(value: number | null, text: string, what: string): Child {
  if (value === null) return unknown();
  return h('span', {}, h('meter', { min: 0, max: 1, value: Math.min(1, value), 'aria-label': what }), text);
}

export function unknown(): HTMLElement {
  return h('span', { class: 'dim' }, 'unknown');
}
