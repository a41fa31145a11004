// Layout of one open response scan.
//
// Owns: the beginning of each thread's part of REGION_RESPONSES: RESPONSE_SCAN_BYTES for each of `scans` response
// scans. The metrics scanner (scrape/layout.ts) follows. Only its own thread reads and writes a part, so there is no
// lock; nothing in it outlives the thread (a scan belongs to a stream of that thread), so there is nothing to repair
// after its death.
import { ResponseScan, Usage } from './scan-state';

// Fields of a scan, for the host.
const SCAN_USAGE: usize = offsetof<ResponseScan>('usageFields');
export const SCAN_EVENTS: usize = offsetof<ResponseScan>('events');
export const SCAN_USAGE_PROMPT: usize = SCAN_USAGE + offsetof<Usage>('prompt');
export const SCAN_USAGE_COMPLETION: usize = SCAN_USAGE + offsetof<Usage>('completion');
export const SCAN_USAGE_TOTAL: usize = SCAN_USAGE + offsetof<Usage>('total');
export const SCAN_USAGE_CACHED: usize = SCAN_USAGE + offsetof<Usage>('cached');

// Areas of a scan, behind its fields.
export const CONTAINER_LEVELS: u32 = 127; // deeper documents are passed on unread
export const NAME_BYTES_MAX: u32 = 1024;
export const SCAN_CONTAINERS: usize = offsetof<ResponseScan>(); // a byte per depth: the bracket that closes it
export const SCAN_NAME: usize = SCAN_CONTAINERS + <usize>CONTAINER_LEVELS + 1; // the name to rename, decoded
export const RESPONSE_SCAN_BYTES: usize = (SCAN_NAME + <usize>NAME_BYTES_MAX + 63) & ~63;

/** Address of the name to rename, decoded. */
export function nameOf(scan: ResponseScan): usize {
  return changetype<usize>(scan) + SCAN_NAME;
}

export const MODE_EVENTS: u32 = 0; // server-sent events
export const MODE_BODY: u32 = 1; // one JSON document
export const MODE_UNKNOWN: u32 = 2; // messages whose first byte of data will tell

// Places of the usage in an answer.
export const FORM_USAGE: u32 = 0; // `usage` at the top
export const FORM_RESPONSES: u32 = 1; // the same, in a stream only in the `response` of the event response.completed
export const FORM_MESSAGES: u32 = 2; // Anthropic: `usage` at the top and in `message`
export const FORM_SGLANG: u32 = 3; // `meta_info` at the top, in a stream only with a finish_reason
export const FORM_ENGINE: u32 = 4; // GenerateResponse
export const FORM_ENGINE_EMBED: u32 = 5; // EmbedResponse
export const FORM_VERTEX: u32 = 6; // HttpBody

export const SCOPE_NONE: u32 = 0;
export const SCOPE_RESPONSE: u32 = 1; // "response"
export const SCOPE_MESSAGE: u32 = 2; // "message"

export const STAGED_NONE: u32 = 0;
export const STAGED: u32 = 1;
export const STAGED_IF_COMPLETED: u32 = 2; // counts only when the document's type is "response.completed"

/** Bytes of `scans` response scans. */
export function responseRegionBytes(scans: u32): u64 {
  return <u64>scans * RESPONSE_SCAN_BYTES;
}
