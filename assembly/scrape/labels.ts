// The labels of one sample: do they match, and where are the wanted ones.
//
// Owns: SCRAPE_LABEL_RANGES while a line is read (layout.ts); its own thread only, no lock.
import { MatcherHead, Metric, TextRange } from './scan-state';

const QUOTE: u32 = 0x22;
const BACKSLASH: u32 = 0x5c;

let MATCHED: u32 = 0; // bit per matcher
let RANGES: usize = 0;
let TEXT: usize = 0; // the query's text

export function rangeOf(ranges: usize, i: usize): TextRange {
  return changetype<TextRange>(ranges + i * offsetof<TextRange>());
}

/** Begins a sample of `metric`; wanted labels are noted at `ranges`. */
export function labelsBegin(metric: Metric, text: usize, ranges: usize): void {
  MATCHED = metric.absentMatch;
  RANGES = ranges;
  TEXT = text;
  memory.fill(ranges, 0, (<usize>metric.labelCount) << 3);
}

/** Whether all labels that must match did. */
export function labelsMatch(metric: Metric): bool {
  return <u32>popcnt(MATCHED) == metric.matcherCount;
}

/** Address of the first byte in [p, end) that is no blank. */
export function blanksEnd(start: usize, end: usize): usize {
  let p = start;
  while (p < end && (load<u8>(p) == 0x20 || load<u8>(p) == 0x09)) p++;
  return p;
}

/** Reads labels from behind "{"; address behind "}", or 0 when they are malformed. */
export function readLabels(metric: Metric, start: usize, end: usize): usize {
  let p = blanksEnd(start, end);
  while (p < end) {
    const c = <u32>load<u8>(p);
    if (c == 0x7d) return p + 1;
    const name = p;
    while (p < end && isNameByte(<u32>load<u8>(p))) p++;
    const nameBytes = p - name;
    p = blanksEnd(p, end);
    if (nameBytes == 0 || p >= end || load<u8>(p) != 0x3d) return 0;
    p = blanksEnd(p + 1, end);
    if (p >= end || load<u8>(p) != QUOTE) return 0;
    const value = p + 1;
    p = quoteEnd(value, end);
    if (p == end) return 0;
    noteLabel(metric, name, nameBytes, value, p - value);
    p = blanksEnd(p + 1, end);
    if (p < end && load<u8>(p) == 0x2c) p = blanksEnd(p + 1, end);
    else if (p >= end || load<u8>(p) != 0x7d) return 0;
  }
  return 0;
}

function isNameByte(c: u32): bool {
  return (c | 0x20) - 0x61 < 26 || c - 0x30 < 10 || c == 0x5f || c == 0x3a || c >= 0x80;
}

/** Address of the quote that ends a label value, or `end`. */
function quoteEnd(start: usize, end: usize): usize {
  const quotes = i8x16.splat(0x22);
  const backslashes = i8x16.splat(0x5c);
  let p = start;
  while (p < end) {
    const v = v128.load(p);
    const bits = i8x16.bitmask(v128.or(i8x16.eq(v, quotes), i8x16.eq(v, backslashes)));
    if (bits == 0) {
      p += 16;
      continue;
    }
    p += <usize>ctz(bits);
    if (p >= end || <u32>load<u8>(p) == QUOTE) break;
    p += 2;
  }
  return min(p, end);
}

function noteLabel(metric: Metric, name: usize, nameBytes: usize, value: usize, valueBytes: usize): void {
  let at = TEXT + metric.matcherList;
  for (let i: u32 = 0, n = metric.matcherCount; i < n; i++) {
    const matcher = changetype<MatcherHead>(at);
    const wantName = <usize>matcher.nameBytes;
    const wantValue = <usize>matcher.valueBytes;
    at += offsetof<MatcherHead>();
    if (wantName == nameBytes && memory.compare(at, name, nameBytes) == 0) {
      const bit: u32 = 1 << i;
      if (isValue(value, valueBytes, at + wantName, wantValue)) MATCHED |= bit;
      else MATCHED &= ~bit;
    }
    at += wantName + wantValue;
  }
  at = TEXT + metric.labelList;
  for (let i: u32 = 0, n = metric.labelCount; i < n; i++) {
    const wantName = <usize>load<u16>(at);
    at += sizeof<u16>();
    if (wantName == nameBytes && memory.compare(at, name, nameBytes) == 0) {
      const range = rangeOf(RANGES, i);
      range.from = <u32>value;
      range.bytes = <u32>valueBytes;
    }
    at += wantName;
  }
}

/** The raw label value decodes to the wanted one. */
function isValue(raw: usize, rawBytes: usize, want: usize, wantBytes: usize): bool {
  if (wantBytes > rawBytes) return false;
  let p = raw;
  let w = want;
  while (p < raw + rawBytes) {
    const step = escapeBytes(p, raw + rawBytes);
    if (w == want + wantBytes || load<u8>(w) != <u8>decodedByte(p, step)) return false;
    p += step;
    w++;
  }
  return w == want + wantBytes;
}

/** Copies a raw label value to `to`, its escapes decoded; returns its length there. */
export function copyLabel(to: usize, raw: usize, rawBytes: usize): usize {
  let at = to;
  for (let p = raw; p < raw + rawBytes; ) {
    const step = escapeBytes(p, raw + rawBytes);
    store<u8>(at++, decodedByte(p, step));
    p += step;
  }
  return at - to;
}

/** 2 when one of the three escapes (\\, \" and \n) stands at `p`, else 1: other backslashes stand for themselves. */
function escapeBytes(p: usize, end: usize): usize {
  if (<u32>load<u8>(p) != BACKSLASH || p + 1 >= end) return 1;
  const c = <u32>load<u8>(p + 1);
  return c == BACKSLASH || c == QUOTE || c == 0x6e ? 2 : 1;
}

function decodedByte(p: usize, step: usize): u32 {
  if (step == 1) return <u32>load<u8>(p);
  const c = <u32>load<u8>(p + 1);
  return c == 0x6e ? 0x0a : c;
}
