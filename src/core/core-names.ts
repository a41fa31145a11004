// Made by `npm run build:wasm` from the built core and assembly/index.ts; do not edit.

// Types of AssemblyScript as they cross the border: integers of 32 bits come back signed (`>>> 0` makes them unsigned),
// truth as 0 or 1.
type Bool = number;
type F32 = number;
type F64 = number;
type I32 = number;
type U32 = number;
type U64 = bigint;
type Usize = number;

/** Constants that the core exports: offsets, sizes, bounds and codes. */
export const CORE = {
  ADAPTERS_PER_ENDPOINT: 64,
  AGGREGATE_LATEST_LABELS: 2,
  AGGREGATE_MAX: 1,
  AGGREGATE_SUM: 0,
  ANSWER_CANDIDATES: 84,
  ANSWER_COUNT: 64,
  ANSWER_FILTER: 104,
  ANSWER_MATCHED: 76,
  ANSWER_PICKS: 256,
  ANSWER_PICK_COST: 116,
  ANSWER_RECORD: 100,
  ANSWER_SCORE: 88,
  ANSWER_SHADOW: 108,
  ANSWER_SHADOW_COST: 112,
  ANSWER_TICKET: 68,
  ANSWER_TICKET_GENERATION: 72,
  ANSWER_TOTAL: 80,
  ANSWER_TPOT: 2180,
  ANSWER_TTFT: 2176,
  ANSWER_UNCACHED_TOKENS: 92,
  ANSWER_WOULD_PICK: 96,
  ATTRIBUTE_COLUMNS: 8,
  BRIEF_BYTES: 2688,
  CHAIN_BLOCKS_MAX: 65535,
  CHANGE_HEAD_BYTES: 128,
  CHANGE_LOST: 4,
  CHANGE_PARENT: 1073741824,
  CHANGE_READ: 64,
  CHANGE_SKIP: 4294967295,
  CHANGE_TAIL: 536870912,
  CHANGE_WRITTEN: 0,
  COEFFICIENTS_BYTES: 40,
  COEFFICIENT_BASE: 0,
  COEFFICIENT_FIRST_OUTPUT_TARGET: 28,
  COEFFICIENT_GROWTH: 16,
  COEFFICIENT_MISS_PRICE: 20,
  COEFFICIENT_OUTPUT: 24,
  COEFFICIENT_PER_TOKEN_TARGET: 32,
  COEFFICIENT_PREFILL: 4,
  COEFFICIENT_SLOTS: 36,
  COEFFICIENT_STEP: 12,
  COEFFICIENT_WAITING: 8,
  COLUMN_ACTIVE_BLOCKS: 13,
  COLUMN_ADAPTERS_MAX: 24,
  COLUMN_ADAPTERS_RUNNING: 22,
  COLUMN_ADAPTERS_SENT: 29,
  COLUMN_ADAPTERS_WAITING: 23,
  COLUMN_ATTRIBUTES: 32,
  COLUMN_BLOCK_COUNT: 7,
  COLUMN_BLOCK_TOKENS: 6,
  COLUMN_COST_BASE: 55,
  COLUMN_COST_GROWTH: 59,
  COLUMN_COST_PREFILL: 56,
  COLUMN_COST_STEP: 58,
  COLUMN_COST_WAITING: 57,
  COLUMN_DEATH: 43,
  COLUMN_EJECTED_UNTIL: 20,
  COLUMN_EJECTION: 15,
  COLUMN_FAILURES: 16,
  COLUMN_GENERATION: 1,
  COLUMN_HIT_RELIABILITY: 47,
  COLUMN_INFLIGHT: 11,
  COLUMN_INFLIGHT_TOKENS: 12,
  COLUMN_KNOWN: 2,
  COLUMN_KV_USAGE: 5,
  COLUMN_OUTPUT_BLOCKS: 14,
  COLUMN_PEER_OUTPUT: 53,
  COLUMN_PEER_PREFILL: 51,
  COLUMN_PEER_PROMPT: 52,
  COLUMN_PEER_REQUESTS: 49,
  COLUMN_PEER_TOKENS: 50,
  COLUMN_PREFILL_RATE: 42,
  COLUMN_PREFILL_RATE_PEAK: 48,
  COLUMN_PREFILL_RATE_TIME: 44,
  COLUMN_PREFILL_TOKENS: 40,
  COLUMN_PREFIX_BLOCKS: 25,
  COLUMN_PROMPT_TOKENS: 41,
  COLUMN_RUNNING: 4,
  COLUMN_SIGNAL_TIME: 18,
  COLUMN_SINCE_SCRAPE: 10,
  COLUMN_SLOTS_SEEN: 8,
  COLUMN_SPEED: 46,
  COLUMN_STATE: 0,
  COLUMN_STRICTEST_TPOT: 30,
  COLUMN_WAITING: 3,
  COMPARE_EQUAL: 4,
  COMPARE_GREATER: 2,
  COMPARE_GREATER_OR_EQUAL: 3,
  COMPARE_LESS: 0,
  COMPARE_LESS_OR_EQUAL: 1,
  COMPARE_NOT_EQUAL: 5,
  DEATH_DEAD: 2,
  DEATH_DOUBTED: 1,
  DEATH_NONE: 0,
  DECIDED: 0,
  DECIDE_BASE_MODEL: 32,
  DECIDE_BLIND: 131072,
  DECIDE_BUSY: 3,
  DECIDE_DENIED: 5,
  DECIDE_EXPLAIN: 8,
  DECIDE_FILTERED: 2,
  DECIDE_FURTHER: 512,
  DECIDE_GATED: 65536,
  DECIDE_GIVEN: 1024,
  DECIDE_NO_CANDIDATES: 1,
  DECIDE_NO_PROGRAM: 4,
  DECIDE_NO_WAIT_SLOT: 17,
  DECIDE_QUEUED: 262144,
  DECIDE_SUBSET: 1,
  DECIDE_TAIL: 16,
  DECIDE_UNCHARGED: 2,
  DECIDE_UNDECIDED: 32,
  DECIDE_UNSTORED: 256,
  DECIDE_WAITS: 16,
  DECISION_BEST_MATCHED: 68,
  DECISION_BEST_REMOVED: 76,
  DECISION_BEST_SLOT: 72,
  DECISION_BLOCK_TOKENS: 64,
  DECISION_BOUND: 148,
  DECISION_BOUND_LIMIT: 156,
  DECISION_BOUND_USED: 152,
  DECISION_BYTES: 256,
  DECISION_CACHED: 120,
  DECISION_CANDIDATES: 28,
  DECISION_CLOSED: 124,
  DECISION_COLUMNS: 80,
  DECISION_COLUMNS_CEILING: 20,
  DECISION_COLUMNS_ENDPOINTS: 8,
  DECISION_COLUMNS_HEAD_BYTES: 64,
  DECISION_COLUMNS_NUMBER: 0,
  DECISION_COLUMNS_OMITTED: 12,
  DECISION_COLUMNS_OPERATIONS: 4,
  DECISION_COLUMNS_SCORED: 16,
  DECISION_DURATION: 108,
  DECISION_END: 96,
  DECISION_ENDPOINTS_MAX: 256,
  DECISION_ENDPOINT_ACTIVE: 52,
  DECISION_ENDPOINT_AGE: 40,
  DECISION_ENDPOINT_BYTES: 128,
  DECISION_ENDPOINT_EJECTION: 22,
  DECISION_ENDPOINT_GENERATION: 4,
  DECISION_ENDPOINT_INFLIGHT: 44,
  DECISION_ENDPOINT_KNOWN: 12,
  DECISION_ENDPOINT_KV_USAGE: 36,
  DECISION_ENDPOINT_LIMIT: 68,
  DECISION_ENDPOINT_MATCHED: 16,
  DECISION_ENDPOINT_PENDING: 72,
  DECISION_ENDPOINT_RANK: 24,
  DECISION_ENDPOINT_REMOVED: 8,
  DECISION_ENDPOINT_RUNNING: 32,
  DECISION_ENDPOINT_SATURATION: 76,
  DECISION_ENDPOINT_SCORE: 56,
  DECISION_ENDPOINT_STATE: 20,
  DECISION_ENDPOINT_TOKENS: 48,
  DECISION_ENDPOINT_TTFT: 60,
  DECISION_ENDPOINT_WAITING: 28,
  DECISION_ENDPOINT_WINDOW: 64,
  DECISION_ENGINE_PROMPT: 116,
  DECISION_FIRST_OUTPUT: 104,
  DECISION_FURTHER: 52,
  DECISION_GENERATION: 60,
  DECISION_HEAD_BYTES: 64,
  DECISION_HTTP_STATUS: 100,
  DECISION_ID: 192,
  DECISION_ID_BYTES: 64,
  DECISION_ID_LENGTH: 128,
  DECISION_LOST: 144,
  DECISION_MATCHED: 32,
  DECISION_NUMBER: 8,
  DECISION_OUTPUT_TOKENS: 112,
  DECISION_PICK_COST: 140,
  DECISION_PRIORITY: 84,
  DECISION_PROFILE: 20,
  DECISION_PROMPT_TOKENS: 44,
  DECISION_SCORE: 40,
  DECISION_SCORES: 80,
  DECISION_SCORES_MAX: 12,
  DECISION_SERIES: 92,
  DECISION_SHADOW: 132,
  DECISION_SHADOW_COST: 136,
  DECISION_SLOT: 24,
  DECISION_STATUS: 16,
  DECISION_TAG: 56,
  DECISION_THREAD: 12,
  DECISION_TIME: 0,
  DECISION_TOTAL: 36,
  DECISION_UNCACHED_TOKENS: 48,
  DECISION_WAITED: 88,
  DISPATCH_BUSY: 3,
  DISPATCH_CLOSED: 1,
  DISPATCH_DONE: 0,
  DISPATCH_GONE: 2,
  DISPATCH_NOWHERE: 4,
  DISPATCH_STICKS: 5,
  EJECTION_DEATH: 2,
  ENDPOINTS_MAX: 4096,
  END_ABANDONED: 17,
  END_REFUSED: 16,
  EVENT_PARENT: 1073741824,
  EVENT_REMOVE: 2147483648,
  EVENT_TAIL: 536870912,
  EXPLAIN_COLUMNS: 72,
  EXPORT_AGE: 16,
  EXPORT_BYTES: 4,
  EXPORT_DEPTH: 20,
  EXPORT_HEAD_BYTES: 8,
  EXPORT_LENGTH: 22,
  EXPORT_NEXT: 0,
  EXPORT_PARENT: 4,
  EXPORT_PARENT_HASH: 8,
  EXPORT_SEGMENT_BYTES: 24,
  EXPORT_SPANS: 23,
  FEATURE_ACTIVE_BLOCKS: 48,
  FEATURE_BEST_CACHED: 12,
  FEATURE_INFLIGHT: 16,
  FEATURE_KNOWN: 40,
  FEATURE_KV_USAGE: 36,
  FEATURE_MODEL: 56,
  FEATURE_PREFILL_AHEAD: 20,
  FEATURE_PREFILL_RATE: 44,
  FEATURE_PROMPT: 0,
  FEATURE_PROMPT_AHEAD: 24,
  FEATURE_RUNNING: 32,
  FEATURE_TAG: 52,
  FEATURE_UNCACHED: 8,
  FEATURE_WAITING: 28,
  FORM_ENGINE: 4,
  FORM_ENGINE_EMBED: 5,
  FORM_MESSAGES: 2,
  FORM_RESPONSES: 1,
  FORM_SGLANG: 3,
  FORM_USAGE: 0,
  FORM_VERTEX: 6,
  GATE_CONCURRENCY_HYBRID: 5,
  GATE_CONCURRENCY_REQUESTS: 3,
  GATE_CONCURRENCY_TOKENS: 4,
  GATE_FOOT: 104,
  GATE_LEARNED: 1,
  GATE_OFF: 0,
  GATE_PRIORITIES: 256,
  GATE_UTILIZATION: 2,
  GATE_WAITING: 384,
  HEADER: 65536,
  HEADER_CHAIN_BLOCKS: 20,
  HEADER_CHANGE_BYTES: 64,
  HEADER_COMMIT_LOCK: 4096,
  HEADER_DECISIONS: 44,
  HEADER_DECISION_COLUMN_BYTES: 56,
  HEADER_DECISION_THREADS: 60,
  HEADER_ENDPOINTS: 8,
  HEADER_HASH_SEED_LOW: 32,
  HEADER_INDEX_BLOCKS: 12,
  HEADER_INDEX_LOCK: 4224,
  HEADER_MAGIC: 0,
  HEADER_POOL: 8192,
  HEADER_REGIONS: 512,
  HEADER_REQUESTS: 16,
  HEADER_SCANS: 28,
  HEADER_TELEMETRY_BYTES: 40,
  HEADER_THREADS: 24,
  HEADER_VERSION: 4,
  HEAD_SEGMENT_TOP: 4,
  HOST_COLUMNS: 16,
  KEEP_ASIDE: 2,
  KEYS_MAX: 16,
  KV_TOKENS: 100000,
  LABEL_COLUMNS: 16,
  LABEL_COUNT: 4096,
  LAYOUT_VERSION: 20,
  LOSS_CAPACITY: 1,
  LOSS_CLEARED: 5,
  LOSS_EVENTS: 6,
  LOSS_FRONT: 9,
  LOSS_GONE: 7,
  LOSS_INDEX_FULL: 2,
  LOSS_RESTARTED: 4,
  LOSS_ROOT: 8,
  LOSS_TOLD: 3,
  MAGIC: 1297306704,
  MASK_COUNT: 256,
  MEDIUM_AUDIO: 3,
  MEDIUM_IMAGE: 1,
  MEDIUM_VIDEO: 2,
  METRIC_ABSENT_MATCH: 48,
  METRIC_AGGREGATE: 24,
  METRIC_CAPTURE: 44,
  METRIC_HEAD: 0,
  METRIC_HEAD_MASK: 8,
  METRIC_LABELS: 8,
  METRIC_LABEL_COUNT: 36,
  METRIC_LABEL_LIST: 40,
  METRIC_MATCHERS: 8,
  METRIC_MATCHER_COUNT: 28,
  METRIC_MATCHER_LIST: 32,
  METRIC_NAME: 16,
  METRIC_NAME_BYTES: 20,
  MODE_BODY: 1,
  MODE_EVENTS: 0,
  NAME_BYTES_MAX: 1024,
  NOTED_DOUBTED: 2,
  NOTED_EJECTED: 1,
  OP_ADMIT_LATENCY: 81,
  OP_FILTER_CONCURRENCY: 10,
  OP_FILTER_CONTEXT_LENGTH: 8,
  OP_FILTER_HOST: 2,
  OP_FILTER_LOWEST: 5,
  OP_FILTER_MASK: 1,
  OP_FILTER_PREFIX_AFFINITY: 7,
  OP_FILTER_RANGE: 4,
  OP_FILTER_STICKY: 11,
  OP_FILTER_THRESHOLD: 3,
  OP_FILTER_TIER: 82,
  OP_FILTER_TOPOLOGY: 64,
  OP_FILTER_UNSATURATED: 9,
  OP_FILTER_UTILIZATION: 6,
  OP_PICK_BEST_OF: 51,
  OP_PICK_LEAST_REQUEST: 52,
  OP_PICK_MAX_SCORE: 48,
  OP_PICK_RANDOM: 49,
  OP_PICK_ROUND_ROBIN: 53,
  OP_PICK_WEIGHTED_RANDOM: 50,
  OP_PREDICT: 80,
  OP_SCORE_ACTIVE_BLOCKS: 22,
  OP_SCORE_ACTIVE_REQUEST: 20,
  OP_SCORE_ADAPTER: 24,
  OP_SCORE_ATTRIBUTE: 27,
  OP_SCORE_CACHE_AWARE: 33,
  OP_SCORE_CONSISTENT_HASH: 31,
  OP_SCORE_CONTEXT_LENGTH: 29,
  OP_SCORE_EXPLOIT_EXPLORE: 105,
  OP_SCORE_HEADER_LABEL: 26,
  OP_SCORE_HOST: 25,
  OP_SCORE_KV_USAGE: 18,
  OP_SCORE_LATENCY: 83,
  OP_SCORE_LMETRIC: 32,
  OP_SCORE_LOAD_AWARE: 23,
  OP_SCORE_MARGINAL_COST: 96,
  OP_SCORE_NO_HIT_LRU: 28,
  OP_SCORE_PREFIX: 19,
  OP_SCORE_PREFIX_BALANCE: 104,
  OP_SCORE_QUEUE: 16,
  OP_SCORE_RENDEZVOUS: 30,
  OP_SCORE_RUNNING: 17,
  OP_SCORE_TOKEN_LOAD: 21,
  OP_SCORE_TOPOLOGY: 67,
  OP_WOULD_PICK: 97,
  OUTCOME_ABORTED: 3,
  OUTCOME_COMPLETED: 0,
  OUTCOME_DIVERTED: 4,
  OUTCOME_FAILED: 1,
  OUTCOME_REFUSED: 2,
  POOL_DEAD: 172,
  POOL_EJECTED: 136,
  POOL_EJECTION_OFF: 140,
  POOL_LIVE: 132,
  POOL_PROFILES: 0,
  POOL_SHADOWS: 384,
  POOL_WATCHED: 176,
  POOL_WORDS: 128,
  POOL_WORDS_BYTES: 52,
  PREDICTED_TPOT: 1,
  PREDICTED_TTFT: 0,
  PREDICTION_FEATURES: 7,
  PREDICT_BY_MODEL: 0,
  PREDICT_NOTHING: 3,
  PREDICT_ON_HOST: 1,
  PREDICT_ON_HOST_OR_BY_MODEL: 2,
  PREFIX_BUSY: -1,
  PREFIX_COUNTER_ACTIVE_ENTRIES: 14,
  PREFIX_COUNTER_ACTIVE_REFUSED: 15,
  PREFIX_COUNTER_BLOCKS: 0,
  PREFIX_COUNTER_CLEARED: 17,
  PREFIX_COUNTER_CONFLICTS: 9,
  PREFIX_COUNTER_DROPPED: 7,
  PREFIX_COUNTER_EVICTED: 6,
  PREFIX_COUNTER_GIVE_UPS: 11,
  PREFIX_COUNTER_MEMBERSHIPS: 3,
  PREFIX_COUNTER_ORPHANS: 8,
  PREFIX_COUNTER_REFUSED: 10,
  PREFIX_COUNTER_REMOVED: 5,
  PREFIX_COUNTER_REPAIRS: 16,
  PREFIX_COUNTER_RETRIES: 12,
  PREFIX_COUNTER_SEGMENTS: 1,
  PREFIX_COUNTER_SETS: 2,
  PREFIX_COUNTER_STORED: 4,
  PREFIX_COUNTER_TAILS: 13,
  PROFILES_MAX: 32,
  PROGRAM_BYTES: 4096,
  PROGRAM_COUNT: 64,
  PROGRAM_FUSED: 16,
  PROGRAM_INSERTS: 4,
  PROGRAM_NEEDS_MATCH: 1,
  PROGRAM_NEEDS_OVERLAP: 2,
  PROGRAM_NOTES_ADAPTER: 16,
  PROGRAM_NOTES_COLD: 8,
  PROGRAM_OPS: 63,
  PROGRAM_PROJECTS: 12,
  PROGRAM_TAG: 8,
  PROGRAM_WHOLE_BLOCKS: 32,
  PROJECTION_COSTS: 520,
  PROJECTION_PRODUCTS: 8,
  PROJECTION_SCORERS: 7,
  PROMPT_CHAT: 1,
  PROMPT_COMPLETIONS: 0,
  PROMPT_CONVERSATIONS: 4,
  PROMPT_EMBEDDINGS: 3,
  PROMPT_ENGINE: 9,
  PROMPT_ENGINE_EMBED: 10,
  PROMPT_IMAGES: 5,
  PROMPT_MESSAGES: 6,
  PROMPT_RESPONSES: 2,
  PROMPT_SGLANG: 8,
  PROMPT_TOKENS: 7,
  PROMPT_VERTEX_CHAT: 11,
  PROMPT_VERTEX_RESPONSES: 12,
  QUERY_BYTES: 10304,
  QUERY_COUNT: 0,
  QUERY_LABEL_METRICS: 8,
  QUERY_METRICS: 32,
  QUERY_METRIC_BYTES: 64,
  QUERY_METRIC_LIST: 64,
  QUERY_TEXT: 2112,
  QUERY_TEXT_BYTES: 8192,
  RANGE_ABSENT: -1,
  RANGE_BAD: -2,
  REGION_ADAPTERS: 11,
  REGION_DECISIONS: 10,
  REGION_ENDPOINTS: 0,
  REGION_MASKS: 3,
  REGION_PROGRAMS: 2,
  REGION_SAMPLE_RING: 13,
  REMOVED_ASIDE: 251,
  REMOVED_BEHIND: 252,
  REMOVED_BY_GATE: 254,
  REMOVED_NOT_ADMITTED: 255,
  REMOVED_OUTSIDE_SUBSET: 253,
  REQUEST_ADAPTER: 32,
  REQUEST_BEGINNING: 2304,
  REQUEST_BEGINNING_BYTES: 24,
  REQUEST_BEGINNING_CONTENT: 2304,
  REQUEST_BEGINNING_FRONT: 2320,
  REQUEST_BLOCKS: 8,
  REQUEST_BLOCK_TOKENS: 40,
  REQUEST_FLAGS: 4,
  REQUEST_HELD: 3072,
  REQUEST_HELD_GENERATION: 3076,
  REQUEST_KEYS: 1024,
  REQUEST_NOW: 24,
  REQUEST_OUTPUT_TOKENS: 16,
  REQUEST_PEER: 44,
  REQUEST_PRIORITY: 20,
  REQUEST_PROFILE: 0,
  REQUEST_PROMPT_TOKENS: 12,
  REQUEST_RANDOM: 48,
  REQUEST_WAIT_SLOT: 3080,
  REQUEST_WANTED_TPOT: 2052,
  REQUEST_WANTED_TTFT: 2048,
  RESPONSE_EDITS: 0,
  RESPONSE_EDIT_LIST: 16,
  RESPONSE_HELD_FROM: 4,
  RESPONSE_HOLD_NOTHING: 2147483647,
  RESULT_ANSWERED: 0,
  RESULT_ANSWERED_ITSELF: 3,
  RESULT_FAILED: 1,
  RESULT_UNANSWERED: 2,
  RING_CANCEL: 1073741824,
  ROOM_CAPACITY: 4,
  ROOM_KV_NOW: 5,
  ROOM_KV_RESERVED: 6,
  ROOM_LEARNED_LIMIT: 80,
  ROOM_LIMIT: 3,
  ROOM_OVERDUE: 15,
  ROOM_PENDING: 16,
  ROOM_PENDING_COUNT: 48,
  ROOM_REMOTE_REQUESTS: 86,
  ROOM_STEP: 1,
  ROOM_STRETCH: 14,
  ROOM_TOKEN_MS: 2,
  ROOM_UNANSWERED: 90,
  ROOM_WINDOW: 0,
  SAMPLE_BYTES: 128,
  SAMPLE_CACHED_TOKENS: 104,
  SAMPLE_DURATION: 92,
  SAMPLE_FEATURES: 16,
  SAMPLE_FIRST_OUTPUT: 84,
  SAMPLE_INFLIGHT_AT_END: 108,
  SAMPLE_OUTCOME: 80,
  SAMPLE_OUTPUT_TOKENS: 96,
  SAMPLE_PER_TOKEN: 88,
  SAMPLE_PRIORITY: 116,
  SAMPLE_PROMPT_AT_END: 112,
  SAMPLE_PROMPT_TOKENS: 100,
  SAMPLE_RING_BYTES: 524352,
  SAMPLE_STAGED: 120,
  SCAN_EVENTS: 12,
  SCAN_FLAW_EMPTY: 2,
  SCAN_FLAW_MISSING: 1,
  SCAN_FLAW_SALT: 16,
  SCAN_FLAW_SHAPE: 4,
  SCAN_FLAW_STREAM: 32,
  SCAN_FLAW_SYSTEM: 8,
  SCAN_HEAD_NAME: 64,
  SCAN_HEAD_NAME_BYTES: 4032,
  SCAN_HEAD_OPEN: 0,
  SCAN_HEAD_SHORTAGES: 20,
  SCAN_IMAGE_TOKENS: 225,
  SCAN_IS_OBJECT: 120,
  SCAN_LIMIT_FIRST: 432,
  SCAN_LIMIT_FIRST_LENGTH: 184,
  SCAN_LIMIT_SECOND: 496,
  SCAN_LIMIT_SECOND_LENGTH: 188,
  SCAN_MAX_LIMIT: 64,
  SCAN_MAX_MODEL: 1024,
  SCAN_MAX_SALT: 256,
  SCAN_MEDIA: 3664,
  SCAN_MEDIA_COUNT: 360,
  SCAN_MEDIA_KINDS: 3920,
  SCAN_MODEL: 816,
  SCAN_MODEL_END: 140,
  SCAN_MODEL_KNOWN: 128,
  SCAN_MODEL_LENGTH: 132,
  SCAN_MODEL_START: 136,
  SCAN_POSITION: 16,
  SCAN_PROMPT_END: 156,
  SCAN_PROMPT_START: 152,
  SCAN_REASON: 12,
  SCAN_REASON_BARE: 14,
  SCAN_REASON_BYTE: 1,
  SCAN_REASON_CONTROL: 2,
  SCAN_REASON_DEPTH: 8,
  SCAN_REASON_EMPTY: 10,
  SCAN_REASON_ENDED: 9,
  SCAN_REASON_ESCAPE: 3,
  SCAN_REASON_LENGTH: 11,
  SCAN_REASON_LITERAL: 6,
  SCAN_REASON_MESSAGE: 13,
  SCAN_REASON_NUMBER: 5,
  SCAN_REASON_TRAILING: 7,
  SCAN_REASON_UNICODE: 4,
  SCAN_SALT: 560,
  SCAN_SALT_KNOWN: 144,
  SCAN_SALT_LENGTH: 148,
  SCAN_STREAM: 124,
  SCAN_TOOLS_END: 164,
  SCAN_TOOLS_START: 160,
  SCAN_USAGE: 96,
  SCRAPE_CAPTURES: 333952,
  SCRAPE_CAPTURE_BYTES: 65536,
  SCRAPE_QUERIES: 32,
  SCRAPE_QUERY_LIST: 4224,
  SCRAPE_RESULTS: 128,
  SCRAPE_RESULT_BYTES: 128,
  SCRAPE_RESULT_FOUND: 8,
  SCRAPE_RESULT_LABELS: 16,
  SCRAPE_RESULT_VALUE: 0,
  SCRAPE_UNUSABLE: 12,
  SHARE_BYTES: 64,
  SHARE_TERMS: 5,
  SIGNAL_ADAPTERS: 8,
  SIGNAL_KV_USAGE: 4,
  SIGNAL_RUNNING: 2,
  SIGNAL_WAITING: 1,
  SLOT_TOKENS: 130,
  STATE_ADAPTER: 65,
  STATE_COEFFICIENTS: 64,
  STATE_COLUMNS: 67,
  STATE_DRAINING: 2,
  STATE_FREE: 0,
  STATE_LIVE: 1,
  STATE_MATCH: 62,
  STATE_OVERLAP: 63,
  STATE_REMOVED: 64,
  STATE_WORDS: 66,
  THREAD_INPUT_BYTES: 262144,
  THREAD_OUTPUT_BYTES: 327680,
  TRACE_COLUMNS: 4100,
  TRACE_ID: 4160,
  TRACE_LENGTH: 4096,
  TRACE_RECORDS: 4104,
  VALUE_ACTIVE_REQUESTS: 1,
  VALUE_ACTIVE_TOKENS: 2,
  VALUE_ATTRIBUTE: 8,
  VALUE_KV_USAGE: 5,
  VALUE_RUNNING: 4,
  VALUE_WAITING: 3,
  WAIT_FLAG_ANYWHERE: 1,
  WAIT_FLAG_ASIDE: 16,
  WAIT_FLAG_ASKS: 8,
  WAIT_FLAG_BEFORE: 4,
  WAIT_SLOT_BODY: 68,
  WAIT_SLOT_BOUND: 100,
  WAIT_SLOT_BOUND_LIMIT: 108,
  WAIT_SLOT_BOUND_USED: 104,
  WAIT_SLOT_CANCELLED: 4,
  WAIT_SLOT_DEADLINE: 56,
  WAIT_SLOT_DISPATCHED: 2,
  WAIT_SLOT_ENDPOINT: 28,
  WAIT_SLOT_EXPECTED: 84,
  WAIT_SLOT_FLAGS: 24,
  WAIT_SLOT_FLOW: 112,
  WAIT_SLOT_FLOW_BYTES: 256,
  WAIT_SLOT_FLOW_LENGTH: 88,
  WAIT_SLOT_FREE: 0,
  WAIT_SLOT_HANDLE: 92,
  WAIT_SLOT_MOST_OUTPUT: 64,
  WAIT_SLOT_OUTCOME: 72,
  WAIT_SLOT_POSITION: 80,
  WAIT_SLOT_PRIORITY: 8,
  WAIT_SLOT_PROMPT: 12,
  WAIT_SLOT_REJECTED: 3,
  WAIT_SLOT_RETRY: 76,
  WAIT_SLOT_SINCE: 40,
  WAIT_SLOT_STATE: 0,
  WAIT_SLOT_STICKY: 96,
  WAIT_SLOT_TICKET: 32,
  WAIT_SLOT_TICKET_GENERATION: 36,
  WAIT_SLOT_TTL: 48,
  WAIT_SLOT_UNCACHED: 16,
  WAIT_SLOT_WAITING: 1,
} as const;

/** Name of a constant. */
export type CoreConstant = keyof typeof CORE;

/** Functions that the core exports. */
export interface CoreFunctions {
  activeAdd(slot: U32, blocks: U32): U32;
  activeAddLocked(slot: U32, blocks: U32): U32;
  activeCheck(): U32;
  activeOf(slot: U32): U32;
  activeOverlap(slot: U32, blocks: U32): U32;
  activeRemove(slot: U32, handle: U32, blocks: U32): I32;
  activeRemoveLocked(slot: U32, handle: U32, blocks: U32): void;
  activeRepairAdd(slot: U32, handle: U32, blocks: U32): U32;
  activeRepairBegin(): void;
  activeRequests(): U32;
  adapterShown(namePointer: Usize): void;
  attach(thread: U32): U32;
  bellAddress(thread: U32): Usize;
  briefColumnsAddress(): Usize;
  briefColumnsBytes(): U32;
  changesAddress(thread: U32): Usize;
  coefficientsAddress(): Usize;
  coefficientsWrite(from: Usize): U32;
  columnAddress(column: U32): Usize;
  complete(ticket: U32, generation: U32, tokens: U32, now: F64): U32;
  controlDozes(): void;
  controlWakes(): void;
  deadEndpoints(): U32;
  decide(): U32;
  decisionLogStride(): Usize;
  endpointAdapters(slot: U32, running: U32, waiting: U32, most: U32): U32;
  endpointAlive(slot: U32, generation: U32, now: F64): U32;
  endpointAttribute(slot: U32, attribute: U32, value: F32): U32;
  endpointCost(
    slot: U32,
    generation: U32,
    speed: F32,
    reliability: F32,
    base: F32,
    prefill: F32,
    waiting: F32,
    step: F32,
    growth: F32,
  ): U32;
  endpointDead(slot: U32, generation: U32, now: F64): U32;
  endpointForget(slot: U32, lost: U32): U32;
  endpointOpen(slot: U32, generation: U32): U32;
  endpointReachable(slot: U32, generation: U32, reachable: U32, now: F64): U32;
  endpointSignals(
    slot: U32,
    known: U32,
    waiting: F32,
    running: F32,
    kvUsage: F32,
    blockTokens: U32,
    blockCount: U32,
    now: F64,
  ): U32;
  endpointStale(slot: U32): U32;
  endpointState(slot: U32, state: U32): U32;
  evictRequest(thread: U32, waiting: U32, now: F64): U32;
  evictedGeneration(): U32;
  evictedPriority(): I32;
  evictedThread(): U32;
  evictionLost(ticket: U32, generation: U32): U32;
  explainAddress(): Usize;
  gateAddress(): Usize;
  gateBand(priority: I32, now: F64): I32;
  gateBandsForget(before: U32): U32;
  gateCeiling(priority: I32, ceiling: F32): U32;
  gateCheck(): U32;
  gateConfigure(
    mode: U32,
    blockTokens: U32,
    share: F32,
    queueThreshold: F32,
    usageThreshold: F32,
    staleness: F32,
    requests: F32,
    tokens: F32,
    now: F64,
  ): U32;
  gateDrains(priority: I32, seconds: F32): U32;
  gateDrainsIn(priority: I32): F32;
  gateLook(now: F64, passed: F64): U32;
  gateNextUnseen(): F64;
  gateRanks(): U32;
  gateRemote(slot: U32, requests: U32, tokens: U32, count: U32, held: U32): U32;
  gateSaturation(now: F64): F32;
  gateStep(slot: U32, ms: F32): void;
  gateUnseen(now: F64): F64;
  grow(ticket: U32, generation: U32, blocks: U32, tokens: U32): U32;
  hashBlocks(length: U32, blockBytes: U32): U32;
  hashBytesTo(from: Usize, length: U32, to: Usize): void;
  hashKeyTo(from: Usize, length: U32, to: Usize): void;
  hashesAddress(): Usize;
  heldTokens(slot: U32): U32;
  hostAddress(): Usize;
  initialise(): void;
  inputAddress(): Usize;
  isCandidate(slot: U32): Bool;
  isHeld(ticket: U32, generation: U32): U32;
  keepColumnsEvery(every: U32): void;
  labelAddress(column: U32): Usize;
  ledgerCheck(): U32;
  ledgerFull(): U32;
  ledgerUsed(): U32;
  lockAcquire(lock: Usize, sleeps: U32): Bool;
  lockOwner(lock: Usize): U32;
  lockRelease(lock: Usize): void;
  lockSeize(lock: Usize, dead: U32): Bool;
  logRefusal(now: F64, priority: I32, endpoints: U32): U32;
  matchAddress(): Usize;
  matchAhead(blocks: U32, tail: U32): void;
  moveCharge(ticket: U32, generation: U32, slot: U32, slotGeneration: U32): U32;
  noteOutcome(slot: U32, slotGeneration: U32, result: U32, now: F64): U32;
  outputAddress(): Usize;
  overlapAddress(): Usize;
  peerEjection(slot: U32, generation: U32, out: U32, now: F64): U32;
  peerLoad(
    slot: U32,
    generation: U32,
    requests: U32,
    tokens: U32,
    prefill: U32,
    prompt: U32,
    output: U32,
    charged: U32,
    pending: U32,
    held: U32,
  ): U32;
  pendingRequests(slot: U32): U32;
  plan(): U32;
  predictedAddress(): Usize;
  predictionLearned(slot: U32, generation: U32): U32;
  predictionPrior(): U32;
  prefillDone(ticket: U32, generation: U32, keep: U32, now: F64): U32;
  prefillElsewhere(ticket: U32, generation: U32): U32;
  prefixApply(log: Usize, bytes: U32): I32;
  prefixCheck(): U32;
  prefixClear(slot: U32, lost: U32): I32;
  prefixCounter(counter: U32): F64;
  prefixExport(from: U32, address: Usize, bytes: U32, most: U32): U32;
  prefixHeadAddress(): Usize;
  prefixHeld(slot: U32): U32;
  prefixInsert(slot: U32, blocks: U32): I32;
  prefixInsertLocked(slot: U32, blocks: U32): U32;
  prefixMatch(blocks: U32): U32;
  prefixMatchAt(hashes: Usize, blocks: U32): U32;
  prefixOldestAge(): U32;
  prefixRemove(slot: U32, blocks: U32): I32;
  prefixRemoveEndpoint(slot: U32): I32;
  prefixRemoveEndpointLocked(slot: U32, lost: U32): U32;
  prefixRemoveLocked(slot: U32, blocks: U32): U32;
  prefixRepairRest(): void;
  prefixSetCapacity(slot: U32, blocks: U32): I32;
  prefixStore(slot: U32, hasParent: U32, parentPointer: Usize, blocks: U32): I32;
  prefixTick(): U32;
  prefixVerify(on: U32): void;
  reclaimThread(dead: U32): U32;
  regionAddress(region: U32): Usize;
  regionSize(region: U32): U32;
  release(ticket: U32, generation: U32): U32;
  requestAddress(): Usize;
  responseFeed(id: U32, length: U32, last: U32): U32;
  responseMessageBegin(id: U32): void;
  responseMessageEnd(id: U32): void;
  responseMessageFeed(id: U32, length: U32, last: U32): void;
  responseOpen(id: U32, form: U32, mode: U32, nameBytes: U32): void;
  responseScanAddress(id: U32): Usize;
  room(column: U32, slot: U32): Usize;
  sampleWrite(
    ticket: U32,
    generation: U32,
    outcome: U32,
    firstOutput: F32,
    perToken: F32,
    duration: F32,
    outputTokens: U32,
    promptTokens: U32,
    cachedTokens: U32,
    staged: Bool,
  ): U32;
  scanAddress(id: U32): Usize;
  scanBeginning(id: U32): void;
  scanChain(id: U32, name: Usize, length: U32): U32;
  scanClose(id: U32): void;
  scanFeed(id: U32, length: U32): U32;
  scanFinish(id: U32): U32;
  scanFlaws(id: U32): U32;
  scanHeadAddress(): Usize;
  scanMediaSeen(id: U32): U32;
  scanOpen(kind: U32, blockBytes: U32): I32;
  scanPromptBytes(id: U32): U32;
  scanRegionBytes(scans: U32, c: U32): U64;
  scanReset(): void;
  scanTail(id: U32): U32;
  scoreOf(slot: U32): F32;
  scrapeAddress(): Usize;
  scrapeBegin(query: U32): void;
  scrapeEnd(): void;
  scrapeFeed(length: U32): void;
  shadowEvery(count: U32): void;
  shardDozes(): void;
  shardWakes(): void;
  sharesAddress(thread: U32): Usize;
  storePick(profile: U32, slot: U32, ticket: U32, generation: U32): void;
  subsetAddress(): Usize;
  tailInsertLocked(slot: U32, hashPointer: Usize): void;
  tailMatch(hashPointer: Usize, wholeBlocks: U32): void;
  takeColumns(bytes: Usize): Usize;
  takenUnit(): U32;
  telemetryAddress(thread: U32): Usize;
  threadAddress(thread: U32): Usize;
  threadCharges(thread: U32): U32;
  tokenChainAdd(length: U32, blockBytes: U32): U32;
  tokenChainBegin(nameLength: U32, saltLength: I32): void;
  tokenChainMix(length: U32): void;
  tokenChainResume(): void;
  tokenChainTail(length: U32): U32;
  waitSlotAddress(thread: U32, slot: U32): Usize;
  waitSlotCancel(slot: U32): U32;
  waitSlotDispatch(thread: U32, slot: U32, only: I32, now: F64): U32;
  waitSlotEnqueue(slot: U32): void;
  waitSlotEnqueued(thread: U32): I32;
  waitSlotForget(thread: U32, slot: U32): void;
  waitSlotFree(slot: U32): void;
  waitSlotMaskAddress(thread: U32, slot: U32): Usize;
  waitSlotReject(thread: U32, slot: U32): U32;
  waitSlotReturned(): I32;
}

/**
 * The same functions in an object of one hidden class for all instances. V8 gives every instance's exports a class of its own: an
 * access that has seen 100 of them takes 600 ns, this one 10.
 */
export function uniformCalls(exports: CoreFunctions): CoreFunctions {
  return {
    activeAdd: exports.activeAdd,
    activeAddLocked: exports.activeAddLocked,
    activeCheck: exports.activeCheck,
    activeOf: exports.activeOf,
    activeOverlap: exports.activeOverlap,
    activeRemove: exports.activeRemove,
    activeRemoveLocked: exports.activeRemoveLocked,
    activeRepairAdd: exports.activeRepairAdd,
    activeRepairBegin: exports.activeRepairBegin,
    activeRequests: exports.activeRequests,
    adapterShown: exports.adapterShown,
    attach: exports.attach,
    bellAddress: exports.bellAddress,
    briefColumnsAddress: exports.briefColumnsAddress,
    briefColumnsBytes: exports.briefColumnsBytes,
    changesAddress: exports.changesAddress,
    coefficientsAddress: exports.coefficientsAddress,
    coefficientsWrite: exports.coefficientsWrite,
    columnAddress: exports.columnAddress,
    complete: exports.complete,
    controlDozes: exports.controlDozes,
    controlWakes: exports.controlWakes,
    deadEndpoints: exports.deadEndpoints,
    decide: exports.decide,
    decisionLogStride: exports.decisionLogStride,
    endpointAdapters: exports.endpointAdapters,
    endpointAlive: exports.endpointAlive,
    endpointAttribute: exports.endpointAttribute,
    endpointCost: exports.endpointCost,
    endpointDead: exports.endpointDead,
    endpointForget: exports.endpointForget,
    endpointOpen: exports.endpointOpen,
    endpointReachable: exports.endpointReachable,
    endpointSignals: exports.endpointSignals,
    endpointStale: exports.endpointStale,
    endpointState: exports.endpointState,
    evictRequest: exports.evictRequest,
    evictedGeneration: exports.evictedGeneration,
    evictedPriority: exports.evictedPriority,
    evictedThread: exports.evictedThread,
    evictionLost: exports.evictionLost,
    explainAddress: exports.explainAddress,
    gateAddress: exports.gateAddress,
    gateBand: exports.gateBand,
    gateBandsForget: exports.gateBandsForget,
    gateCeiling: exports.gateCeiling,
    gateCheck: exports.gateCheck,
    gateConfigure: exports.gateConfigure,
    gateDrains: exports.gateDrains,
    gateDrainsIn: exports.gateDrainsIn,
    gateLook: exports.gateLook,
    gateNextUnseen: exports.gateNextUnseen,
    gateRanks: exports.gateRanks,
    gateRemote: exports.gateRemote,
    gateSaturation: exports.gateSaturation,
    gateStep: exports.gateStep,
    gateUnseen: exports.gateUnseen,
    grow: exports.grow,
    hashBlocks: exports.hashBlocks,
    hashBytesTo: exports.hashBytesTo,
    hashKeyTo: exports.hashKeyTo,
    hashesAddress: exports.hashesAddress,
    heldTokens: exports.heldTokens,
    hostAddress: exports.hostAddress,
    initialise: exports.initialise,
    inputAddress: exports.inputAddress,
    isCandidate: exports.isCandidate,
    isHeld: exports.isHeld,
    keepColumnsEvery: exports.keepColumnsEvery,
    labelAddress: exports.labelAddress,
    ledgerCheck: exports.ledgerCheck,
    ledgerFull: exports.ledgerFull,
    ledgerUsed: exports.ledgerUsed,
    lockAcquire: exports.lockAcquire,
    lockOwner: exports.lockOwner,
    lockRelease: exports.lockRelease,
    lockSeize: exports.lockSeize,
    logRefusal: exports.logRefusal,
    matchAddress: exports.matchAddress,
    matchAhead: exports.matchAhead,
    moveCharge: exports.moveCharge,
    noteOutcome: exports.noteOutcome,
    outputAddress: exports.outputAddress,
    overlapAddress: exports.overlapAddress,
    peerEjection: exports.peerEjection,
    peerLoad: exports.peerLoad,
    pendingRequests: exports.pendingRequests,
    plan: exports.plan,
    predictedAddress: exports.predictedAddress,
    predictionLearned: exports.predictionLearned,
    predictionPrior: exports.predictionPrior,
    prefillDone: exports.prefillDone,
    prefillElsewhere: exports.prefillElsewhere,
    prefixApply: exports.prefixApply,
    prefixCheck: exports.prefixCheck,
    prefixClear: exports.prefixClear,
    prefixCounter: exports.prefixCounter,
    prefixExport: exports.prefixExport,
    prefixHeadAddress: exports.prefixHeadAddress,
    prefixHeld: exports.prefixHeld,
    prefixInsert: exports.prefixInsert,
    prefixInsertLocked: exports.prefixInsertLocked,
    prefixMatch: exports.prefixMatch,
    prefixMatchAt: exports.prefixMatchAt,
    prefixOldestAge: exports.prefixOldestAge,
    prefixRemove: exports.prefixRemove,
    prefixRemoveEndpoint: exports.prefixRemoveEndpoint,
    prefixRemoveEndpointLocked: exports.prefixRemoveEndpointLocked,
    prefixRemoveLocked: exports.prefixRemoveLocked,
    prefixRepairRest: exports.prefixRepairRest,
    prefixSetCapacity: exports.prefixSetCapacity,
    prefixStore: exports.prefixStore,
    prefixTick: exports.prefixTick,
    prefixVerify: exports.prefixVerify,
    reclaimThread: exports.reclaimThread,
    regionAddress: exports.regionAddress,
    regionSize: exports.regionSize,
    release: exports.release,
    requestAddress: exports.requestAddress,
    responseFeed: exports.responseFeed,
    responseMessageBegin: exports.responseMessageBegin,
    responseMessageEnd: exports.responseMessageEnd,
    responseMessageFeed: exports.responseMessageFeed,
    responseOpen: exports.responseOpen,
    responseScanAddress: exports.responseScanAddress,
    room: exports.room,
    sampleWrite: exports.sampleWrite,
    scanAddress: exports.scanAddress,
    scanBeginning: exports.scanBeginning,
    scanChain: exports.scanChain,
    scanClose: exports.scanClose,
    scanFeed: exports.scanFeed,
    scanFinish: exports.scanFinish,
    scanFlaws: exports.scanFlaws,
    scanHeadAddress: exports.scanHeadAddress,
    scanMediaSeen: exports.scanMediaSeen,
    scanOpen: exports.scanOpen,
    scanPromptBytes: exports.scanPromptBytes,
    scanRegionBytes: exports.scanRegionBytes,
    scanReset: exports.scanReset,
    scanTail: exports.scanTail,
    scoreOf: exports.scoreOf,
    scrapeAddress: exports.scrapeAddress,
    scrapeBegin: exports.scrapeBegin,
    scrapeEnd: exports.scrapeEnd,
    scrapeFeed: exports.scrapeFeed,
    shadowEvery: exports.shadowEvery,
    shardDozes: exports.shardDozes,
    shardWakes: exports.shardWakes,
    sharesAddress: exports.sharesAddress,
    storePick: exports.storePick,
    subsetAddress: exports.subsetAddress,
    tailInsertLocked: exports.tailInsertLocked,
    tailMatch: exports.tailMatch,
    takeColumns: exports.takeColumns,
    takenUnit: exports.takenUnit,
    telemetryAddress: exports.telemetryAddress,
    threadAddress: exports.threadAddress,
    threadCharges: exports.threadCharges,
    tokenChainAdd: exports.tokenChainAdd,
    tokenChainBegin: exports.tokenChainBegin,
    tokenChainMix: exports.tokenChainMix,
    tokenChainResume: exports.tokenChainResume,
    tokenChainTail: exports.tokenChainTail,
    waitSlotAddress: exports.waitSlotAddress,
    waitSlotCancel: exports.waitSlotCancel,
    waitSlotDispatch: exports.waitSlotDispatch,
    waitSlotEnqueue: exports.waitSlotEnqueue,
    waitSlotEnqueued: exports.waitSlotEnqueued,
    waitSlotForget: exports.waitSlotForget,
    waitSlotFree: exports.waitSlotFree,
    waitSlotMaskAddress: exports.waitSlotMaskAddress,
    waitSlotReject: exports.waitSlotReject,
    waitSlotReturned: exports.waitSlotReturned,
  };
}
