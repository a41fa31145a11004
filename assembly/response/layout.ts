// Layout of one open response scan.
//
// Owns: the beginning of each thread's part of REGION_RESPONSES: RESPONSE_SCAN_BYTES for each of `scans` response scans.
// The metrics scanner (scrape/layout.ts) follows. Only its own thread reads and writes a part, so there is no lock; nothing in it outlives
// the thread (a scan belongs to a stream of that thread), so there is nothing to repair after its death.

// Words (u32) of a scan.
export const SCAN_MODE: usize = 0; // MODE_*
export const SCAN_LINE: usize = 4; // LINE_*, server-sent events only
export const SCAN_LINE_MATCHED: usize = 8; // bytes matched of "data:" or of "[DONE]"
export const SCAN_EVENTS: usize = 12; // data lines seen, [DONE] not counted
export const SCAN_STATE: usize = 16; // state of the JSON reader, STATE_*
export const SCAN_DEPTH: usize = 20; // containers open around the reader
export const SCAN_KEY: usize = 24; // KEY_* of the member being read, KEY_OTHER in an array
export const SCAN_STRING: usize = 28; // STRING_*: what the open string is for
export const SCAN_PART: usize = 32; // part of a number, bytes matched of a literal, hex digits still to come
export const SCAN_UNIT: usize = 36; // the literal's number, or the UTF-16 unit collected from hex digits
export const SCAN_SURROGATE: usize = 40; // high surrogate waiting for its low one, or 0
export const SCAN_TAKEN: usize = 44; // decoded bytes of the open key or count string
export const SCAN_USAGE_DEPTH: usize = 48; // depth of the open usage object, or 0
export const SCAN_DETAILS_DEPTH: usize = 52; // depth of its open details object, or 0
export const SCAN_SCOPE: usize = 56; // SCOPE_*: the top-level member around the reader
export const SCAN_STAGED: usize = 60; // STAGED_*: whether the document at hand has changed the staged usage
export const SCAN_HOLDING: usize = 64; // 1 while the open model name may still be the one to rename
export const SCAN_MATCHED: usize = 68; // its decoded bytes that matched
export const SCAN_NAME_BYTES: usize = 72; // length of the name to rename, 0 = rename nothing
export const SCAN_SCRATCH: usize = 76; // 4 bytes: one decoded character
export const SCAN_VALUE: usize = 80; // u64: the number being read, NOT_A_COUNT when it cannot be a token count

// Usage (f64 × 4 each: prompt, completion, total, cached; -1 = unknown).
export const SCAN_USAGE: usize = 96; // of all documents that have ended well
export const SCAN_USAGE_STAGED: usize = 128; // with the document at hand
export const SCAN_USAGE_BLOCK: usize = 160; // of the open usage object alone

export const SCAN_KEY_BYTES: usize = 192; // 32 bytes: the open key, when it did not come in one piece
export const SCAN_CONTAINERS: usize = 224; // a byte per depth: the bracket that closes it
export const CONTAINER_LEVELS: u32 = 127; // deeper documents are passed on unread
export const SCAN_NAME: usize = 352; // the name to rename, decoded
export const NAME_BYTES_MAX: u32 = 1024;
export const SCAN_FORM: usize = 1376; // FORM_*
export const SCAN_COMPLETED: usize = 1380; // 1 when the document's type is "response.completed"
export const SCAN_FINISHED: usize = 1384; // 1 when the open meta_info has a finish_reason
export const SCAN_WIRE: usize = 1400; // 72 bytes: state of the protobuf reader
export const RESPONSE_SCAN_BYTES: usize = 1472;

export const MODE_EVENTS: u32 = 0; // server-sent events
export const MODE_BODY: u32 = 1; // one JSON document
export const MODE_UNKNOWN: u32 = 2; // messages whose first byte of data will tell

// Where an answer tells its usage.
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
