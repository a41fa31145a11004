// Layout of the decision log: its records (scheduling/decision-log.ts writes them), and the columns that some decisions
// keep (scheduling/decision-columns.ts).
//
// Owns: nothing by itself; the log is each thread's part of REGION_DECISIONS, written by that thread and read without a
// lock.
import { DECISIONS, HEADER, HEADER_DECISION_COLUMN_BYTES } from '../memory';

/** Head of a thread's part. */
@unmanaged
export class DecisionLogHead {
  /** Records made, wraps around; stored when the record is whole · its thread · none. */
  made: u32;
  /** Units of columns taken, wraps around; stored before they are written · its thread · none. */
  units: u32;
  /** Tokens of prompts that picked endpoints have to compute · its thread · none. */
  computed: u64;
  /** Those of them that no endpoint held any more, because its room went to others · its thread · none. */
  evicted: u64;
}

/** Head of this thread's part. */
export function decisionLogHead(): DecisionLogHead {
  return changetype<DecisionLogHead>(DECISIONS);
}

/** One decision, or a request that ended without one. */
@unmanaged
export class DecisionRecord {
  /** Milliseconds of the pool clock · its thread · none. */
  time: f64;
  /** Number of the record, wraps around · its thread · none. */
  number: u32;
  /** Thread that decided · its thread · none. */
  thread: u32;
  /** DECIDED or DECIDE_* status · its thread · none. */
  status: u32;
  /** Number of the profile · its thread · none. */
  profile: u32;
  /** Slot of the first pick, u32.MAX_VALUE = none · its thread · none. */
  slot: u32;
  /** Endpoints left after the filters · its thread · none. */
  candidates: u32;
  /** Blocks that the first pick held already · its thread · none. */
  matched: u32;
  /** Blocks of the prompt, tail included · its thread · none. */
  total: u32;
  /** Weighted score of the first pick · its thread · none. */
  score: f32;
  /** Tokens of the prompt · its thread · none. */
  promptTokens: u32;
  /** Tokens charged for the first pick · its thread · none. */
  uncachedTokens: u32;
  /** 1 = a further profile of the request decided before · its thread · none. */
  further: u32;
  /** Tag of the program that decided · its thread · none. */
  tag: u32;
  /** Generation of the slot · its thread · none. */
  generation: u32;
  /** Tokens of a block · its thread · none. */
  blockTokens: u32;
  /** Most blocks of the prompt that any endpoint held · its thread · none. */
  bestMatched: u32;
  /** Slot with that match, u32.MAX_VALUE = none · its thread · none. */
  bestSlot: u32;
  /** Reason why that slot was not picked, REMOVED_*, or the operation + 1; 0 = it scored less · its thread · none. */
  bestRemoved: u32;
  /** Unit of its columns + 1, 0 = none were kept · its thread · none. */
  columns: u32;
  /** Priority · its thread · none. */
  priority: i32;
  /** Milliseconds in the queues before the decision · its shard · none. */
  waitedMs: f32;
  /** Series of the request's labels, 0 = unknown · its shard · none. */
  series: u32;
  /** End of the request: END_* · its shard · none. */
  end: u32;
  /** HTTP status of the refusal or of the answer, 0 = unknown · its shard · none. */
  httpStatus: u32;
  /** Milliseconds from the decision to the first output, NaN = none · its shard · none. */
  firstOutputMs: f32;
  /** Milliseconds from the decision to the end · its shard · none. */
  durationMs: f32;
  /** Output tokens, u32.MAX_VALUE = unknown · its shard · none. */
  outputTokens: u32;
  /** Prompt tokens as the engine counts them, u32.MAX_VALUE = unknown · its shard · none. */
  enginePromptTokens: u32;
  /** Cached prompt tokens as the engine tells them, u32.MAX_VALUE = it has not · its thread · none. */
  cachedTokens: u32;
  /** Endpoints that only the capacity gate closed · its thread · none. */
  closed: u32;
  /** Bytes of the request id, of which the first DECISION_ID_BYTES follow at DECISION_ID · its thread · none. */
  idLength: u32;
  /**
   * Slot + 1 that the shadow program would have picked, 0 = no shadow program ran, u32.MAX_VALUE = it picked none · its
   * thread · none.
   */
  shadow: u32;
  /** Predicted cost of the shadow pick, in targets · its thread · none. */
  shadowCost: f32;
  /** Predicted cost of the first pick, in targets; only beside a shadow pick · its thread · none. */
  pickCost: f32;
  /** LOSS_* cause for which no endpoint held the blocks behind bestMatched, 0 = none is known · its thread · none. */
  lost: u32;
  /** Number of the bound that refused the request, 0 = none is known · its shard · none. */
  bound: u32;
  /** Use of that bound, NaN = no number · its shard · none. */
  boundUsed: f32;
  /** Limit of that bound, NaN = no number · its shard · none. */
  boundLimit: f32;
  /** Blocks that the first pick held at each place (placesOf), 0 = all on the GPU · its thread · none. */
  places: u64;
  /** FOUND_* fate of the session of the prompt, with FOUND_BY_HEADER · its thread · none. */
  sessionFate: u8;
  /** LOOK_* of the look at the room for its turn · its thread · none. */
  sessionLook: u8;
  /** Turns before this one, 255 = that many or more · its thread · none. */
  sessionTurns: u8;
  /** Bin of the longest age at which such a session is kept, + 1; 0 = at none · its thread · none. */
  sessionKept: u8;
  /** Slot of its last turn, NO_HOME = none · its thread · none. */
  sessionHome: u16;
  /** Tenths of a second that it was idle: when it lost its place, or by now · its thread · none. */
  sessionIdle: u16;
  /** Tokens that it had after its last turn · its thread · none. */
  sessionTokens: u32;
  /** Those of them that it shares with others · its thread · none. */
  sessionShared: u32;
  /** Least tokens that a candidate must have room for, 0 = no endpoint was looked at · its thread · none. */
  sessionNeed: u32;
}

/** Head of a decision's columns. */
@unmanaged
export class DecisionColumnsHead {
  /** Number of the record of these columns · its thread · none. */
  number: u32;
  /** Operations of the program · its thread · none. */
  operations: u32;
  /** Endpoints behind this head · its thread · none. */
  endpoints: u32;
  /** Endpoints of the pool beyond those · its thread · none. */
  omitted: u32;
  /** 1 = the scorers' columns are there · its thread · none. */
  scored: u32;
  /** Share of every endpoint that the request's band may fill, NaN = no gate · its thread · none. */
  ceiling: f32;
}

/** One endpoint as the decision saw it, before its charge. */
@unmanaged
export class DecisionEndpoint {
  /** Slot · its thread · none. */
  slot: u32;
  /** Generation of the slot · its thread · none. */
  generation: u32;
  /** REMOVED_*, or the operation + 1 that removed it; 0 = candidate · its thread · none. */
  removed: u32;
  /** SIGNAL_* bits that were known · its thread · none. */
  known: u32;
  /** Blocks of the prompt that it held · its thread · none. */
  matched: u32;
  /** STATE_* · its thread · none. */
  state: u16;
  /**
   * 0 in, 1 ejected, 2 ejected with a probe under way, 3 in doubt, 4 dead; EJECTION_SILENT is added while it is silent
   * · its thread · none.
   */
  ejection: u16;
  /** Position among the picks + 1, 0 = not picked · its thread · none. */
  rank: u16;
  /** Requests that its engine refused of late, a part of `waiting`, 65,535 at most · its thread · none. */
  refused: u16;
  /** Waiting requests at the last scrape · its thread · none. */
  waiting: f32;
  /** Running requests at the last scrape · its thread · none. */
  running: f32;
  /** Share of the KV cache in use · its thread · none. */
  kvUsage: f32;
  /** Milliseconds by which the signals have aged: 0 while the next scrape is not due · its thread · none. */
  signalAge: f32;
  /** Requests in flight · its thread · none. */
  inflight: u32;
  /** Uncached prompt tokens in flight · its thread · none. */
  inflightTokens: u32;
  /** Blocks in use by running requests · its thread · none. */
  activeBlocks: u32;
  /** Weighted score · its thread · none. */
  score: f32;
  /** Predicted time to first token, ms, NaN = no prediction · its thread · none. */
  predictedTtft: f32;
  /** Prefill window of the capacity gate, tokens, NaN = no gate · its thread · none. */
  window: f32;
  /** Learned limit of requests of the capacity gate, NaN = no gate · its thread · none. */
  limit: f32;
  /** Prompt tokens pending there for the lowest band · its thread · none. */
  pending: u32;
  /** Use of what the gate allows there, 1 = full, NaN = no gate · its thread · none. */
  saturation: f32;
  /** Waiting requests as predicted for the decision · its thread · none. */
  predictedWaiting: f32;
}

export const DECISION_BYTES: usize = 256;
export const DECISION_HEAD_BYTES: usize = 64;
/** Bytes of a request id that a record keeps. */
export const DECISION_ID_BYTES: u32 = 64;
/** Endpoints of columns that are written aside, and bytes that these take at most. */
export const BRIEF_ENDPOINTS: u32 = 16;
export const BRIEF_BYTES: usize = 2688;
/** Endpoints of which a decision's columns are kept at most. */
export const DECISION_ENDPOINTS_MAX: u32 = 256;
/** Scorers of which they are kept at most, and where they stand in a DecisionEndpoint. */
export const DECISION_SCORES_MAX: u32 = 12;
export const DECISION_SCORES: usize = 84;
/** Tokens of its cache that sessions leave, f32, NaN = unknown, behind its scores. */
export const DECISION_ENDPOINT_ROOM: usize = 132;
/** Blocks that the endpoint held at each place (placesOf), u64, behind that. */
export const DECISION_ENDPOINT_PLACES: usize = 136;
export const DECISION_ENDPOINT_BYTES: usize = 144;

export const DECISION_TIME: usize = offsetof<DecisionRecord>('time');
export const DECISION_NUMBER: usize = offsetof<DecisionRecord>('number');
export const DECISION_THREAD: usize = offsetof<DecisionRecord>('thread');
export const DECISION_STATUS: usize = offsetof<DecisionRecord>('status');
export const DECISION_PROFILE: usize = offsetof<DecisionRecord>('profile');
export const DECISION_SLOT: usize = offsetof<DecisionRecord>('slot');
export const DECISION_CANDIDATES: usize = offsetof<DecisionRecord>('candidates');
export const DECISION_MATCHED: usize = offsetof<DecisionRecord>('matched');
export const DECISION_TOTAL: usize = offsetof<DecisionRecord>('total');
export const DECISION_SCORE: usize = offsetof<DecisionRecord>('score');
export const DECISION_PROMPT_TOKENS: usize = offsetof<DecisionRecord>('promptTokens');
export const DECISION_UNCACHED_TOKENS: usize = offsetof<DecisionRecord>('uncachedTokens');
export const DECISION_FURTHER: usize = offsetof<DecisionRecord>('further');
export const DECISION_TAG: usize = offsetof<DecisionRecord>('tag');
export const DECISION_GENERATION: usize = offsetof<DecisionRecord>('generation');
export const DECISION_BLOCK_TOKENS: usize = offsetof<DecisionRecord>('blockTokens');
export const DECISION_BEST_MATCHED: usize = offsetof<DecisionRecord>('bestMatched');
export const DECISION_BEST_SLOT: usize = offsetof<DecisionRecord>('bestSlot');
export const DECISION_BEST_REMOVED: usize = offsetof<DecisionRecord>('bestRemoved');
export const DECISION_COLUMNS: usize = offsetof<DecisionRecord>('columns');
export const DECISION_PRIORITY: usize = offsetof<DecisionRecord>('priority');
export const DECISION_WAITED: usize = offsetof<DecisionRecord>('waitedMs');
export const DECISION_SERIES: usize = offsetof<DecisionRecord>('series');
export const DECISION_END: usize = offsetof<DecisionRecord>('end');
export const DECISION_HTTP_STATUS: usize = offsetof<DecisionRecord>('httpStatus');
export const DECISION_FIRST_OUTPUT: usize = offsetof<DecisionRecord>('firstOutputMs');
export const DECISION_DURATION: usize = offsetof<DecisionRecord>('durationMs');
export const DECISION_OUTPUT_TOKENS: usize = offsetof<DecisionRecord>('outputTokens');
export const DECISION_ENGINE_PROMPT: usize = offsetof<DecisionRecord>('enginePromptTokens');
export const DECISION_CACHED: usize = offsetof<DecisionRecord>('cachedTokens');
export const DECISION_CLOSED: usize = offsetof<DecisionRecord>('closed');
export const DECISION_ID_LENGTH: usize = offsetof<DecisionRecord>('idLength');
export const DECISION_SHADOW: usize = offsetof<DecisionRecord>('shadow');
export const DECISION_SHADOW_COST: usize = offsetof<DecisionRecord>('shadowCost');
export const DECISION_PICK_COST: usize = offsetof<DecisionRecord>('pickCost');
export const DECISION_LOST: usize = offsetof<DecisionRecord>('lost');
export const DECISION_BOUND: usize = offsetof<DecisionRecord>('bound');
export const DECISION_BOUND_USED: usize = offsetof<DecisionRecord>('boundUsed');
export const DECISION_BOUND_LIMIT: usize = offsetof<DecisionRecord>('boundLimit');
export const DECISION_PLACES: usize = offsetof<DecisionRecord>('places');
export const DECISION_SESSION_FATE: usize = offsetof<DecisionRecord>('sessionFate');
export const DECISION_SESSION_LOOK: usize = offsetof<DecisionRecord>('sessionLook');
export const DECISION_SESSION_TURNS: usize = offsetof<DecisionRecord>('sessionTurns');
export const DECISION_SESSION_KEPT: usize = offsetof<DecisionRecord>('sessionKept');
export const DECISION_SESSION_HOME: usize = offsetof<DecisionRecord>('sessionHome');
export const DECISION_SESSION_IDLE: usize = offsetof<DecisionRecord>('sessionIdle');
export const DECISION_SESSION_TOKENS: usize = offsetof<DecisionRecord>('sessionTokens');
export const DECISION_SESSION_SHARED: usize = offsetof<DecisionRecord>('sessionShared');
export const DECISION_SESSION_NEED: usize = offsetof<DecisionRecord>('sessionNeed');
export const DECISION_ID: usize = 192;

export const DECISION_COLUMNS_NUMBER: usize = offsetof<DecisionColumnsHead>('number');
export const DECISION_COLUMNS_OPERATIONS: usize = offsetof<DecisionColumnsHead>('operations');
export const DECISION_COLUMNS_ENDPOINTS: usize = offsetof<DecisionColumnsHead>('endpoints');
export const DECISION_COLUMNS_OMITTED: usize = offsetof<DecisionColumnsHead>('omitted');
export const DECISION_COLUMNS_SCORED: usize = offsetof<DecisionColumnsHead>('scored');
export const DECISION_COLUMNS_CEILING: usize = offsetof<DecisionColumnsHead>('ceiling');
export const DECISION_COLUMNS_HEAD_BYTES: usize = 64;
/** An operation of the program that decided, as the columns list it. */
@unmanaged
export class LoggedOperation {
  /** OP_* · its thread · none. */
  code: u32;
  /** Weight of a scorer · its thread · none. */
  weight: f32;
}

export const DECISION_OPERATION_BYTES: usize = offsetof<LoggedOperation>();
export const DECISION_OPERATION_WEIGHT: usize = offsetof<LoggedOperation>('weight');
/** Unit in which the columns of a decision, and their list of operations, take room. */
export const DECISION_UNIT_BYTES: usize = 64;

export const DECISION_LOG_UNITS: usize = offsetof<DecisionLogHead>('units');
export const DECISION_LOG_COMPUTED: usize = offsetof<DecisionLogHead>('computed');
export const DECISION_LOG_EVICTED: usize = offsetof<DecisionLogHead>('evicted');

export const DECISION_ENDPOINT_SLOT: usize = offsetof<DecisionEndpoint>('slot');
export const DECISION_ENDPOINT_REMOVED: usize = offsetof<DecisionEndpoint>('removed');
export const DECISION_ENDPOINT_GENERATION: usize = offsetof<DecisionEndpoint>('generation');
export const DECISION_ENDPOINT_KNOWN: usize = offsetof<DecisionEndpoint>('known');
export const DECISION_ENDPOINT_MATCHED: usize = offsetof<DecisionEndpoint>('matched');
export const DECISION_ENDPOINT_STATE: usize = offsetof<DecisionEndpoint>('state');
/** What is added to DEATH_* of an endpoint that is in doubt or dead. */
export const EJECTION_DEATH: u32 = 2;
/** Added to `ejection` of a silent endpoint. */
export const EJECTION_SILENT: u32 = 8;
export const DECISION_ENDPOINT_EJECTION: usize = offsetof<DecisionEndpoint>('ejection');
export const DECISION_ENDPOINT_RANK: usize = offsetof<DecisionEndpoint>('rank');
export const DECISION_ENDPOINT_REFUSED: usize = offsetof<DecisionEndpoint>('refused');
export const DECISION_ENDPOINT_WAITING: usize = offsetof<DecisionEndpoint>('waiting');
export const DECISION_ENDPOINT_RUNNING: usize = offsetof<DecisionEndpoint>('running');
export const DECISION_ENDPOINT_KV_USAGE: usize = offsetof<DecisionEndpoint>('kvUsage');
export const DECISION_ENDPOINT_AGE: usize = offsetof<DecisionEndpoint>('signalAge');
export const DECISION_ENDPOINT_INFLIGHT: usize = offsetof<DecisionEndpoint>('inflight');
export const DECISION_ENDPOINT_TOKENS: usize = offsetof<DecisionEndpoint>('inflightTokens');
export const DECISION_ENDPOINT_ACTIVE: usize = offsetof<DecisionEndpoint>('activeBlocks');
export const DECISION_ENDPOINT_SCORE: usize = offsetof<DecisionEndpoint>('score');
export const DECISION_ENDPOINT_TTFT: usize = offsetof<DecisionEndpoint>('predictedTtft');
export const DECISION_ENDPOINT_WINDOW: usize = offsetof<DecisionEndpoint>('window');
export const DECISION_ENDPOINT_LIMIT: usize = offsetof<DecisionEndpoint>('limit');
export const DECISION_ENDPOINT_PENDING: usize = offsetof<DecisionEndpoint>('pending');
export const DECISION_ENDPOINT_SATURATION: usize = offsetof<DecisionEndpoint>('saturation');
export const DECISION_ENDPOINT_PREDICTED_WAITING: usize = offsetof<DecisionEndpoint>('predictedWaiting');

/** Reasons in the REMOVED column beside the operations (1 .. 63). */
export const REMOVED_BY_SESSIONS: u32 = 250; // no room beside the sessions there, or its own session is elsewhere
export const REMOVED_ASIDE: u32 = 251; // it has room; the request waits shortly for another that holds its prefix
/** no request may go on before those that wait, or before its tenant's bucket is looked at */
export const REMOVED_BEHIND: u32 = 252;
export const REMOVED_OUTSIDE_SUBSET: u32 = 253; // the proxy's hint leaves it out
export const REMOVED_BY_GATE: u32 = 254; // no room
export const REMOVED_NOT_ADMITTED: u32 = 255; // free, draining, ejected, in doubt or dead

/** End of a request; the numbers below are OUTCOME_* + 1. */
export const END_OPEN: u32 = 0;
export const END_REFUSED: u32 = 16; // answered with an error by this picker
export const END_ABANDONED: u32 = 17; // a later profile failed, or the client went away before an answer

/** Values of TRAIL_COLUMNS: columns as the sampling says, always, or at least aside for the thread. */
export const KEEP_ASIDE: u32 = 2;

/**
 * What the shard's trail, and the tap of a recording, set in the REQUEST area before a decision: the id of the request
 * (its length as u32, and its bytes), and which columns are kept.
 */
export const TRAIL_LENGTH: usize = 4096;
export const TRAIL_COLUMNS: usize = 4100; // u32: 0 = as the sampling says, 1 = always, or KEEP_ASIDE
export const TAP_RECORDS: usize = 4104; // u32: 1 = the state of the decision is captured for a recording
export const TRAIL_ID: usize = 4160;

/** Bytes with what fills the last unit. */
export function wholeUnits(bytes: usize): usize {
  return (bytes + DECISION_UNIT_BYTES - 1) & ~(DECISION_UNIT_BYTES - 1);
}

/** Units of the ring of columns of every thread that keeps a log. */
export function columnUnits(): u32 {
  return ringUnits(load<u32>(HEADER + HEADER_DECISION_COLUMN_BYTES) >> 6);
}

/** Units of the ring, without the room for columns aside where that is worth it. */
function ringUnits(all: u32): u32 {
  const brief = <u32>(BRIEF_BYTES >> 6);
  return all >= 4 * brief ? all - brief : all;
}
