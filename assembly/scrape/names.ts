// Distinct names in the comma lists that a metric's labels hold, over all of its series.
//
// Owns: SCRAPE_NAME_HASHES of this thread's metrics scanner, and the captures of metrics with AGGREGATE_NAMES
// (layout.ts); its own thread only, no lock.
//
// An engine keeps a series per set of adapters that it ever ran at once, so a page repeats few names in many lists: a
// table of hashes tells the known ones. Two names with one hash count as one.
import { hashBytes } from '../request/hash';
import { blanksEnd, copyLabel, rangeOf } from './labels';
import {
  SCRAPE_CAPTURE_BYTES,
  SCRAPE_CAPTURES,
  SCRAPE_LABEL_RANGES,
  SCRAPE_NAME_CELLS,
  SCRAPE_NAME_HASHES,
  SCRAPE_NAMES,
  SCRAPE_RESULT_LABELS,
} from './layout';
import { Metric, MetricResult, MetricsScan, TextRange } from './scan-state';

const COMMA: u8 = 0x2c;

// Outcomes of noting a name.
const NAME_NEW: u32 = 0;
const NAME_KNOWN: u32 = 1;
const NAME_REFUSED: u32 = 2;

/** Begins a page: no name is known. */
export function namesBegin(scrape: usize): void {
  const page = changetype<MetricsScan>(scrape);
  if (page.names != 0) memory.fill(scrape + SCRAPE_NAME_HASHES, 0, (<usize>SCRAPE_NAME_CELLS) << 3);
  page.names = 0;
}

/** Adds the names of the line being read to the metric's capture, a comma between two; false when one does not fit. */
export function addNames(scrape: usize, metric: Metric, result: MetricResult): bool {
  const capture = scrape + SCRAPE_CAPTURES + <usize>metric.capture * SCRAPE_CAPTURE_BYTES;
  const kept = rangeOf(changetype<usize>(result) + SCRAPE_RESULT_LABELS, 0);
  let fits = true;
  for (let i: usize = 0, n = <usize>metric.labelCount; i < n; i++) {
    const list = rangeOf(scrape + SCRAPE_LABEL_RANGES, i);
    const end = <usize>list.from + list.bytes;
    for (let p = <usize>list.from; p < end; ) {
      const comma = commaOrEnd(p, end);
      if (!addName(scrape, metric.capture, capture, kept, p, comma)) fits = false;
      p = comma + 1;
    }
  }
  return fits;
}

function commaOrEnd(start: usize, end: usize): usize {
  let p = start;
  while (p < end && load<u8>(p) != COMMA) p++;
  return p;
}

/** Adds the name in [start, end), blanks around it left out; false when there is no room. */
function addName(scrape: usize, salt: u64, capture: usize, kept: TextRange, start: usize, end: usize): bool {
  const from = blanksEnd(start, end);
  if (from == end) return true;
  while (load<u8>(end - 1) == 0x20 || load<u8>(end - 1) == 0x09) end--;
  const used = <usize>kept.bytes;
  const at: usize = used == 0 ? 0 : used + 1;
  if (at + (end - from) > SCRAPE_CAPTURE_BYTES) return false;
  const bytes = copyLabel(capture + at, from, end - from);
  const known = noteName(scrape, hashBytes(capture + at, <u32>bytes) + salt);
  if (known != NAME_NEW) return known == NAME_KNOWN;
  if (used != 0) store<u8>(capture + used, COMMA);
  kept.bytes = <u32>(at + bytes);
  return true;
}

/** Puts a hash into the table; 0 stands for a free cell, so that hash is taken as 1. */
function noteName(scrape: usize, hashed: u64): u32 {
  const hash = hashed == 0 ? 1 : hashed;
  const table = scrape + SCRAPE_NAME_HASHES;
  const page = changetype<MetricsScan>(scrape);
  for (let i = <u32>hash; ; i++) {
    const cell = table + ((<usize>(i & (SCRAPE_NAME_CELLS - 1))) << 3);
    const there = load<u64>(cell);
    if (there == hash) return NAME_KNOWN;
    if (there != 0) continue;
    if (page.names == SCRAPE_NAMES) return NAME_REFUSED;
    page.names += 1;
    store<u64>(cell, hash);
    return NAME_NEW;
  }
}
