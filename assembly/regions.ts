// The sizes of all regions, and the binding of this instance to them.
//
// Owns: the region table in the header page while plan() writes it; the creator calls that once, before any other
// thread attaches. On top of every room's layout, so that memory.ts depends on none of them.

import { ASSERTIONS } from './assertions';
import { gateBind, gateRegionBytes } from './gate/layout';
import { sessionsBind, sessionsRegionBytes } from './gate/sessions-layout';
import { activeBind, activeRegionBytes } from './load/layout';
import {
  ACTIVE,
  ADAPTERS_PER_ENDPOINT,
  ADAPTERS_REMEMBERED,
  bindAddresses,
  bindSizes,
  CHAIN_BLOCKS,
  CHANGE_HEAD_BYTES,
  COEFFICIENT_BYTES,
  ENDPOINT_COLUMNS,
  HASHES,
  HEADER,
  HEADER_CHAIN_BLOCKS,
  HEADER_CHANGE_BYTES,
  HEADER_DECISION_THREADS,
  HEADER_ENDPOINTS,
  HEADER_INDEX_BLOCKS,
  HEADER_REQUESTS,
  HEADER_SCANS,
  HEADER_TELEMETRY_BYTES,
  HEADER_THREADS,
  HEARING_BYTES,
  INDEX_BLOCKS,
  LABEL_COLUMNS,
  LEDGER_ENTRY_BYTES,
  MASK_COUNT,
  PREDICTION_COEFFICIENTS,
  PREDICTION_HEAD_BYTES,
  PREFIX,
  PROGRAM_BYTES,
  PROGRAM_COUNT,
  PROJECTION_BYTES,
  REGION_ACTIVE,
  REGION_ADAPTERS,
  REGION_CHANGES,
  REGION_COEFFICIENTS,
  REGION_COUNT,
  REGION_DECISIONS,
  REGION_ENDPOINTS,
  REGION_GATE,
  REGION_LABELS,
  REGION_LEDGER,
  REGION_MASKS,
  REGION_PREDICTION,
  REGION_PREFIX,
  REGION_PROGRAMS,
  REGION_RESPONSES,
  REGION_SAMPLE_RING,
  REGION_SCANS,
  REGION_SESSIONS,
  REGION_TELEMETRY,
  REGION_THREADS,
  REQUESTS,
  regionAddress,
  regionRow,
  SAMPLE_RING_BYTES,
  SCANS,
  SHARE_BYTES,
  SHOWN_ADAPTERS,
  SLOTS,
  threadBytes,
} from './memory';
import { isMapped } from './preconditions';
import { prefixBind, prefixRegionBytes } from './prefix/layout';
import { hashBind } from './request/hash';
import { scanRegionBytes } from './request/layout';
import { responseRegionBytes } from './response/layout';
import { decisionLogBind, decisionLogBytes } from './scheduling/decision-log';
import { SCRAPE_BYTES } from './scrape/layout';

function pages(bytes: u64): u32 {
  return <u32>((bytes + 65535) >> 16);
}

/**
 * Bytes of one thread's part of REGION_RESPONSES for `scans` open response scans: the scans, then its metrics scanner.
 */
function responsePartBytes(scans: u32): u64 {
  return responseRegionBytes(scans) + SCRAPE_BYTES;
}

/** Bytes of REGION_CHANGES for `k` threads with rings of `bytes` bytes. */
function changeRegionBytes(k: u32, bytes: u32): u64 {
  return bytes == 0 ? 0 : <u64>k * (CHANGE_HEAD_BYTES + bytes);
}

/** Bytes of region `region` for the sizes that stand in the header. */
function regionBytes(region: u32): u64 {
  const p = load<u32>(HEADER + HEADER_ENDPOINTS);
  const n = load<u32>(HEADER + HEADER_INDEX_BLOCKS);
  const r = load<u32>(HEADER + HEADER_REQUESTS);
  const c = load<u32>(HEADER + HEADER_CHAIN_BLOCKS);
  const k = load<u32>(HEADER + HEADER_THREADS);
  const s = load<u32>(HEADER + HEADER_SCANS);
  if (region == REGION_ENDPOINTS) return <u64>p * 4 * (ENDPOINT_COLUMNS + 1);
  if (region == REGION_LEDGER) return 64 + <u64>k * 64 + <u64>r * (LEDGER_ENTRY_BYTES + HEARING_BYTES);
  if (region == REGION_PROGRAMS) return <u64>PROGRAM_COUNT * PROGRAM_BYTES;
  if (region == REGION_MASKS) return <u64>MASK_COUNT * (p >> 3);
  if (region == REGION_PREFIX) return prefixRegionBytes(p, n, c, k);
  if (region == REGION_ACTIVE) return activeRegionBytes(p, r, c);
  if (region == REGION_THREADS) return <u64>k * threadBytes(p, c);
  if (region == REGION_SCANS) return <u64>k * scanRegionBytes(s, c);
  if (region == REGION_RESPONSES) return <u64>k * responsePartBytes(s);
  if (region == REGION_TELEMETRY) return <u64>k * load<u32>(HEADER + HEADER_TELEMETRY_BYTES);
  if (region == REGION_ADAPTERS) return (<u64>p * (ADAPTERS_PER_ENDPOINT + ADAPTERS_REMEMBERED) + SHOWN_ADAPTERS) * 8;
  if (region == REGION_LABELS) return <u64>p * LABEL_COLUMNS * 8;
  if (region == REGION_GATE) return gateRegionBytes(p, r, k, s);
  if (region == REGION_PREDICTION) return PREDICTION_HEAD_BYTES + <u64>p * (PREDICTION_COEFFICIENTS + 1) * 4;
  if (region == REGION_DECISIONS) return <u64>load<u32>(HEADER + HEADER_DECISION_THREADS) * decisionLogBytes();
  if (region == REGION_COEFFICIENTS) return COEFFICIENT_BYTES + <u64>k * (SHARE_BYTES + PROJECTION_BYTES);
  if (region == REGION_CHANGES) return changeRegionBytes(k, load<u32>(HEADER + HEADER_CHANGE_BYTES));
  if (region == REGION_SESSIONS) return sessionsRegionBytes(p, r);
  if (region == REGION_SAMPLE_RING) return <u64>k * SAMPLE_RING_BYTES;
  return 0;
}

/**
 * Lays out the regions for the sizes in the header and writes the region table.
 * @returns pages of 64 KiB that the whole memory needs, or 0 when they do not fit into 4 GiB.
 */
export function plan(): u32 {
  let page: u64 = 2;
  for (let i: u32 = 0; i < REGION_COUNT; i++) {
    const size = pages(regionBytes(i));
    regionRow(i).page = <u32>page;
    regionRow(i).pages = size;
    page += size;
  }
  return page > 65535 ? 0 : <u32>page;
}

/**
 * Binds this instance to the memory as thread `thread`.
 * @returns 0, or 1 when the memory carries another magic or layout version, 2 when the thread number is out of range.
 */
export function attach(thread: u32): u32 {
  const refusal = bindSizes(thread);
  if (refusal != 0) return refusal;
  bindAddresses(scanRegionBytes(SCANS, CHAIN_BLOCKS), responsePartBytes(SCANS), decisionLogBytes());
  hashBind();
  decisionLogBind();
  prefixBind(PREFIX, SLOTS, INDEX_BLOCKS, CHAIN_BLOCKS, thread);
  activeBind(ACTIVE, REQUESTS, CHAIN_BLOCKS);
  gateBind(regionAddress(REGION_GATE));
  sessionsBind(regionAddress(REGION_SESSIONS));
  if (ASSERTIONS) assert(isMapped(HASHES, (<usize>CHAIN_BLOCKS) << 3), 'the area of the thread lies in the memory');
  return 0;
}
