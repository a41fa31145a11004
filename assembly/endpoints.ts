// Endpoint columns: what is known about each endpoint slot, one array per field.
//
// Owns: REGION_ENDPOINTS, ENDPOINT_COLUMNS arrays of SLOTS 32-bit cells (a 64-bit column takes two neighbours) but for
// the array behind them (columns/waiting.ts), and REGION_ADAPTERS, 64 name hashes per slot and 16 remembered ones. Who
// writes what is said beside each column: "control" = the control thread, "commit" = any thread under the commit lock,
// "index" = any thread under the index lock, "any" = any thread by plain stores. All threads read without a lock where
// a slightly old number does no harm.
import { ASSERTIONS } from './assertions';
import { ENDPOINT_COLUMNS, ENDPOINTS, SLOTS } from './memory';

export const STATE_FREE: u32 = 0;
export const STATE_LIVE: u32 = 1;
export const STATE_DRAINING: u32 = 2; // no new picks

export const DEATH_NONE: u32 = 0;
export const DEATH_DOUBTED: u32 = 1; // a request failed; the control thread finds out whether it takes connections
export const DEATH_DEAD: u32 = 2; // it takes none

export const COLUMN_STATE: u32 = 0; // control: STATE_*: free, live or draining
export const COLUMN_GENERATION: u32 = 1; // control: counts the uses of the slot
export const COLUMN_KNOWN: u32 = 2; // commit: SIGNAL_* bits that are known and fresh
export const COLUMN_WAITING: u32 = 3; // commit, f32: requests waiting in the engine at the last scrape
export const COLUMN_RUNNING: u32 = 4; // commit, f32: requests running at the last scrape
export const COLUMN_KV_USAGE: u32 = 5; // commit, f32: share of the KV cache in use
export const COLUMN_BLOCK_TOKENS: u32 = 6; // commit: engine's block size in tokens, 0 = unknown
export const COLUMN_BLOCK_COUNT: u32 = 7; // commit: engine's KV blocks, 0 = unknown
/** commit, f32: requests that it can run at once, by what scrapes have shown, 0 = unknown */
export const COLUMN_SLOTS_SEEN: u32 = 8;
export const COLUMN_INFLIGHT_SCRAPED: u32 = 9; // commit: part of INFLIGHT that the last scrape accounts for
/**
 * commit, f32: bound on the requests sent there since its last scrape that are taken to run at once
 * (scheduling/slots.ts); control thread
 */
export const COLUMN_STARTS: u32 = 10;
export const COLUMN_INFLIGHT: u32 = 11; // commit: requests in flight
export const COLUMN_INFLIGHT_TOKENS: u32 = 12; // commit: uncached prompt tokens in flight
export const COLUMN_ACTIVE_BLOCKS: u32 = 13; // index: unique prompt blocks in use by running requests
export const COLUMN_OUTPUT_BLOCKS: u32 = 14; // commit: blocks grown by output
export const COLUMN_EJECTION: u32 = 15; // commit: 0 in, 1 out, 2 out with one probe under way
export const COLUMN_FAILURES: u32 = 16; // commit: consecutive upstream failures
export const COLUMN_EJECTED_AT: u32 = 17; // commit: pool word decisions at the last failure of an endpoint that is out
/**
 * commit, f64 (18, 19): milliseconds of the pool clock from which on the signals age: the last good scrape, later where
 * the next one comes later by design
 */
export const COLUMN_SIGNAL_TIME: u32 = 18;
/** commit, f64 (20, 21): milliseconds of the pool clock, before which it is not probed */
export const COLUMN_EJECTED_UNTIL: u32 = 20;
export const COLUMN_ADAPTERS_RUNNING: u32 = 22; // commit: LoRA adapters that the engine runs
export const COLUMN_ADAPTERS_WAITING: u32 = 23; // commit
export const COLUMN_ADAPTERS_MAX: u32 = 24; // commit
export const COLUMN_PREFIX_BLOCKS: u32 = 25; // index: blocks that the prefix index says it holds
export const COLUMN_PREFIX_CAPACITY: u32 = 26; // index: bound on the former, 0 = none
export const COLUMN_COLD_OLDER: u32 = 27; // commit: slot + 1 with the cold prompt before this one, 0 = none
export const COLUMN_COLD_NEWER: u32 = 28; // commit: slot + 1 with the cold prompt after this one, 0 = none
export const COLUMN_ADAPTERS_SENT: u32 = 29; // commit: adapters remembered as sent there
/** commit, f32: least time per output token that a request in flight wants, ms, 0 = none */
export const COLUMN_STRICTEST_TPOT: u32 = 30;
/** commit: ticket of that request, head of a list in rising order, 0 = none */
export const COLUMN_STRICTEST_TICKET: u32 = 31;
export const COLUMN_ATTRIBUTES: u32 = 32; // commit, 8 × f32 (32 .. 39): values of named attributes, NaN = unknown
/** commit: uncached prompt tokens of requests whose first output has not come */
export const COLUMN_PREFILL_TOKENS: u32 = 40;
export const COLUMN_PROMPT_TOKENS: u32 = 41; // commit: prompt tokens of requests in flight
/** commit, f32: uncached tokens per millisecond sent there, decaying, at the time beside it */
export const COLUMN_PREFILL_RATE: u32 = 42;
export const COLUMN_PREFILL_RATE_TIME: u32 = 44; // commit, f64 (44, 45): milliseconds of the pool clock
export const COLUMN_SPEED: u32 = 46; // commit, f32: durations on this endpoint compared with the other endpoints, 0 = 1
export const COLUMN_HIT_RELIABILITY: u32 = 47; // commit, f32: share of the blocks thought to be held that are, 0 = 1
export const COLUMN_PREFILL_RATE_PEAK: u32 = 48; // commit, f32: the largest PREFILL_RATE since the slot was opened
// Part of the load columns that requests of other replicas make up (load/peers.ts).
export const COLUMN_PEER_REQUESTS: u32 = 49; // commit: part of INFLIGHT; this and the next four: control thread
export const COLUMN_PEER_TOKENS: u32 = 50; // commit: part of INFLIGHT_TOKENS
export const COLUMN_PEER_PREFILL: u32 = 51; // commit: part of PREFILL_TOKENS
export const COLUMN_PEER_PROMPT: u32 = 52; // commit: part of PROMPT_TOKENS
export const COLUMN_PEER_OUTPUT: u32 = 53; // commit: part of OUTPUT_BLOCKS
/** commit, f32: requests that ran while a queue lasted, 0 = unknown; control thread */
export const COLUMN_SLOTS_FULL: u32 = 54;
// Coefficients of the cost model of the endpoint's hardware class (scheduling/cost-coefficients.ts), for an endpoint of
// average speed in it.
/** commit, f32: ms to the first output of a request without delays; this and the next four: control thread */
export const COLUMN_COST_BASE: u32 = 55;
/** commit, f32: ms per 1,000 uncached tokens, 0 = all five are those of the pool */
export const COLUMN_COST_PREFILL: u32 = 56;
export const COLUMN_COST_WAITING: u32 = 57; // commit, f32: ms per request that the engine has waiting
export const COLUMN_COST_STEP: u32 = 58; // commit, f32: ms per output token
export const COLUMN_COST_GROWTH: u32 = 59; // commit, f32: ms per output token and 100,000 tokens in flight
// Silence (load/silence.ts).
/** any, f64 (62, 63): milliseconds of the pool clock at the last output seen from there, 0 = none */
export const COLUMN_HEARD: u32 = 62;
export const COLUMN_SILENT: u32 = 64; // commit: 1 = its requests in flight get no byte
/** commit: requests in flight that scrapes have left out for some time; control thread */
export const COLUMN_UNSEEN: u32 = 66;
export const COLUMN_QUEUED_SCRAPES: u32 = 65; // commit: scrapes in a row in which something waited; control thread
/** control: 1 = its engine sends no events of blocks; what is sent there counts as held by it, in every program */
export const COLUMN_UNTOLD: u32 = 67;
/** any: requests that its engine refused of late, a part of WAITING; control thread, by plain stores */
export const COLUMN_REFUSED: u32 = 70;
// Warmth of a cache (load/warmth.ts); a cache that is emptied sets both to 0 under the index lock, by plain stores.
/** commit, f32: mean part that the requests charged last found there of what an endpoint had of their prompts */
export const COLUMN_HIT_SHARE: u32 = 68;
export const COLUMN_CHARGED: u32 = 69; // commit: requests charged since the cache was empty
export const COLUMN_REACHED: u32 = 71; // commit: of these, requests with such a part, 28 at most
// Endpoints that filters hold back (scheduling/held-back.ts). Times are whole seconds of the pool clock.
/** commit: first of the last decisions all of which vetoed it as overloaded, 0 = the last one did not */
export const COLUMN_VETO_SINCE: u32 = 72;
export const COLUMN_VETO_LAST: u32 = 73; // commit: the last of these decisions
/** commit, f32: limit that it was over: waiting requests, or below 0 minus a share of the KV cache */
export const COLUMN_VETO_LIMIT: u32 = 74;
/** commit: first decision that took its cache for cold, 0 = it is warm */
export const COLUMN_WARMING_SINCE: u32 = 75;
export const COLUMN_WARMING_LAST: u32 = 76; // commit: the last such decision
/** commit, f32: its share of the mean requests in flight of the others, as of that decision */
export const COLUMN_WARMING_SHARE: u32 = 77;

export const COLUMN_DEATH: u32 = 43; // commit: DEATH_*: alive, in doubt or dead (load/dead.ts)
/** commit, f64 (60, 61): milliseconds of the pool clock, of the doubt, its end, or the last try */
export const COLUMN_DEATH_TIME: u32 = 60;

/** Columns that decisions are made from: a recording has those below. The others are told of decisions alone. */
export const RECORDED_COLUMNS: u32 = 71;

export const ATTRIBUTE_COLUMNS: u32 = 8;

export const SIGNAL_WAITING: u32 = 1;
export const SIGNAL_RUNNING: u32 = 2;
export const SIGNAL_KV_USAGE: u32 = 4;
export const SIGNAL_ADAPTERS: u32 = 8;

/** Address of a column's first cell. */
export function columnAddress(column: u32): usize {
  if (ASSERTIONS) assert(column < ENDPOINT_COLUMNS, 'the column is one of the endpoints');
  return ENDPOINTS + ((<usize>column * SLOTS) << 2);
}

/** Address of a slot's 32-bit cell in a column. */
export function cell(column: u32, slot: u32): usize {
  return ENDPOINTS + ((<usize>column * SLOTS + slot) << 2);
}

/** Address of a slot's 64-bit cell in a column pair. */
export function wideCell(column: u32, slot: u32): usize {
  return ENDPOINTS + ((<usize>column * SLOTS) << 2) + ((<usize>slot) << 3);
}
