import { setImmediate as nextTurn } from 'node:timers/promises';

/** A page of metrics in the text format of Prometheus, in pieces. */
export interface MetricsText {
  pieces(): AsyncIterable<string>;
}

/** A metric: its HELP and TYPE lines, and its series. */
interface Family {
  readonly head: string[];
  readonly series: string[];
}

/** Longest work on a page in one turn of the event loop. */
const SLICE_MS = 8;

/**
 * Divides the work on a page into turns of the event loop. One turn for each piece would have a page wait for as many
 * turns as it has pieces, and in a flood of events each turn is long.
 */
export class PageSlice {
  #endsAt = performance.now() + SLICE_MS;

  /** Waits for the next turn when the share of this one is used up. Called after each piece. */
  async share(): Promise<void> {
    if (performance.now() < this.#endsAt) return;
    await nextTurn();
    this.#endsAt = performance.now() + SLICE_MS;
  }
}

/** Bytes after which a piece of the merged page is sent. */
const PIECE_BYTES = 32 * 1024;

/**
 * The metrics of the process and of its pools as one page. A metric stands there once, as the format asks for; every
 * series of a pool has the label `pool` in front of its others.
 * @param own page whose series get no label
 * @param pools pages by the names of their pools
 */
export async function* mergedPages(own: MetricsText, pools: ReadonlyMap<string, MetricsText>): AsyncGenerator<string> {
  if (pools.size === 0) {
    yield* own.pieces();
    return;
  }
  const families = new Map<string, Family>();
  const slice = new PageSlice();
  await collect(families, own, undefined, slice);
  for (const [name, page] of pools) await collect(families, page, `pool="${name}"`, slice);
  let piece = '';
  for (const { head, series } of families.values()) {
    piece += `${[...head, ...series].join('\n')}\n`;
    if (piece.length < PIECE_BYTES) continue;
    yield piece;
    piece = '';
  }
  if (piece !== '') yield piece;
}

async function collect(
  families: Map<string, Family>,
  page: MetricsText,
  label: string | undefined,
  slice: PageSlice,
): Promise<void> {
  let family: Family | undefined;
  let rest = '';
  for await (const piece of page.pieces()) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop()!;
    for (const line of lines) family = take(families, family, line, label);
    await slice.share();
  }
  if (rest !== '') take(families, family, rest, label);
}

function take(
  families: Map<string, Family>,
  family: Family | undefined,
  line: string,
  label: string | undefined,
): Family | undefined {
  if (line === '') return family;
  if (!line.startsWith('# ')) {
    family?.series.push(label === undefined ? line : labelled(line, label));
    return family;
  }
  const name = line.split(' ', 3)[2]!;
  const known = families.get(name);
  if (known !== undefined && !line.startsWith('# TYPE')) return known;
  if (known === undefined) {
    const added = { head: [line], series: [] };
    families.set(name, added);
    return added;
  }
  if (!known.head.some((text) => text.startsWith('# TYPE'))) known.head.push(line);
  return known;
}

/** A series with one label more. */
function labelled(line: string, label: string): string {
  const open = line.indexOf('{');
  const blank = line.indexOf(' ');
  if (open < 0 || blank < open) return `${line.slice(0, blank)}{${label}}${line.slice(blank)}`;
  return `${line.slice(0, open + 1)}${label},${line.slice(open + 1)}`;
}
