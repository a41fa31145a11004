// Programs: what a scheduling profile compiles to.
//
// Owns: REGION_PROGRAMS (written by the control thread only; a program is written whole into an unused place and then
// published by one atomic store of its number in the header's pool words).
//
// A program: one Program, then up to PROGRAM_OPS Operations of 64 bytes.
import { PROGRAM_BYTES, PROGRAMS } from '../memory';
import { PROFILES_MAX, profileWord, shadowWord } from '../pool-words';

/** Head of a program, 64 bytes. */
@unmanaged
export class Program {
  /** Operations behind the head · control thread · none: published whole. */
  operations: u32;
  /** PROGRAM_NEEDS_*, PROGRAM_INSERTS and PROGRAM_NOTES_* bits · control thread · none: published whole. */
  needs: u32;
  /** Tag that training samples carry, 24 bits · control thread · none: published whole. */
  tag: u32;
  /** 1 = the columns of sampled decisions are kept for a projection · control thread · none: published whole. */
  projects: u32;
  /**
   * Number of scorers, from the first one on, that one pass can evaluate (fused-scorers.ts) · control thread · none:
   * published whole.
   */
  fused: u32;

  /** Operation `index` of the program. */
  operation(index: u32): Operation {
    return changetype<Operation>(changetype<usize>(this) + PROGRAM_HEAD_BYTES + <usize>index * OPERATION_BYTES);
  }
}

/** One operation of a program, 64 bytes. */
@unmanaged
export class Operation {
  /** OP_* · control thread · none: published whole. */
  code: u32;
  /** Factor on the column of a scorer · control thread · none: published whole. */
  weight: f32;
  /** First parameter; what they mean stands beside the OP_* numbers · control thread · none: published whole. */
  p0: f32;
  /** Parameter 1 · control thread · none: published whole. */
  p1: f32;
  /** Parameter 2 · control thread · none: published whole. */
  p2: f32;
  /** Parameter 3 · control thread · none: published whole. */
  p3: f32;
  /** Parameter 4 · control thread · none: published whole. */
  p4: f32;
  /** Parameter 5 · control thread · none: published whole. */
  p5: f32;
  /** Parameter 6 · control thread · none: published whole. */
  p6: f32;
  /** Parameter 7 · control thread · none: published whole. */
  p7: f32;

  /** Address of parameter `index`, for parameters that form a list. */
  parameters(index: u32): usize {
    return changetype<usize>(this) + offsetof<Operation>('p0') + ((<usize>index) << 2);
  }
}

export const PROGRAM_HEAD_BYTES: usize = 64;
export const OPERATION_BYTES: usize = 64;

export const PROGRAM_OPERATIONS: usize = offsetof<Program>('operations');
export const PROGRAM_NEEDS: usize = offsetof<Program>('needs');
export const PROGRAM_TAG: usize = offsetof<Program>('tag');
export const PROGRAM_FUSED: usize = offsetof<Program>('fused');
export const PROGRAM_PROJECTS: usize = offsetof<Program>('projects');
export const OPERATION_CODE: usize = offsetof<Operation>('code');
export const OPERATION_WEIGHT: usize = offsetof<Operation>('weight');
export const OPERATION_PARAMETERS: usize = offsetof<Operation>('p0');
export const OPERATION_PARAMETERS_MAX: u32 = 8;
export const PROGRAM_NEEDS_MATCH: u32 = 1;
export const PROGRAM_NEEDS_OVERLAP: u32 = 2;
export const PROGRAM_INSERTS: u32 = 4; // believe that the picked endpoint will hold the prompt
export const PROGRAM_NOTES_COLD: u32 = 8; // remember the endpoint that was sent a prompt without holders
export const PROGRAM_WHOLE_BLOCKS: u32 = 32; // matches count as far as the engine's own blocks are whole
export const PROGRAM_TOLD: u32 = 64; // engines tell which blocks they hold
export const PROGRAM_NOTES_ADAPTER: u32 = 16; // remember who was sent which adapter
export const PROGRAM_NEEDS_PRESSED_OVERLAP: u32 = 128; // OVERLAP where the prompt presses a KV cache

export const OP_FILTER_MASK: u32 = 1; // [mask number]
export const OP_FILTER_HOST: u32 = 2; // [host column, 1 = keep all when none is left]
// A source is a VALUE_* number of columns/values.ts; `missing` 1 = keep endpoints without a value, `all` 1 = keep all
// when none is left.
export const OP_FILTER_THRESHOLD: u32 = 3; // [source, COMPARE_*, value, missing, all]
export const OP_FILTER_RANGE: u32 = 4; // [source, min, max, missing, all]
/** [source, sign: 1 lowest, -1 highest, count, share of the candidates, missing, all] */
export const OP_FILTER_LOWEST: u32 = 5;
export const OP_FILTER_UTILIZATION: u32 = 6; // [max active requests, max running, max waiting, max KV usage, all]
/** [threshold, exploration, max penalty in ms, tokens per second, 1 = by predicted time] */
export const OP_FILTER_PREFIX_AFFINITY: u32 = 7;
export const OP_FILTER_CONTEXT_LENGTH: u32 = 8; // [label column]
export const OP_FILTER_UNSATURATED: u32 = 9; // [waiting limit, KV usage limit, staleness in ms]
export const OP_FILTER_CONCURRENCY: u32 = 10; // [requests limit, tokens limit, keep all when none is left]
export const OP_FILTER_STICKY: u32 = 11; // [threshold, tokens limit]
/** [host column of SERVES_* values, 1 = keep endpoints without a list, 1 = keep all when none is left] */
export const OP_FILTER_SERVED_MODEL: u32 = 12;
/** [least share, requests after which an endpoint is warm, most cached tokens that a request loses] */
export const OP_FILTER_WARM_UP: u32 = 13;
/** [waiting limit, KV usage limit: below 0 = learned; batches that may wait, keep all when none is left] */
export const OP_FILTER_OVERLOAD: u32 = 14;
export const OP_FILTER_LAST: u32 = 15;
export const OP_SCORE_QUEUE: u32 = 16; // []
export const OP_SCORE_RUNNING: u32 = 17; // []
export const OP_SCORE_KV_USAGE: u32 = 18; // []
export const OP_SCORE_PREFIX: u32 = 19; // [matchLengthWeight, matchLengthScaleTokens, blockTokens]
export const OP_SCORE_ACTIVE_REQUEST: u32 = 20; // [idleThreshold, maxBusyScore]
export const OP_SCORE_TOKEN_LOAD: u32 = 21; // [queueThresholdTokens]
/** [overlapWeight, temperature, credit, decay, 1 = prefill in flight counts] */
export const OP_SCORE_ACTIVE_BLOCKS: u32 = 22;
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
// Label columns of host, rack, zone and region; compared with those of REQUEST_EARLIER.
/** [farthest level: 1 host, 2 rack, 3 zone, 4 region, host, rack, zone, region] */
export const OP_FILTER_TOPOLOGY: u32 = 64;
export const OP_SCORE_TOPOLOGY: u32 = 67; // [host, rack, zone, region]
export const OP_SCORE_MARGINAL_COST: u32 = 96; // []
/** [scorers, number of the operation of each]: note what marginal cost would pick; the scorers are projected */
export const OP_WOULD_PICK: u32 = 97;
export const OP_PICK_MAX_SCORE: u32 = 48; // [endpoints, label column of hosts + 1]
export const OP_PICK_RANDOM: u32 = 49; // [endpoints, label column of hosts + 1]
export const OP_PICK_WEIGHTED_RANDOM: u32 = 50; // [endpoints, label column of hosts + 1]
export const OP_PICK_BEST_OF: u32 = 51; // [endpoints, choices, label column of hosts + 1]
export const OP_PICK_LEAST_REQUEST: u32 = 52; // [endpoints, label column of hosts + 1]
export const OP_PICK_ROUND_ROBIN: u32 = 53; // [endpoints, label column of hosts + 1]
export const OP_PICK_LAST: u32 = 63;

// Latency. OP_PREDICT comes before all that looks at predictions, OP_ADMIT_LATENCY right behind it.
/** [PREDICT_*, 1 = single tokens are streamed, factor of the wanted times, mask of prefill endpoints + 1] */
export const OP_PREDICT: u32 = 80;
export const OP_ADMIT_LATENCY: u32 = 81; // []
export const OP_FILTER_TIER: u32 = 82; // [exploration]
/**
 * [weight of the time to first token, of that per output token, 1 = most headroom, weights of KV cache, queue, prefix]
 */
export const OP_SCORE_LATENCY: u32 = 83;

export const PREDICT_BY_MODEL: u32 = 0; // the latency model
export const PREDICT_ON_HOST: u32 = 1; // what the host wrote into the PREDICTED columns
export const PREDICT_ON_HOST_OR_BY_MODEL: u32 = 2; // the model where the host wrote NaN
export const PREDICT_NOTHING: u32 = 3; // no prediction

// Affinity up to a threshold.
export const OP_SCORE_PREFIX_BALANCE: u32 = 104; // [imbalance in requests, standard deviations]
export const OP_SCORE_EXPLOIT_EXPLORE: u32 = 105; // [tokens that a request in flight counts as]

export const OP_SCORE_SESSION_HOME: u32 = 106; // []

export function isFilter(code: u32): bool {
  return code <= OP_FILTER_LAST || code == OP_FILTER_TIER || code == OP_FILTER_TOPOLOGY;
}

export function isPicker(code: u32): bool {
  return code >= OP_PICK_MAX_SCORE && code <= OP_PICK_LAST;
}

/** Returns whether operation `code` adds a column of scores. */
export function isScorer(code: u32): bool {
  return !isFilter(code) && !isPicker(code) && code != OP_WOULD_PICK && code != OP_PREDICT && code != OP_ADMIT_LATENCY;
}

/** The program that a profile runs now, or null. */
export function activeProgram(profile: u32): Program | null {
  if (profile >= PROFILES_MAX) return null;
  const number = atomic.load<u32>(profileWord(profile));
  return number == 0 ? null : changetype<Program>(PROGRAMS + <usize>number * PROGRAM_BYTES);
}

/** The program that a profile runs in shadow, or null. */
export function shadowProgram(profile: u32): Program | null {
  if (profile >= PROFILES_MAX) return null;
  const number = atomic.load<u32>(shadowWord(profile));
  return number == 0 ? null : changetype<Program>(PROGRAMS + <usize>number * PROGRAM_BYTES);
}
