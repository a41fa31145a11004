// Programs: what a scheduling profile compiles to, and the request and answer of one decision.
//
// Owns: REGION_PROGRAMS (written by the control thread only; a program is written whole into an unused place and then
// published by one atomic store of its number in the header's pool words), and the layout of the thread's own REQUEST
// area (only its thread touches it).
//
// A program: 64 bytes of head, then up to PROGRAM_OPS operations of 64 bytes.
//   head  +0 u32 operations · +4 u32 PROGRAM_* needs · +8 u32 tag, which labels carry (24 bits)
//         +12 u32 1 = the columns of sampled decisions are kept for a projection
//   op    +0 u32 code · +4 f32 weight · +8 f32 × 8 parameters
import { HEADER, HEADER_POOL, PROGRAM_BYTES, PROGRAMS, REQUEST } from '../memory';

export const POOL_PROFILES: usize = 0; // 32 × u32: number of the program that each profile runs (atomic)
export const POOL_SLOTS_USED: usize = 128; // u32: slots at and above this number are free (control thread)
export const POOL_LIVE: usize = 132; // u32: live endpoints (control thread)
export const POOL_EJECTED: usize = 136; // u32: endpoints that are out (commit lock)
export const POOL_EJECTION_OFF: usize = 140; // u32: 1 = failing endpoints stay in (control thread)
export const POOL_EPOCH: usize = 144; // u32: counts repairs (control thread)
export const POOL_SLOTS_SEEN: usize = 148; // f32: largest SLOTS_SEEN of any endpoint, 0 = unknown (commit lock)
export const POOL_COLD_OLDEST: usize = 152; // u32: slot + 1, head of the list of cold prompts (commit lock)
export const POOL_COLD_NEWEST: usize = 156; // u32: slot + 1, tail of it
export const POOL_COLD_LENGTH: usize = 160; // u32
export const POOL_TURNS: usize = 256; // 32 × u32: slot + 1 that each profile's round-robin-picker took last (commit lock)
export const MAX_PROFILES: u32 = 32;

export const PROGRAM_TAG: usize = 8;
export const PROGRAM_PROJECTS: usize = 12;
export const PROGRAM_NEEDS_MATCH: u32 = 1;
export const PROGRAM_NEEDS_OVERLAP: u32 = 2;
export const PROGRAM_INSERTS: u32 = 4; // believe that the picked endpoint will hold the prompt
export const PROGRAM_NOTES_COLD: u32 = 8; // remember who was sent a prompt that nobody held
export const PROGRAM_NOTES_ADAPTER: u32 = 16; // remember who was sent which adapter

export const OP_FILTER_MASK: u32 = 1; // [mask number]
export const OP_FILTER_HOST: u32 = 2; // [host column, 1 = keep all when none is left]
// A source is a VALUE_* number of values.ts; `missing` 1 = keep endpoints without a value, `all` 1 = keep all when none is left.
export const OP_FILTER_THRESHOLD: u32 = 3; // [source, COMPARE_*, value, missing, all]
export const OP_FILTER_RANGE: u32 = 4; // [source, min, max, missing, all]
export const OP_FILTER_LOWEST: u32 = 5; // [source, sign: 1 lowest, -1 highest, count, share of the candidates, missing, all]
export const OP_FILTER_UTILIZATION: u32 = 6; // [max active requests, max running, max waiting, max KV usage, all]
export const OP_FILTER_PREFIX_AFFINITY: u32 = 7; // [threshold, exploration, max penalty in ms, tokens per second, 1 = by predicted time]
export const OP_FILTER_CONTEXT_LENGTH: u32 = 8; // [label column]
export const OP_FILTER_UNSATURATED: u32 = 9; // [waiting limit, KV usage limit, staleness in ms]
export const OP_FILTER_CONCURRENCY: u32 = 10; // [requests limit, tokens limit]
export const OP_FILTER_STICKY: u32 = 11; // [threshold, tokens limit]
export const OP_FILTER_LAST: u32 = 15;
export const OP_SCORE_QUEUE: u32 = 16; // []
export const OP_SCORE_RUNNING: u32 = 17; // []
export const OP_SCORE_KV_USAGE: u32 = 18; // []
export const OP_SCORE_PREFIX: u32 = 19; // [matchLengthWeight, matchLengthScaleTokens, blockTokens]
export const OP_SCORE_ACTIVE_REQUEST: u32 = 20; // [idleThreshold, maxBusyScore]
export const OP_SCORE_TOKEN_LOAD: u32 = 21; // [queueThresholdTokens]
export const OP_SCORE_ACTIVE_BLOCKS: u32 = 22; // [overlapWeight, temperature, credit, decay, 1 = prefill in flight counts]
export const OP_SCORE_LOAD_AWARE: u32 = 23; // [threshold]
export const OP_SCORE_ADAPTER: u32 = 24; // [1 = remember what was sent]
export const OP_SCORE_HOST: u32 = 25; // [host column]
export const OP_SCORE_HEADER_LABEL: u32 = 26; // [request key, label column]
export const OP_SCORE_ATTRIBUTE: u32 = 27; // [source, 1 = lower is better, 1 = adaptive range, min, max]
export const OP_SCORE_NO_HIT_LRU: u32 = 28; // [endpoints remembered]
export const OP_SCORE_CONTEXT_LENGTH: u32 = 29; // [label column]
export const OP_SCORE_RENDEZVOUS: u32 = 30; // [request key, label column, load factor]
export const OP_SCORE_CONSISTENT_HASH: u32 = 31; // [request key, label column, load factor, virtual nodes]
export const OP_SCORE_LMETRIC: u32 = 32; // []
export const OP_SCORE_CACHE_AWARE: u32 = 33; // [cache threshold, absolute threshold, relative threshold]
// Label columns of host, rack, zone and region; compared with those of REQUEST_PEER.
export const OP_FILTER_TOPOLOGY: u32 = 64; // [farthest level: 1 host, 2 rack, 3 zone, 4 region, host, rack, zone, region]
export const OP_SCORE_TOPOLOGY: u32 = 67; // [host, rack, zone, region]
export const OP_SCORE_MARGINAL_COST: u32 = 96; // []
export const OP_WOULD_PICK: u32 = 97; // [scorers, number of the operation of each]: note what marginal cost would pick; the scorers are projected
export const OP_PICK_MAX_SCORE: u32 = 48; // [endpoints]
export const OP_PICK_RANDOM: u32 = 49; // [endpoints]
export const OP_PICK_WEIGHTED_RANDOM: u32 = 50; // [endpoints]
export const OP_PICK_BEST_OF: u32 = 51; // [endpoints, choices]
export const OP_PICK_LEAST_REQUEST: u32 = 52; // [endpoints]
export const OP_PICK_ROUND_ROBIN: u32 = 53; // [endpoints]
export const OP_PICK_LAST: u32 = 63;

// Latency. OP_PREDICT comes before all that looks at predictions, OP_ADMIT_LATENCY right behind it.
export const OP_PREDICT: u32 = 80; // [PREDICT_*, 1 = single tokens are streamed, factor of the wanted times, mask of prefill endpoints + 1]
export const OP_ADMIT_LATENCY: u32 = 81; // []
export const OP_FILTER_TIER: u32 = 82; // [exploration]
export const OP_SCORE_LATENCY: u32 = 83; // [weight of the time to first token, of that per output token, 1 = most headroom, weights of KV cache, queue, prefix]

export const PREDICT_BY_MODEL: u32 = 0; // the latency model
export const PREDICT_ON_HOST: u32 = 1; // what the host wrote into the PREDICTED columns
export const PREDICT_ON_HOST_OR_BY_MODEL: u32 = 2; // the model where the host wrote NaN
export const PREDICT_NOTHING: u32 = 3; // nobody

// Affinity up to a threshold.
export const OP_SCORE_PREFIX_BALANCE: u32 = 104; // [imbalance in requests, standard deviations]
export const OP_SCORE_EXPLOIT_EXPLORE: u32 = 105; // [tokens that a request in flight counts as]

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
export const REQUEST_HELD: usize = 3072; // u32: ledger entry + 1 that a grant charged for this request, 0 = none
export const REQUEST_HELD_GENERATION: usize = 3076; // u32
export const REQUEST_PARK: usize = 3080; // u32: free parking slot + 1, 0 = none is left
export const REQUEST_KEYS: usize = 1024; // u64 × MAX_KEYS: hashes of the header values that the profiles look at, 0 = absent
export const MAX_KEYS: u32 = 16;
export const REQUEST_WANTED_TTFT: usize = 2048; // f32: longest time to first token that the request wants, ms, 0 = it wants none
export const REQUEST_WANTED_TPOT: usize = 2052; // f32: the same for the time per output token

export const DECIDE_SUBSET: u32 = 1; // only the slots of the subset mask
export const DECIDE_UNCHARGED: u32 = 2; // look, but charge nothing and insert nothing
export const DECIDE_EXPLAIN: u32 = 8; // write every operation's column
export const DECIDE_TAIL: u32 = 16; // a hash of the partial last block follows the whole ones
export const DECIDE_BASE_MODEL: u32 = 32; // the model is a base model, no adapter
export const DECIDE_GATED: u32 = 65536; // only where the gate has room; otherwise park
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
export const DECIDE_PARKED: u32 = 16; // no room: it waits in the parking slot
export const DECIDE_NO_PARKING: u32 = 17; // no room, and no parking slot either

export function isFilter(code: u32): bool {
  return code <= OP_FILTER_LAST || code == OP_FILTER_TIER || code == OP_FILTER_TOPOLOGY;
}

export function isPicker(code: u32): bool {
  return code >= OP_PICK_MAX_SCORE && code <= OP_PICK_LAST;
}

/** Address of the program that a profile runs now, or 0. */
export function activeProgram(profile: u32): usize {
  if (profile >= MAX_PROFILES) return 0;
  const number = atomic.load<u32>(HEADER + HEADER_POOL + POOL_PROFILES + ((<usize>profile) << 2));
  return number == 0 ? 0 : PROGRAMS + <usize>number * PROGRAM_BYTES;
}

/** Next 64 random bits of this thread (xoroshiro128+, Blackman and Vigna 2018). */
export function random(): u64 {
  const state = REQUEST + REQUEST_RANDOM;
  const a = load<u64>(state);
  let b = load<u64>(state, 8);
  const result = a + b;
  b ^= a;
  store<u64>(state, rotl<u64>(a, 24) ^ b ^ (b << 16));
  store<u64>(state, rotl<u64>(b, 37), 8);
  return result;
}

/** Uniform in [0, 1), 24 bits. */
export function randomFloat(): f32 {
  return <f32>(random() >> 40) * <f32>(1.0 / 16777216.0);
}

/** Uniform in 0 .. bound - 1. */
export function randomBelow(bound: u32): u32 {
  return <u32>(((random() >> 32) * <u64>bound) >> 32);
}
