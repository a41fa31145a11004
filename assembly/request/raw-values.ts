// Values whose bytes are taken as they are: to the prompt, aside for the hash of a medium, or both.
//
// Owns: in this thread's part of REGION_SCANS, RequestScan.raw and the stream aside. No lock: all of it belongs to one
// thread.
import { contentFlush, contentRaw } from './content';
import { streamAbsorb, streamReset } from './hash';
import { RequestScan } from './scan-state';

// Destinations of the raw bytes of the current value.
export const RAW_NONE: u32 = 0;
export const RAW_PROMPT: u32 = 1;
export const RAW_ASIDE: u32 = 2;
export const RAW_BOTH: u32 = 3; // to the prompt, and aside for the hash of a medium

/** Address of the first raw byte, in this feed, of the value under way that is taken raw. */
let rawFrom: usize = 0;

/** Begins a feed whose bytes start at `at`. */
export function rawStart(at: usize): void {
  rawFrom = at;
}

/** Ends a feed: takes the raw bytes of a value that goes on in the next one. */
export function rawPause(scan: RequestScan, at: usize): void {
  if (scan.raw != RAW_NONE) takeRaw(scan, at);
  contentFlush(scan);
}

export function beginRaw(scan: RequestScan, raw: u32, at: usize): void {
  scan.raw = raw;
  rawFrom = at;
  if (raw >= RAW_ASIDE) streamReset(scan.aside);
}

export function takeRaw(scan: RequestScan, at: usize): void {
  const length = <u32>(at - rawFrom);
  if (length == 0) return;
  const raw = scan.raw;
  if (raw != RAW_ASIDE) contentRaw(scan, rawFrom, length);
  if (raw != RAW_PROMPT) streamAbsorb(scan.aside, rawFrom, length);
}
