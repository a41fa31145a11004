// The metrics scanner: raw Prometheus or OpenMetrics text in, only the wanted families out.
//
// Owns: this thread's metrics scanner (layout.ts); its own thread only, no lock; one page at a time.
//
// A page is hundreds of histogram buckets and a handful of wanted lines, so a line whose first eight bytes begin no
// wanted name is passed over without being read. A line that a piece cuts is carried in the line buffer.
import { INPUT, RESPONSE_REGION, SCANS } from '../memory';
import { RESPONSE_SCAN_BYTES } from '../response/layout';
import { blanksEnd, copyLabel, labelsBegin, labelsMatch, readLabels } from './labels';
import {
  AGGREGATE_LATEST_LABELS,
  AGGREGATE_SUM,
  METRIC_AGGREGATE,
  METRIC_CAPTURE,
  METRIC_HEAD,
  METRIC_HEAD_MASK,
  METRIC_LABEL_COUNT,
  METRIC_NAME,
  METRIC_NAME_BYTES,
  QUERY_BYTES,
  QUERY_COUNT,
  QUERY_METRIC_BYTES,
  QUERY_METRIC_LIST,
  QUERY_TEXT,
  SCRAPE_CAPTURE_BYTES,
  SCRAPE_CAPTURES,
  SCRAPE_CARRIED,
  SCRAPE_LABEL_SPANS,
  SCRAPE_LINE,
  SCRAPE_LINE_BYTES,
  SCRAPE_QUERY,
  SCRAPE_QUERY_LIST,
  SCRAPE_RESULT_BYTES,
  SCRAPE_RESULT_FOUND,
  SCRAPE_RESULT_LABELS,
  SCRAPE_RESULT_VALUE,
  SCRAPE_RESULTS,
  SCRAPE_SKIPPING,
  SCRAPE_UNUSABLE,
} from './layout';
import { NUMBER, NUMBER_BAD, NUMBER_FINITE, parseNumber } from './number';

// Registers of the scan under way; set at the start of every call.
let SCRAPE: usize = 0;
let TEXT: usize = 0; // the query's text
let METRICS: usize = 0; // its first metric
let METRICS_END: usize = 0;

/** Address of this thread's metrics scanner. */
export function scrapeAddress(): usize {
  return RESPONSE_REGION + <usize>SCANS * RESPONSE_SCAN_BYTES;
}

function enter(): void {
  SCRAPE = scrapeAddress();
  const query = SCRAPE + SCRAPE_QUERY_LIST + <usize>load<u32>(SCRAPE, SCRAPE_QUERY) * QUERY_BYTES;
  TEXT = query + QUERY_TEXT;
  METRICS = query + QUERY_METRIC_LIST;
  METRICS_END = METRICS + <usize>load<u32>(query, QUERY_COUNT) * QUERY_METRIC_BYTES;
}

/** Begin a page, to be read for query `query`. */
export function scrapeBegin(query: u32): void {
  const at = scrapeAddress();
  store<u32>(at, query, SCRAPE_QUERY);
  store<u32>(at, 0, SCRAPE_SKIPPING);
  store<u32>(at, 0, SCRAPE_CARRIED);
  store<u32>(at, 0, SCRAPE_UNUSABLE);
  enter();
  memory.fill(SCRAPE + SCRAPE_RESULTS, 0, ((METRICS_END - METRICS) / QUERY_METRIC_BYTES) * SCRAPE_RESULT_BYTES);
}

/** Read the page's next `length` bytes, which stand at INPUT. */
export function scrapeFeed(length: u32): void {
  enter();
  const end = INPUT + length;
  let p = INPUT;
  if ((load<u32>(SCRAPE, SCRAPE_CARRIED) | load<u32>(SCRAPE, SCRAPE_SKIPPING)) != 0) p = finishLine(p, end);
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

/** The page has ended; its last line may lack its end. */
export function scrapeEnd(): void {
  enter();
  const carried = <usize>load<u32>(SCRAPE, SCRAPE_CARRIED);
  if (carried != 0) readLine(SCRAPE + SCRAPE_LINE, SCRAPE + SCRAPE_LINE + carried);
  store<u32>(SCRAPE, 0, SCRAPE_CARRIED);
  store<u32>(SCRAPE, 1, SCRAPE_SKIPPING);
}

/** The rest of a line that an earlier piece began. */
function finishLine(p: usize, end: usize): usize {
  const line = lineEnd(p, end);
  if (load<u32>(SCRAPE, SCRAPE_SKIPPING) == 0) carry(p, line);
  if (line == end) return end;
  const carried = <usize>load<u32>(SCRAPE, SCRAPE_CARRIED);
  if (carried != 0) readLine(SCRAPE + SCRAPE_LINE, SCRAPE + SCRAPE_LINE + carried);
  store<u32>(SCRAPE, 0, SCRAPE_CARRIED);
  store<u32>(SCRAPE, 0, SCRAPE_SKIPPING);
  return line + 1;
}

/** Put a part of a line into the line buffer; a line that does not fit is passed over, and counted if it was wanted. */
function carry(p: usize, end: usize): void {
  const carried = <usize>load<u32>(SCRAPE, SCRAPE_CARRIED);
  const buffer = SCRAPE + SCRAPE_LINE;
  if (carried + (end - p) <= SCRAPE_LINE_BYTES) {
    memory.copy(buffer + carried, p, end - p);
    store<u32>(SCRAPE, <u32>(carried + (end - p)), SCRAPE_CARRIED);
    return;
  }
  store<u32>(SCRAPE, 0, SCRAPE_CARRIED);
  store<u32>(SCRAPE, 1, SCRAPE_SKIPPING);
  const name = blanksEnd(buffer, buffer + carried);
  for (let metric = METRICS; metric < METRICS_END; metric += QUERY_METRIC_BYTES) {
    if (isNamed(metric, name, buffer + carried)) unusable();
  }
}

function unusable(): void {
  store<u32>(SCRAPE, load<u32>(SCRAPE, SCRAPE_UNUSABLE) + 1, SCRAPE_UNUSABLE);
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

/** The line at `p` may be a wanted one: it begins like one of the names, or with a blank. */
function mayMatter(p: usize): bool {
  const head = load<u64>(p);
  for (let metric = METRICS; metric < METRICS_END; metric += QUERY_METRIC_BYTES) {
    if ((head & load<u64>(metric, METRIC_HEAD_MASK)) == load<u64>(metric, METRIC_HEAD)) return true;
  }
  return (head & 0xff) == 0x20 || (head & 0xff) == 0x09;
}

function readLine(start: usize, lineFeed: usize): void {
  const end = lineFeed > start && load<u8>(lineFeed - 1) == 0x0d ? lineFeed - 1 : lineFeed;
  const name = blanksEnd(start, end);
  for (let metric = METRICS; metric < METRICS_END; metric += QUERY_METRIC_BYTES) {
    if (isNamed(metric, name, end)) readSample(metric, name + load<u32>(metric, METRIC_NAME_BYTES), end);
  }
}

/** The name at `p` is the metric's, whole. */
function isNamed(metric: usize, p: usize, end: usize): bool {
  const n = <usize>load<u32>(metric, METRIC_NAME_BYTES);
  if (p + n > end || memory.compare(p, TEXT + load<u32>(metric, METRIC_NAME), n) != 0) return false;
  if (p + n == end) return true;
  const c = <u32>load<u8>(p + n);
  return c == 0x7b || c == 0x20 || c == 0x09;
}

/** Labels, value, and what else may follow: a timestamp or an exemplar, which nobody wants. */
function readSample(metric: usize, behindName: usize, end: usize): void {
  labelsBegin(metric, TEXT, SCRAPE + SCRAPE_LABEL_SPANS);
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

function addSample(metric: usize, value: f64): void {
  const result = SCRAPE + SCRAPE_RESULTS + ((metric - METRICS) / QUERY_METRIC_BYTES) * SCRAPE_RESULT_BYTES;
  const first = load<u32>(result, SCRAPE_RESULT_FOUND) == 0;
  const aggregate = load<u32>(metric, METRIC_AGGREGATE);
  const known = load<f64>(result, SCRAPE_RESULT_VALUE);
  if (aggregate == AGGREGATE_SUM) {
    const sum = first ? value : known + value;
    if (abs(sum) == Infinity) {
      unusable();
      return;
    }
    store<f64>(result, sum, SCRAPE_RESULT_VALUE);
  } else if (first || value > known) {
    if (aggregate == AGGREGATE_LATEST_LABELS && !captureLabels(metric, result)) {
      unusable();
      return;
    }
    store<f64>(result, value, SCRAPE_RESULT_VALUE);
  }
  store<u32>(result, 1, SCRAPE_RESULT_FOUND);
}

/** Keep the wanted labels of the line being read; false when they do not fit. */
function captureLabels(metric: usize, result: usize): bool {
  const spans = SCRAPE + SCRAPE_LABEL_SPANS;
  const count = <usize>load<u32>(metric, METRIC_LABEL_COUNT);
  let bytes: usize = 0;
  for (let i: usize = 0; i < count; i++) bytes += load<u32>(spans + (i << 3), 4);
  if (bytes > SCRAPE_CAPTURE_BYTES) return false;
  const capture = SCRAPE + SCRAPE_CAPTURES + <usize>load<u32>(metric, METRIC_CAPTURE) * SCRAPE_CAPTURE_BYTES;
  let used: usize = 0;
  for (let i: usize = 0; i < count; i++) {
    const span = spans + (i << 3);
    const n = copyLabel(capture + used, load<u32>(span), load<u32>(span, 4));
    store<u32>(result + SCRAPE_RESULT_LABELS + (i << 3), <u32>used);
    store<u32>(result + SCRAPE_RESULT_LABELS + (i << 3), <u32>n, 4);
    used += n;
  }
  return true;
}
