// The request and the answer of one decision.
//
// Owns: the layout of the thread's own REQUEST area. Only its thread reads and writes it, without a lock.

// The request (host → decide).
export const REQUEST_PROFILE: usize = 0; // u32
export const REQUEST_FLAGS: usize = 4; // u32, DECIDE_* bits
export const REQUEST_BLOCKS: usize = 8; // u32: whole blocks whose chain hashes stand in HASHES
export const REQUEST_PROMPT_TOKENS: usize = 12; // u32
export const REQUEST_OUTPUT_TOKENS: usize = 16; // u32: estimated output tokens that are charged as load
export const REQUEST_PRIORITY: usize = 20; // i32
export const REQUEST_NOW: usize = 24; // f64: milliseconds of the pool clock
export const REQUEST_ADAPTER: usize = 32; // u64: hash of the target model name
export const REQUEST_BLOCK_TOKENS: usize = 40; // u32
export const REQUEST_PEER: usize = 44; // u32: slot + 1 that an earlier profile of the same request picked, 0 = none
export const REQUEST_RANDOM: usize = 48; // 2 × u64: state of this thread's generator (xoroshiro128+)
export const REQUEST_HELD: usize = 3072; // u32: ledger entry + 1 that a dispatch charged for this request, 0 = none
export const REQUEST_HELD_GENERATION: usize = 3076; // u32
export const REQUEST_WAIT_SLOT: usize = 3080; // u32: free wait slot + 1, 0 = none is left
export const REQUEST_KEYS: usize = 1024; // u64 × MAX_KEYS: hashes of the header values that the profiles look at, 0 = absent
export const MAX_KEYS: u32 = 16;
export const REQUEST_WANTED_TTFT: usize = 2048; // f32: longest time to first token that the request wants, ms, 0 = it wants none
export const REQUEST_WANTED_TPOT: usize = 2052; // f32: the same for the time per output token

export const DECIDE_SUBSET: u32 = 1; // only the slots of the subset mask
export const DECIDE_UNCHARGED: u32 = 2; // look, but charge nothing and insert nothing
export const DECIDE_EXPLAIN: u32 = 8; // write every operation's column
export const DECIDE_TAIL: u32 = 16; // a hash of the partial last block follows the whole ones
export const DECIDE_BASE_MODEL: u32 = 32; // the model is a base model, no adapter
export const DECIDE_GATED: u32 = 65536; // only where the gate has room; otherwise enqueue
export const DECIDE_BLIND: u32 = 131072; // the first token of the answer will not be seen
export const DECIDE_QUEUED: u32 = 262144; // it has to go through the queues, whether there is room or not
export const DECIDE_UNSTORED: u32 = 256; // charge, but store nothing: storePick follows when the whole request is placed
export const DECIDE_FURTHER: u32 = 512; // a further profile of the request decided last: what was matched for it still holds

// The answer (decide → host).
export const ANSWER_COUNT: usize = 64; // u32: endpoints picked
export const ANSWER_TICKET: usize = 68; // u32: ledger entry + 1; 0 = not charged
export const ANSWER_TICKET_GENERATION: usize = 72; // u32
export const ANSWER_MATCHED: usize = 76; // u32: blocks that the first pick holds already
export const ANSWER_TOTAL: usize = 80; // u32: blocks of the prompt, tail included
export const ANSWER_CANDIDATES: usize = 84; // u32: endpoints left after the filters
export const ANSWER_SCORE: usize = 88; // f32: weighted score of the first pick
export const ANSWER_UNCACHED_TOKENS: usize = 92; // u32: tokens charged for the first pick
export const ANSWER_WOULD_PICK: usize = 96; // u32: slot + 1 that marginal cost would pick, 0 = it was not asked
export const ANSWER_TTFT: usize = 2176; // f32: time to first token predicted for the first pick, ms, NaN = nothing
export const ANSWER_TPOT: usize = 2180; // f32: time per output token predicted for it
export const ANSWER_PICKS: usize = 256; // u32 × MAX_PICKS: slots in order of preference
export const MAX_PICKS: u32 = 64;

export const DECIDED: u32 = 0;
export const DECIDE_NO_CANDIDATES: u32 = 1; // no live endpoint, or none in the subset
export const DECIDE_FILTERED: u32 = 2; // the filters left none
export const DECIDE_BUSY: u32 = 3; // the commit lock could not be had in time
export const DECIDE_NO_PROGRAM: u32 = 4; // the profile has no program
export const DECIDE_DENIED: u32 = 5; // an admitter turned the request away
export const DECIDE_WAITS: u32 = 16; // no room: it waits in the wait slot
export const DECIDE_NO_WAIT_SLOT: u32 = 17; // no room, and no wait slot either
