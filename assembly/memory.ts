// The map of a pool's shared memory: its header, its regions, and this instance's addresses of them.
//
// Owns: the header page (65,536 .. 131,072) and the table of regions in it. Written once, by the thread that creates
// the memory, before any other thread attaches; only the counters and lock words in it change afterwards, each under
// the rule written beside it. Every region is described where it is laid out and measured in regions.ts; `REGION_*`
// constants are exported so that the TypeScript face and `npm run memory-map` read the same numbers as the code.
//
//   0 ........ 65,535   never used: the compiler may place static data there, which every instantiation writes again
//   65,536 ... 131,071  header: magic, sizes, region table (+512), locks (+4,096), pool words (+8,192)
//   131,072 ..          regions in the order of their numbers, each on a 64 KiB boundary

import { ASSERTIONS } from './assertions';

/** Bounds of the sizes below. */
export const ENDPOINTS_MAX: u32 = 10240;
export const CHAIN_BLOCKS_MAX: u32 = 65535;
export const SPARE_HASHES: u32 = 8; // behind the longest chain in HASHES; the last one takes an event's parent

export const HEADER: usize = 65536;
export const MAGIC: u32 = 0x4d535450; // "PTSM", little-endian
export const LAYOUT_VERSION: u32 = 43;

// Header words (u32). Sizes are set by the creator and never change.
export const HEADER_MAGIC: usize = 0;
export const HEADER_VERSION: usize = 4;
export const HEADER_ENDPOINTS: usize = 8; // SLOTS: endpoint slots, a multiple of 64, at most 10,240
export const HEADER_INDEX_BLOCKS: usize = 12; // INDEX_BLOCKS: unique blocks in the prefix index
export const HEADER_REQUESTS: usize = 16; // REQUESTS: live requests in the ledger
export const HEADER_CHAIN_BLOCKS: usize = 20; // CHAIN_BLOCKS: longest prompt in blocks, at most 65,535
export const HEADER_THREADS: usize = 24; // THREADS: threads that may attach; 0 is the control thread
export const HEADER_SCANS: usize = 28; // request and response scans open at once, per thread
export const HEADER_HASH_SEED_LOW: usize = 32; // random per pool, so that collisions cannot be constructed
export const HEADER_HASH_SEED_HIGH: usize = 36;
export const HEADER_TELEMETRY_BYTES: usize = 40; // bytes of telemetry cells per thread
export const HEADER_DECISIONS: usize = 44; // records of the decision log per thread, 0 = none
export const HEADER_DECISION_COLUMN_BYTES: usize = 56; // bytes per thread for the columns of decisions, 0 = none
export const HEADER_DECISION_THREADS: usize = 60; // threads below this number keep a decision log
export const HEADER_TOTAL_BYTES_LOW: usize = 48; // result of plan(), u64
/** bytes of the ring of placed prompts per thread, a power of two, 0 = none */
export const HEADER_CHANGE_BYTES: usize = 64;
export const HEADER_REGIONS: usize = 512; // one RegionRow per region, 8 bytes each

// Locks, each alone on 128 bytes: owner and sleepers (see lock.ts).
export const HEADER_COMMIT_LOCK: usize = 4096; // endpoints' load columns, ledger
export const HEADER_INDEX_LOCK: usize = 4096 + 128; // prefix index, active blocks

// Load journal (see load-journal.ts): its count is on the line of the commit lock, which a holder has, its ring on
// others.
export const HEADER_JOURNAL: usize = 4096 + 16;
export const HEADER_JOURNAL_RING: usize = 4096 + 256;

// Pool words.
export const HEADER_POOL: usize = 8192;

// What · writer · lock.
/**
 * columns of signals and load per endpoint slot, then one of predicted waiting counts · each column says; the counts:
 * any thread · each column says; the counts: commit lock
 */
export const REGION_ENDPOINTS: u32 = 0;
/**
 * requests in flight, what they are charged and when they were heard · any thread · commit lock; handles of active
 * blocks: index lock; hearings: none
 */
export const REGION_LEDGER: u32 = 1;
/** compiled scheduling profiles · control thread · none: published by one atomic store */
export const REGION_PROGRAMS: u32 = 2;
export const REGION_MASKS: u32 = 3; // sets of endpoint slots for label filters · control thread · none
/** prefix index: which endpoint holds which blocks · any thread · index lock; readers none */
export const REGION_PREFIX: u32 = 4;
export const REGION_ACTIVE: u32 = 5; // blocks in use by running requests, per endpoint · any thread · index lock
export const REGION_THREADS: u32 = 6; // each thread's input, output, request and scratch columns · its thread · none
export const REGION_SCANS: u32 = 7; // open request scans, per thread · its thread · none
export const REGION_RESPONSES: u32 = 8; // open response scans, per thread · its thread · none
export const REGION_TELEMETRY: u32 = 9; // counters and histograms, per thread · its thread · none
/** log of the last decisions, per thread · its thread · none: the count is stored last */
export const REGION_DECISIONS: u32 = 10;
/**
 * name hashes of LoRA adapters per endpoint · gauge: control thread; remembered ones: any thread · gauge: none;
 * remembered ones: commit lock
 */
export const REGION_ADAPTERS: u32 = 11;
/** labels of each endpoint, as numbers · control thread · none: before the endpoint is live */
export const REGION_LABELS: u32 = 12;
/** ring of the last measured outcomes, per thread · its thread · none: the count is stored last */
export const REGION_SAMPLE_RING: u32 = 13;
/** coefficients of the latency model per endpoint · control thread · commit lock */
export const REGION_PREDICTION: u32 = 14;
/**
 * learned cost model, then per thread what its terms decided · coefficients: control thread; the rest: its thread ·
 * coefficients: commit lock; the rest: none
 */
export const REGION_COEFFICIENTS: u32 = 15;
/** capacity of the endpoints and requests that wait for it · any thread · commit lock; rings: none */
export const REGION_GATE: u32 = 16;
/**
 * ring of the prompts placed last, per thread, for replicas · its thread, emptied by the control thread · none: the
 * count is stored last
 */
export const REGION_CHANGES: u32 = 17;
/** sessions, their anchors and what they hold on endpoints · any thread · commit lock; anchors are read without */
export const REGION_SESSIONS: u32 = 18;
export const REGION_COUNT: u32 = 19;

// Endpoint columns: one array per field, ENDPOINT_COLUMNS arrays of SLOTS 32-bit (or 64-bit, two columns) cells.
export const ENDPOINT_COLUMNS: u32 = 78;
// Behind them one column that follows from others, and so is no part of a recorded state: predicted waiting counts
// (columns/waiting.ts).

// Ledger: 64 bytes of common head, 64 bytes of head per thread, then REQUESTS entries: 64 bytes of charge and 64 of
// features.
export const LEDGER_ENTRY_BYTES: usize = 128;
// Behind the entries one hearing for each: the last output of its request (load/silence.ts).
export const HEARING_BYTES: usize = 16;

// Adapters: 64 name hashes (u64) per slot, running ones first, then waiting ones.
export const ADAPTERS_PER_ENDPOINT: u32 = 64;
// Behind them 16 name hashes per slot of the adapters sent there last, newest first (load/adapters.ts).
export const ADAPTERS_REMEMBERED: u32 = 16;
// Behind them SHOWN_ADAPTERS name hashes that any engine has shown as adapters (load/shown-adapters.ts).
export const SHOWN_ADAPTERS: u32 = 4096;

// Labels: LABEL_COLUMNS pairs of columns of SLOTS 32-bit cells: the two halves of a hash, or the ends of a range.
export const LABEL_COLUMNS: u32 = 16;

// Latency model: 64 bytes of head, the coefficients of an endpoint that is not known yet, then PREDICTION_COEFFICIENTS
// columns of SLOTS 32-bit floats (time to first token, then time per output token), and one that says whether they were
// learned.
export const PREDICTION_FEATURES: u32 = 7;
export const PREDICTION_COEFFICIENTS: u32 = 14;
export const PREDICTION_HEAD_BYTES: usize = 128;

// Programs: PROGRAM_COUNT programs of 64 bytes of head and PROGRAM_OPS operations of 64 bytes.
export const PROGRAM_COUNT: u32 = 64;
export const PROGRAM_OPS: u32 = 63;
export const PROGRAM_BYTES: usize = 4096;

// Masks over endpoint slots, kept by the control thread for label filters.
export const MASK_COUNT: u32 = 256;

// Sample rings: one per thread, SAMPLE_COUNT records of 128 bytes behind a 64-byte head (response/sample-ring.ts).
export const SAMPLE_COUNT: u32 = 4096;
export const SAMPLE_BYTES: usize = 128;
export const SAMPLE_RING_BYTES: usize = 64 + 4096 * 128;

// Coefficients of the cost model (scheduling/cost-coefficients.ts), then an area per thread (cost-shares.ts there).
export const COEFFICIENT_BYTES: usize = 256;
export const SHARE_BYTES: usize = 64;
export const PROJECTION_BYTES: usize = 768;
/** Scorers of a profile that a projection takes in. */
export const PROJECTION_SCORERS: u32 = 7;

// One thread's own area. Only its thread touches it (the control thread after the thread's death).
export const THREAD_INPUT_BYTES: usize = 262144; // bytes handed from the host to a scanner in one call
export const THREAD_OUTPUT_BYTES: usize = 262144 + 65536; // bytes handed back (a rename may make them longer)
export const THREAD_REQUEST_BYTES: usize = 65536; // the request and the answer of decide (see scheduling/decide.ts)
export const HOST_COLUMNS: u32 = 16; // columns that hook plugins fill
export const EXPLAIN_COLUMNS: u32 = 80; // one column per operation when a decision is explained
export const PREDICTED_COLUMNS: u32 = 4; // predicted times and what is left of the wanted ones

/** Slots of a group in PEAKS. */
export const PEAK_SLOTS: u32 = 64;
const MASK_BYTES: usize = ENDPOINTS_MAX / 8;
/**
 * Subset mask and class mask, then of each group 16 bytes of peaks, 16 of its lowest and 16 of its highest values, and
 * a mark of 4.
 */
const THREAD_MASK_BYTES: usize = 12288;
const GROUPS_MAX: usize = ENDPOINTS_MAX / PEAK_SLOTS;

/** Addresses of this instance; set by attach(), constant afterwards. */
export let SLOTS: u32 = 0;
export let REQUESTS: u32 = 0;
export let CHAIN_BLOCKS: u32 = 0;
export let INDEX_BLOCKS: u32 = 0;
export let THREADS: u32 = 0;
export let SCANS: u32 = 0;
export let THREAD: u32 = 0;
export let HASH_SEED: u64 = 0;
export let ENDPOINTS: usize = 0;
export let WAITING_COUNTS: usize = 0; // f32 × SLOTS, behind the endpoint columns (columns/waiting.ts)
export let LEDGER: usize = 0;
export let PROGRAMS: usize = 0;
export let MASKS: usize = 0;
export let PREFIX: usize = 0;
export let ACTIVE: usize = 0;
export let SCAN_REGION: usize = 0; // this thread's part
export let RESPONSE_REGION: usize = 0; // this thread's part
export let DECISIONS: usize = 0; // this thread's decision log
export let SAMPLE_RING: usize = 0; // this thread's ring
export let CHANGES: usize = 0; // this thread's ring of placed prompts, 0 = none
export let CHANGE_BYTES: u32 = 0;
export let COEFFICIENTS: usize = 0;
export let ADAPTERS: usize = 0;
export let LABELS: usize = 0;
export let PREDICTION: usize = 0;
export let INPUT: usize = 0;
export let OUTPUT: usize = 0;
export let REQUEST: usize = 0;
export let SUBSET: usize = 0; // SLOTS/8 bytes: the subset mask of the request
export let CLASS: usize = 0; // SLOTS/8 bytes: the slots that may serve it, whether they have room or not
export let MATCH: usize = 0; // u32 × SLOTS: blocks matched, contiguous from block 0
export let OVERLAP: usize = 0; // u32 × SLOTS: of the prompt's blocks, those already active on the endpoint
export let SCORE: usize = 0; // f32 × SLOTS: weighted sum
export let KEYS: usize = 0; // f32 × SLOTS: scratch of scorers and pickers
export let PEAKS: usize = 0; // f32 × 4 per group of PEAK_SLOTS slots: highest scores of its candidates, by lane
export let LOWS: usize = 0; // f32 × 4 per group: lowest values of its candidates, by lane
export let HIGHS: usize = 0; // f32 × 4 per group: highest values of its candidates, by lane
export let MARKS: usize = 0; // u32 per group: whether its scores have to be made anew (scheduling/standing-scores.ts)
export let VALUES: usize = 0; // f32 × SLOTS: predicted waiting counts that the scores of fused scorers were made from
export let CANDIDATES: usize = 0; // u32 × SLOTS: slots still in the race
export let KEPT: usize = 0; // i32 × SLOTS: scratch of filters
// U32 × SLOTS: what removed a slot from the race, 0 = nothing (see scheduling/removals.ts)
export let REMOVED: usize = 0;
export let HOST: usize = 0; // f32 × SLOTS × HOST_COLUMNS
export let EXPLAIN: usize = 0; // f32 × SLOTS × EXPLAIN_COLUMNS
// F32 × SLOTS × PREDICTED_COLUMNS: what is predicted for the request (see scheduling/predictions.ts)
export let PREDICTED: usize = 0;
export let HASHES: usize = 0; // u64 × (CHAIN_BLOCKS + SPARE_HASHES): the chain hashes of the prompt

/**
 * Bytes of the head of a ring of placed prompts: what its thread writes, then what the control thread writes, a line
 * each.
 */
export const CHANGE_HEAD_BYTES: usize = 128;

/** Address of a thread's ring of placed prompts. */
export function changesAddress(thread: u32): usize {
  if (ASSERTIONS) assert(thread < THREADS, 'the thread is one of the pool');
  return regionAddress(REGION_CHANGES) + <usize>thread * (CHANGE_HEAD_BYTES + load<u32>(HEADER + HEADER_CHANGE_BYTES));
}

/** Bytes of one thread's own area for `p` endpoint slots and prompts of at most `c` blocks. */
export function threadBytes(p: u32, c: u32): u64 {
  let bytes: u64 = THREAD_INPUT_BYTES + THREAD_OUTPUT_BYTES + THREAD_REQUEST_BYTES;
  bytes += THREAD_MASK_BYTES;
  bytes += <u64>p * 4 * (8 + HOST_COLUMNS + EXPLAIN_COLUMNS + PREDICTED_COLUMNS);
  bytes += (<u64>c + SPARE_HASHES) * 8;
  return (bytes + 65535) & ~(<u64>65535);
}

/** Row of the table of regions. */
@unmanaged
export class RegionRow {
  /** Offset of the region in pages of 64 KiB · creator · none, written before any thread attaches. */
  page: u32;
  /** Size of the region in pages of 64 KiB · creator · none, written before any thread attaches. */
  pages: u32;
}

export function regionRow(region: u32): RegionRow {
  return changetype<RegionRow>(HEADER + HEADER_REGIONS + <usize>region * offsetof<RegionRow>());
}

/** Address of a region's first byte. */
export function regionAddress(region: u32): usize {
  if (ASSERTIONS) assert(region < REGION_COUNT, 'the region is one of the memory');
  return (<usize>regionRow(region).page) << 16;
}

/** Size of a region in bytes, rounded up to whole pages. */
export function regionSize(region: u32): u32 {
  if (ASSERTIONS) assert(region < REGION_COUNT, 'the region is one of the memory');
  return regionRow(region).pages << 16;
}

/** Address of a thread's own area (input, output, request, columns, hashes: in this order). */
export function threadAddress(thread: u32): usize {
  if (ASSERTIONS) assert(thread < THREADS, 'the thread is one of the pool');
  return (
    regionAddress(REGION_THREADS) +
    <usize>(<u64>thread * threadBytes(load<u32>(HEADER + HEADER_ENDPOINTS), load<u32>(HEADER + HEADER_CHAIN_BLOCKS)))
  );
}

/** Address of a thread's telemetry cells. */
export function telemetryAddress(thread: u32): usize {
  if (ASSERTIONS) assert(thread < THREADS, 'the thread is one of the pool');
  return regionAddress(REGION_TELEMETRY) + <usize>thread * load<u32>(HEADER + HEADER_TELEMETRY_BYTES);
}

/**
 * Takes the sizes in the header and the number of this thread.
 * @returns 0, or 1 when the memory carries another magic or layout version, 2 when the thread number is out of range.
 */
export function bindSizes(thread: u32): u32 {
  if (load<u32>(HEADER + HEADER_MAGIC) != MAGIC || load<u32>(HEADER + HEADER_VERSION) != LAYOUT_VERSION) return 1;
  SLOTS = load<u32>(HEADER + HEADER_ENDPOINTS);
  INDEX_BLOCKS = load<u32>(HEADER + HEADER_INDEX_BLOCKS);
  REQUESTS = load<u32>(HEADER + HEADER_REQUESTS);
  CHAIN_BLOCKS = load<u32>(HEADER + HEADER_CHAIN_BLOCKS);
  THREADS = load<u32>(HEADER + HEADER_THREADS);
  SCANS = load<u32>(HEADER + HEADER_SCANS);
  if (thread >= THREADS) return 2;
  THREAD = thread;
  HASH_SEED = load<u64>(HEADER + HEADER_HASH_SEED_LOW);
  return 0;
}

/**
 * Sets this instance's addresses, after bindSizes().
 * @param scanBytes bytes of one thread's part of REGION_SCANS, `responseBytes` of REGION_RESPONSES, `decisionBytes` of
 * REGION_DECISIONS
 */
export function bindAddresses(scanBytes: u64, responseBytes: u64, decisionBytes: u64): void {
  const thread = THREAD;
  ENDPOINTS = regionAddress(REGION_ENDPOINTS);
  WAITING_COUNTS = ENDPOINTS + <usize>ENDPOINT_COLUMNS * SLOTS * 4;
  LEDGER = regionAddress(REGION_LEDGER);
  PROGRAMS = regionAddress(REGION_PROGRAMS);
  MASKS = regionAddress(REGION_MASKS);
  PREFIX = regionAddress(REGION_PREFIX);
  ACTIVE = regionAddress(REGION_ACTIVE);
  DECISIONS = regionAddress(REGION_DECISIONS) + <usize>(<u64>thread * decisionBytes);
  SAMPLE_RING = regionAddress(REGION_SAMPLE_RING) + <usize>thread * SAMPLE_RING_BYTES;
  CHANGE_BYTES = load<u32>(HEADER + HEADER_CHANGE_BYTES);
  CHANGES = CHANGE_BYTES == 0 ? 0 : changesAddress(thread);
  COEFFICIENTS = regionAddress(REGION_COEFFICIENTS);
  ADAPTERS = regionAddress(REGION_ADAPTERS);
  LABELS = regionAddress(REGION_LABELS);
  PREDICTION = regionAddress(REGION_PREDICTION);
  SCAN_REGION = regionAddress(REGION_SCANS) + <usize>(<u64>thread * scanBytes);
  RESPONSE_REGION = regionAddress(REGION_RESPONSES) + <usize>(<u64>thread * responseBytes);
  let at = threadAddress(thread);
  const column = <usize>SLOTS * 4;
  INPUT = at;
  at += THREAD_INPUT_BYTES;
  OUTPUT = at;
  at += THREAD_OUTPUT_BYTES;
  REQUEST = at;
  at += THREAD_REQUEST_BYTES;
  SUBSET = at;
  CLASS = at + MASK_BYTES;
  PEAKS = at + 2 * MASK_BYTES;
  LOWS = PEAKS + 16 * GROUPS_MAX;
  HIGHS = LOWS + 16 * GROUPS_MAX;
  MARKS = HIGHS + 16 * GROUPS_MAX;
  at += THREAD_MASK_BYTES;
  MATCH = at;
  at += column;
  OVERLAP = at;
  at += column;
  SCORE = at;
  at += column;
  KEYS = at;
  at += column;
  VALUES = at;
  at += column;
  CANDIDATES = at;
  at += column;
  KEPT = at;
  at += column;
  REMOVED = at;
  at += column;
  HOST = at;
  at += column * HOST_COLUMNS;
  EXPLAIN = at;
  at += column * EXPLAIN_COLUMNS;
  PREDICTED = at;
  at += column * PREDICTED_COLUMNS;
  HASHES = at;
}

/** An address of this instance, which is attached to a pool. */
export function attached(address: usize): usize {
  if (ASSERTIONS) assert(address != 0, 'this instance is attached to a pool');
  return address;
}

export function inputAddress(): usize {
  return attached(INPUT);
}
export function outputAddress(): usize {
  return attached(OUTPUT);
}
export function requestAddress(): usize {
  return attached(REQUEST);
}
export function subsetAddress(): usize {
  return attached(SUBSET);
}
export function matchAddress(): usize {
  return attached(MATCH);
}
export function overlapAddress(): usize {
  return attached(OVERLAP);
}
export function hostAddress(): usize {
  return attached(HOST);
}
export function explainAddress(): usize {
  return attached(EXPLAIN);
}
export function predictedAddress(): usize {
  return attached(PREDICTED);
}
export function hashesAddress(): usize {
  return attached(HASHES);
}
