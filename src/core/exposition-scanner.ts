import { CORE } from './core-names.js';
import { InputBytes } from './input-bytes.js';
import type { CoreInstance } from './memory.js';

/** One metric to read from a metrics page. */
export interface WantedMetric {
  /** The sample's name, matched exactly. 1 to 1,024 bytes. */
  readonly name: string;
  /** Labels that must all match; an empty value also matches a series without the label. At most 8. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /**
   * Way to combine several series: their sum, the largest value, the labels of the series with the largest value, or
   * the distinct names of the comma lists in the labels of all series (`set-names`: of those with a value above 0).
   */
  readonly aggregate: 'sum' | 'max' | 'latest-labels' | 'names' | 'set-names';
  /** With `latest-labels`, `names` and `set-names`: the labels whose values are read. At most 8. */
  readonly wantLabels?: readonly string[] | undefined;
}

/** Values of the wanted metrics on a page, in the order of the query. */
export interface ExpositionResult {
  /** Whether any series with a finite value matched. */
  readonly found: readonly boolean[];
  /** Sum or maximum of the finite sample values; NaN when not found. */
  readonly values: Float64Array;
  /**
   * With `latest-labels`: the wanted label values, '' for a label that the series lacks. With `names`: one text, the
   * names with a comma between two. Undefined when not found.
   */
  readonly labels: readonly (readonly string[] | undefined)[];
  /**
   * Lines of wanted metrics that could not be used as a whole: malformed, longer than 512 KiB, or with more than 512
   * names.
   */
  readonly unusable: number;
}

const DEFAULT_PAGE_BYTES = 16 << 20;
const NAME_BYTES_MAX = 1024;
const encoder = new TextEncoder();

/**
 * Reads the wanted metrics from Prometheus or OpenMetrics text, fed in any pieces.
 *
 * At most one per thread and core, and one page at a time: its memory is a part of the thread's shared memory. Values
 * that are NaN or infinite count as unknown.
 */
export class ExpositionScanner {
  readonly #core: CoreInstance;
  readonly #at: number;
  readonly #input: InputBytes;
  readonly #pieceBytes: number;
  readonly #text: Buffer;
  /** Query number by its JSON, so that equal queries share one. */
  readonly #numbers = new Map<string, number>();
  readonly #queries: (readonly WantedMetric[])[] = [];
  #query: readonly WantedMetric[] | undefined;
  #bytesLeft = 0;

  constructor(core: CoreInstance) {
    this.#core = core;
    this.#at = core.call.scrapeAddress() >>> 0;
    this.#input = new InputBytes(core);
    this.#pieceBytes = CORE.THREAD_INPUT_BYTES;
    this.#text = Buffer.from(core.memory.buffer as unknown as ArrayBuffer);
  }

  /**
   * Prepares a query; an equal one gets the same number.
   * @returns its number for `begin`.
   * @throws RangeError naming the bound when the query is too large or there are too many.
   */
  compile(wanted: readonly WantedMetric[]): number {
    const key = JSON.stringify(wanted);
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const number = this.#queries.length;
    if (number === CORE.SCRAPE_QUERIES)
      throw new RangeError(`more than ${number} different metric queries: use fewer engine configurations`);
    const address = this.#at + CORE.SCRAPE_QUERY_LIST + number * CORE.QUERY_BYTES;
    writeQuery(this.#core, address, wanted);
    this.#queries.push(structuredClone(wanted));
    this.#numbers.set(key, number);
    return number;
  }

  /**
   * Replaces a query, for pages whose wanted metrics change each time.
   * @param query a number from `compile` that no other caller uses.
   * @throws RangeError as `compile`.
   */
  recompile(query: number, wanted: readonly WantedMetric[]): void {
    const before = this.#queries[query];
    if (before === undefined) throw new RangeError(`there is no metric query ${query}`);
    writeQuery(this.#core, this.#at + CORE.SCRAPE_QUERY_LIST + query * CORE.QUERY_BYTES, wanted);
    this.#numbers.delete(JSON.stringify(before));
    this.#queries[query] = wanted;
  }

  /**
   * Begins a page; an unfinished page is dropped.
   * @param query a number from `compile`.
   * @param pageBytes bound on the page.
   * @throws RangeError when there is no such query.
   */
  begin(query: number, pageBytes: number = DEFAULT_PAGE_BYTES): void {
    const wanted = this.#queries[query];
    if (!wanted) throw new RangeError(`there is no metric query ${query}`);
    this.#query = wanted;
    this.#bytesLeft = pageBytes;
    this.#core.call.scrapeBegin(query);
  }

  /**
   * Reads the page's next bytes.
   * @throws RangeError when the page is longer than `begin` allowed; the page has ended then.
   */
  feed(chunk: Uint8Array): void {
    if (!this.#query) throw new RangeError('no metrics page is open: call begin first');
    this.#bytesLeft -= chunk.length;
    if (this.#bytesLeft < 0) {
      this.#query = undefined;
      throw new RangeError('the metrics page is longer than allowed: raise the page limit');
    }
    for (let at = 0; at < chunk.length; at += this.#pieceBytes) {
      const piece = chunk.length <= this.#pieceBytes ? chunk : chunk.subarray(at, at + this.#pieceBytes);
      this.#input.write(piece);
      this.#core.call.scrapeFeed(piece.length);
    }
  }

  /**
   * Ends the page.
   * @throws RangeError when none is open.
   */
  end(): ExpositionResult {
    const query = this.#query;
    if (!query) throw new RangeError('no metrics page is open: call begin first');
    this.#query = undefined;
    const { call, u32, f64 } = this.#core;
    call.scrapeEnd();
    const values = new Float64Array(query.length).fill(Number.NaN);
    const found: boolean[] = [];
    const labels: (readonly string[] | undefined)[] = [];
    let capture = 0;
    for (const [i, metric] of query.entries()) {
      const at = this.#at + CORE.SCRAPE_RESULTS + i * CORE.SCRAPE_RESULT_BYTES;
      const isFound = u32[(at + CORE.SCRAPE_RESULT_FOUND) >>> 2] === 1;
      found.push(isFound);
      if (isFound) values[i] = f64[(at + CORE.SCRAPE_RESULT_VALUE) >>> 3]!;
      const kept = keptTexts(metric);
      labels.push(isFound && kept !== undefined ? this.#labels(at, kept, capture) : undefined);
      if (kept !== undefined) capture++;
    }
    return { found, values, labels, unusable: u32[(this.#at + CORE.SCRAPE_UNUSABLE) >>> 2]! };
  }

  #labels(result: number, count: number, capture: number): string[] {
    const { u32 } = this.#core;
    const base = this.#at + CORE.SCRAPE_CAPTURES + capture * CORE.SCRAPE_CAPTURE_BYTES;
    return Array.from({ length: count }, (_, i) => {
      const range = result + CORE.SCRAPE_RESULT_LABELS + i * CORE.SCRAPE_RANGE_BYTES;
      const start = base + u32[range >>> 2]!;
      return this.#text.toString('utf8', start, start + u32[(range + CORE.SCRAPE_RANGE_LENGTH) >>> 2]!);
    });
  }
}

/** Writes a query into the core's memory at `address` (layout: assembly/scrape/layout.ts). */
function writeQuery(core: CoreInstance, address: number, wanted: readonly WantedMetric[]): void {
  const { view } = core;
  atMost('metrics', wanted.length, CORE.QUERY_METRICS);
  const labelMetrics = wanted.filter((metric) => keptTexts(metric) !== undefined).length;
  atMost('metrics whose labels are wanted', labelMetrics, CORE.QUERY_LABEL_METRICS);
  const text = new QueryText(CORE.QUERY_TEXT_BYTES);
  let capture = 0;
  for (const [i, metric] of wanted.entries()) {
    const at = address + CORE.QUERY_METRIC_LIST + i * CORE.QUERY_METRIC_BYTES;
    writeMetric(core, at, metric, text);
    view.setUint32(at + CORE.METRIC_CAPTURE, capture, true);
    if (keptTexts(metric) !== undefined) capture++;
  }
  core.bytes.set(text.bytes, address + CORE.QUERY_TEXT);
  view.setUint32(address + CORE.QUERY_COUNT, wanted.length, true);
}

const aggregates = {
  sum: CORE.AGGREGATE_SUM,
  max: CORE.AGGREGATE_MAX,
  'latest-labels': CORE.AGGREGATE_LATEST_LABELS,
  names: CORE.AGGREGATE_NAMES,
  'set-names': CORE.AGGREGATE_SET_NAMES,
} as const;

/** Texts that a page leaves in the metric's capture; undefined = its labels are not read. */
function keptTexts({ aggregate, wantLabels }: WantedMetric): number | undefined {
  if (aggregate === 'names' || aggregate === 'set-names') return 1;
  return aggregate === 'latest-labels' ? (wantLabels?.length ?? 0) : undefined;
}

function writeMetric({ view, bytes }: CoreInstance, at: number, metric: WantedMetric, text: QueryText): void {
  const name = encoder.encode(metric.name);
  if (name.length === 0 || name.length > NAME_BYTES_MAX)
    throw new RangeError(`the metric name "${metric.name.slice(0, 40)}" must have 1 to ${NAME_BYTES_MAX} bytes`);
  const matchers = Object.entries(metric.labels ?? {});
  const wantLabels = keptTexts(metric) === undefined ? [] : (metric.wantLabels ?? []);
  atMost(`labels of ${metric.name} to match`, matchers.length, CORE.METRIC_MATCHERS);
  atMost(`wanted labels of ${metric.name}`, wantLabels.length, CORE.METRIC_LABELS);
  const put = (word: number, value: number) => view.setUint32(at + word, value, true);
  const head = Math.min(8, name.length);
  bytes.fill(0, at, at + CORE.QUERY_METRIC_BYTES);
  bytes.set(name.subarray(0, head), at + CORE.METRIC_HEAD);
  bytes.fill(0xff, at + CORE.METRIC_HEAD_MASK, at + CORE.METRIC_HEAD_MASK + head);
  put(CORE.METRIC_NAME, text.put([name]));
  put(CORE.METRIC_NAME_BYTES, name.length);
  put(CORE.METRIC_AGGREGATE, aggregates[metric.aggregate]);
  put(CORE.METRIC_MATCHER_COUNT, matchers.length);
  put(CORE.METRIC_MATCHER_LIST, text.put(matchers.flatMap(([label, value]) => counted(label, value))));
  put(CORE.METRIC_LABEL_COUNT, wantLabels.length);
  put(CORE.METRIC_LABEL_LIST, text.put(wantLabels.flatMap((label) => counted(label))));
  put(
    CORE.METRIC_ABSENT_MATCH,
    matchers.reduce((bits, [, value], i) => (value === '' ? bits | (1 << i) : bits), 0),
  );
}

function atMost(what: string, count: number, bound: number): void {
  if (count > bound) throw new RangeError(`a metric query may have at most ${bound} ${what}, not ${count}`);
}

/** The lengths of the texts as 16-bit numbers, then the texts. */
function counted(...texts: readonly string[]): Uint8Array[] {
  const encoded = texts.map((text) => encoder.encode(text));
  return [new Uint8Array(Uint16Array.from(encoded, (text) => text.length).buffer), ...encoded];
}

/** The names and values of a query, concatenated. */
class QueryText {
  readonly #room: Uint8Array;
  #used = 0;

  constructor(bytes: number) {
    this.#room = new Uint8Array(bytes);
  }

  get bytes(): Uint8Array {
    return this.#room.subarray(0, this.#used);
  }

  /** Appends; returns the offset of the first byte. */
  put(parts: readonly Uint8Array[]): number {
    const offset = this.#used;
    for (const part of parts) {
      if (this.#used + part.length > this.#room.length)
        throw new RangeError(`the names and labels of a metric query may have at most ${this.#room.length} bytes`);
      this.#room.set(part, this.#used);
      this.#used += part.length;
    }
    return offset;
  }
}
