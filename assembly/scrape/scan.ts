// The metrics scanner: raw Prometheus or OpenMetrics text in, only the wanted families out.
//
// Owns: this thread's metrics scanner (layout.ts); its own thread only, no lock; one page at a time.
//
// A page is hundreds of histogram buckets and a handful of wanted lines, so a line whose first eight bytes begin no
// wanted name is passed over without being read. A line that a piece cuts is carried in the line buffer.
import { ASSERTIONS } from '../assertions';
import { INPUT, RESPONSE_REGION, SCANS } from '../memory';
import { fitsInput } from '../preconditions';
import { responseRegionBytes } from '../response/layout';
import { blanksEnd, copyLabel, labelsBegin, labelsMatch, rangeOf, readLabels } from './labels';
import {
  AGGREGATE_LATEST_LABELS,
  AGGREGATE_NAMES,
  AGGREGATE_SET_NAMES,
  AGGREGATE_SUM,
  QUERY_BYTES,
  QUERY_METRIC_BYTES,
  QUERY_METRIC_LIST,
  QUERY_TEXT,
  SCRAPE_CAPTURE_BYTES,
  SCRAPE_CAPTURES,
  SCRAPE_LABEL_RANGES,
  SCRAPE_LINE,
  SCRAPE_LINE_BYTES,
  SCRAPE_QUERIES,
  SCRAPE_QUERY_LIST,
  SCRAPE_RESULT_BYTES,
  SCRAPE_RESULT_LABELS,
  SCRAPE_RESULTS,
} from './layout';
import { addNames, namesBegin } from './names';
import { NUMBER, NUMBER_BAD, NUMBER_FINITE, parseNumber } from './number';
import { Metric, MetricResult, MetricsScan, Query } from './scan-state';

// Registers of the scan under way; set at the start of every call.
let SCRAPE: usize = 0;
let TEXT: usize = 0; // the query's text
let METRICS: usize = 0; // its first metric
let METRICS_END: usize = 0;

/** Address of this thread's metrics scanner. */
export function scrapeAddress(): usize {
  return RESPONSE_REGION + <usize>responseRegionBytes(SCANS);
}

function page(): MetricsScan {
  return changetype<MetricsScan>(SCRAPE);
}

function enter(): void {
  SCRAPE = scrapeAddress();
  const query = SCRAPE + SCRAPE_QUERY_LIST + <usize>page().query * QUERY_BYTES;
  TEXT = query + QUERY_TEXT;
  METRICS = query + QUERY_METRIC_LIST;
  METRICS_END = METRICS + <usize>changetype<Query>(query).count * QUERY_METRIC_BYTES;
}

/** Begins a page, to be read for query `query`. */
export function scrapeBegin(query: u32): void {
  if (ASSERTIONS) assert(query < SCRAPE_QUERIES, 'the query is one of the thread');
  SCRAPE = scrapeAddress();
  page().query = query;
  page().skipping = 0;
  page().carried = 0;
  page().unusable = 0;
  namesBegin(SCRAPE);
  enter();
  memory.fill(SCRAPE + SCRAPE_RESULTS, 0, ((METRICS_END - METRICS) / QUERY_METRIC_BYTES) * SCRAPE_RESULT_BYTES);
}

/** Reads the page's next `length` bytes, which stand at INPUT. */
export function scrapeFeed(length: u32): void {
  if (ASSERTIONS) assert(fitsInput(length), 'the bytes fit into the input of the thread');
  enter();
  const end = INPUT + length;
  let p = INPUT;
  if ((page().carried | page().skipping) != 0) p = finishLine(p, end);
  while (p < end) {
    const line = lineEnd(p, end);
    if (line == end) {
      carry(p, end);
      return;
    }
    if (mayMatter(p)) readLine(p, line);
    p = line + 1;
  }
}

/** Ends the page; its last line may lack its end. */
export function scrapeEnd(): void {
  enter();
  if (ASSERTIONS) assert(page().query < SCRAPE_QUERIES, 'a page was begun');
  const carried = <usize>page().carried;
  if (carried != 0) readLine(SCRAPE + SCRAPE_LINE, SCRAPE + SCRAPE_LINE + carried);
  page().carried = 0;
  page().skipping = 1;
}

/** The rest of a line that an earlier piece began. */
function finishLine(p: usize, end: usize): usize {
  const line = lineEnd(p, end);
  if (page().skipping == 0) carry(p, line);
  if (line == end) return end;
  const carried = <usize>page().carried;
  if (carried != 0) readLine(SCRAPE + SCRAPE_LINE, SCRAPE + SCRAPE_LINE + carried);
  page().carried = 0;
  page().skipping = 0;
  return line + 1;
}

/**
 * Puts a part of a line into the line buffer; a line that does not fit is passed over, and counted if it was wanted.
 */
function carry(p: usize, end: usize): void {
  const carried = <usize>page().carried;
  const buffer = SCRAPE + SCRAPE_LINE;
  if (carried + (end - p) <= SCRAPE_LINE_BYTES) {
    memory.copy(buffer + carried, p, end - p);
    page().carried = <u32>(carried + (end - p));
    if (ASSERTIONS) assert(<usize>page().carried <= SCRAPE_LINE_BYTES, 'the beginning of a line fits into its buffer');
    return;
  }
  page().carried = 0;
  page().skipping = 1;
  const name = blanksEnd(buffer, buffer + carried);
  for (let at = METRICS; at < METRICS_END; at += QUERY_METRIC_BYTES) {
    const metric = changetype<Metric>(at);
    if (isNamed(metric, name, buffer + carried)) unusable();
  }
}

function unusable(): void {
  page().unusable += 1;
}

/** Address of the first LF in [p, end), else `end`. */
function lineEnd(start: usize, end: usize): usize {
  const feeds = i8x16.splat(0x0a);
  for (let p = start; p < end; p += 16) {
    const bits = i8x16.bitmask(i8x16.eq(v128.load(p), feeds));
    if (bits != 0) return min(p + <usize>ctz(bits), end);
  }
  return end;
}

/** Whether the line at `p` may be a wanted one: it begins like one of the names, or with a blank. */
function mayMatter(p: usize): bool {
  const head = load<u64>(p);
  for (let at = METRICS; at < METRICS_END; at += QUERY_METRIC_BYTES) {
    const metric = changetype<Metric>(at);
    if ((head & metric.headMask) == metric.head) return true;
  }
  return (head & 0xff) == 0x20 || (head & 0xff) == 0x09;
}

function readLine(start: usize, lineFeed: usize): void {
  const end = lineFeed > start && load<u8>(lineFeed - 1) == 0x0d ? lineFeed - 1 : lineFeed;
  const name = blanksEnd(start, end);
  for (let at = METRICS; at < METRICS_END; at += QUERY_METRIC_BYTES) {
    const metric = changetype<Metric>(at);
    if (isNamed(metric, name, end)) readSample(metric, name + metric.nameBytes, end);
  }
}

/** Whether the name at `p` is the metric's, whole. */
function isNamed(metric: Metric, p: usize, end: usize): bool {
  const n = <usize>metric.nameBytes;
  if (p + n > end || memory.compare(p, TEXT + metric.name, n) != 0) return false;
  if (p + n == end) return true;
  const c = <u32>load<u8>(p + n);
  return c == 0x7b || c == 0x20 || c == 0x09;
}

/** Reads labels and value; skips a timestamp or an exemplar behind them. */
function readSample(metric: Metric, behindName: usize, end: usize): void {
  labelsBegin(metric, TEXT, SCRAPE + SCRAPE_LABEL_RANGES);
  let p = blanksEnd(behindName, end);
  if (p < end && load<u8>(p) == 0x7b) p = readLabels(metric, p + 1, end);
  if (p == 0) {
    unusable();
    return;
  }
  if (!labelsMatch(metric)) return;
  p = blanksEnd(p, end);
  let q = p;
  while (q < end && load<u8>(q) != 0x20 && load<u8>(q) != 0x09) q++;
  const outcome = parseNumber(p, q);
  if (outcome == NUMBER_BAD) unusable();
  else if (outcome == NUMBER_FINITE) addSample(metric, NUMBER);
}

function addSample(metric: Metric, value: f64): void {
  const number = (changetype<usize>(metric) - METRICS) / QUERY_METRIC_BYTES;
  const result = changetype<MetricResult>(SCRAPE + SCRAPE_RESULTS + number * SCRAPE_RESULT_BYTES);
  const first = result.found == 0;
  const aggregate = metric.aggregate;
  const known = result.value;
  if (aggregate == AGGREGATE_SUM) {
    const sum = first ? value : known + value;
    if (abs(sum) == Infinity) {
      unusable();
      return;
    }
    result.value = sum;
  } else if (aggregate == AGGREGATE_NAMES || aggregate == AGGREGATE_SET_NAMES) {
    const counts = aggregate == AGGREGATE_NAMES || value > 0;
    if (counts && !addNames(SCRAPE, metric, result)) unusable();
    result.value = first ? value : max(known, value);
  } else if (first || value > known) {
    if (aggregate == AGGREGATE_LATEST_LABELS && !captureLabels(metric, result)) {
      unusable();
      return;
    }
    result.value = value;
  }
  result.found = 1;
}

/** Keeps the wanted labels of the line being read; false when they do not fit. */
function captureLabels(metric: Metric, result: MetricResult): bool {
  const ranges = SCRAPE + SCRAPE_LABEL_RANGES;
  const count = <usize>metric.labelCount;
  let bytes: usize = 0;
  for (let i: usize = 0; i < count; i++) bytes += rangeOf(ranges, i).bytes;
  if (bytes > SCRAPE_CAPTURE_BYTES) return false;
  const capture = SCRAPE + SCRAPE_CAPTURES + <usize>metric.capture * SCRAPE_CAPTURE_BYTES;
  let used: usize = 0;
  for (let i: usize = 0; i < count; i++) {
    const range = rangeOf(ranges, i);
    const kept = rangeOf(changetype<usize>(result) + SCRAPE_RESULT_LABELS, i);
    kept.from = <u32>used;
    kept.bytes = <u32>copyLabel(capture + used, range.from, range.bytes);
    used += kept.bytes;
  }
  return true;
}
