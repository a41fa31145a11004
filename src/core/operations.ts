import { CORE, type CoreConstant } from './core-names.js';

/** An operation of the core. */
export type OperationName = Exclude<Extract<CoreConstant, `OP_${string}`>, `${string}_LAST`>;
/** An operation that scores. */
export type ScorerName = Extract<OperationName, `OP_SCORE_${string}`>;

/** One operation of a program, its weight and its parameters (assembly/scheduling/program.ts). */
export interface Operation {
  readonly code: OperationName;
  readonly weight: number;
  readonly parameters: readonly number[];
}

/**
 * Inputs of operations. Columns of endpoints have the names of assembly/endpoints.ts: `inflightTokens` is
 * COLUMN_INFLIGHT_TOKENS. What every decision reads to find the endpoints that may be picked is not among them.
 */
export type ReadName =
  | 'known'
  | 'waiting'
  | 'running'
  | 'kvUsage'
  // Size of the KV cache.
  | 'blockTokens'
  | 'blockCount'
  | 'slotsSeen'
  | 'slotsFull'
  | 'starts'
  | 'inflightScraped'
  | 'signalTime'
  | 'attributes'
  | 'adaptersRunning'
  | 'adaptersWaiting'
  | 'adaptersMax'
  | 'adaptersSent'
  | 'inflight'
  | 'inflightTokens'
  | 'prefillTokens'
  | 'promptTokens'
  | 'prefillRate'
  | 'prefillRateTime'
  | 'prefillRatePeak'
  | 'activeBlocks'
  | 'outputBlocks'
  | 'strictestTpot'
  | 'speed'
  | 'hitReliability'
  | 'hitShare'
  | 'charged'
  | 'costBase'
  | 'costPrefill'
  | 'costWaiting'
  | 'costStep'
  | 'costGrowth'
  // Order in which endpoints were sent prompts that none held (assembly/load/cold-prompts.ts).
  | 'coldOrder'
  // Endpoints of the last turns of sessions (assembly/gate/sessions-layout.ts).
  | 'sessions'
  // Columns of the thread: blocks of the prompt that endpoints hold, and hold in use; predicted times; hook plugins'
  // figures.
  | 'matches'
  | 'overlap'
  | 'predictions'
  | 'hookColumn'
  // Written by the control thread for each endpoint.
  | 'labels'
  | 'mask'
  // Facts of the request: length of its prompt, model, headers named by profiles, wanted latencies, and the pick of an
  // earlier profile.
  | 'promptLength'
  | 'model'
  | 'headers'
  | 'wantedTimes'
  | 'earlierPick';

/** Inputs by the parameters of an operation. */
type Reads = readonly ReadName[] | ((parameters: readonly number[]) => readonly ReadName[]);

/** What a scorer is shown to have looked at; `score` = its own score, where no figure of its input is kept. */
export interface ScorerInputs {
  readonly waiting: number | undefined;
  readonly predictedWaiting: number | undefined;
  readonly running: number | undefined;
  readonly kvUsage: number | undefined;
  readonly cachedTokens: number;
  readonly promptTokens: number;
  readonly inflight: number;
  readonly inflightTokens: number;
  readonly activeBlocks: number;
  readonly predictedTtftMs: number | undefined;
  readonly score: number | undefined;
}

/** The input that a scorer goes by most of all, and its name for people. */
export interface OperationSignal {
  readonly name: string;
  readonly input: keyof ScorerInputs;
  /** What the engine reported last, where the input was worked out from it. */
  readonly scraped?: keyof ScorerInputs;
}

/** Term of the one pass that evaluates several scorers (assembly/scheduling/fused-scorers.ts). */
export type FusedTerm = 'fewest' | 'usage' | 'prefix';

export interface OperationFacts {
  readonly reads: Reads;
}

export interface ScorerFacts extends OperationFacts {
  readonly fused: FusedTerm | undefined;
  /** Whether its subject, load or cache, is a part of marginal cost, which can replace it. */
  readonly replacedByCost: boolean;
  readonly signal: OperationSignal | ((parameters: readonly number[]) => OperationSignal);
}

/** Waiting requests as predicted for now (assembly/columns/values.ts). */
const WAITING = ['known', 'waiting', 'running', 'inflight', 'inflightScraped', 'starts', 'slotsFull'] as const;
const QUEUED: OperationSignal = { name: 'predicted waiting requests', input: 'predictedWaiting', scraped: 'waiting' };

/** Inputs of marginal cost (assembly/scheduling/marginal-cost.ts). */
const COST = [
  ...['known', 'waiting', 'kvUsage', 'inflight', 'prefillTokens', 'promptTokens', 'slotsSeen', 'matches'],
  ...['blockTokens', 'blockCount', 'activeBlocks', 'overlap'],
  ...['prefillRate', 'prefillRateTime', 'prefillRatePeak', 'speed', 'hitReliability', 'promptLength', 'wantedTimes'],
  ...['costBase', 'costPrefill', 'costWaiting', 'costStep', 'costGrowth'],
] as readonly ReadName[];

/** Inputs of named values, by VALUE_* number; every further number is an attribute. */
const VALUES: ReadonlyMap<number, { readonly reads: readonly ReadName[]; readonly signal: OperationSignal }> = new Map([
  [CORE.VALUE_ACTIVE_REQUESTS, { reads: ['inflight'], signal: { name: 'requests in flight', input: 'inflight' } }],
  [
    CORE.VALUE_ACTIVE_TOKENS,
    { reads: ['inflightTokens'], signal: { name: 'tokens in flight', input: 'inflightTokens' } },
  ],
  [CORE.VALUE_WAITING, { reads: WAITING, signal: QUEUED }],
  [CORE.VALUE_RUNNING, { reads: ['known', 'running'], signal: { name: 'running requests', input: 'running' } }],
  [CORE.VALUE_KV_USAGE, { reads: ['known', 'kvUsage'], signal: { name: 'KV cache used', input: 'kvUsage' } }],
] as const);

/** Inputs of a named value. */
function valueReads([source]: readonly number[]): readonly ReadName[] {
  return VALUES.get(source!)?.reads ?? ['attributes'];
}

/** The inputs of finite limits; infinite ones compare with nothing. */
function limited(
  limits: readonly (readonly [limit: number | undefined, reads: readonly ReadName[]])[],
): readonly ReadName[] {
  return limits.flatMap(([limit, reads]) => (Number.isFinite(limit) ? reads : []));
}

/** Facts of a scorer of load or cache. */
function loadOrCache(reads: Reads, signal: OperationSignal, fused?: FusedTerm): ScorerFacts {
  return { reads, fused, replacedByCost: true, signal };
}

/** Facts of a scorer that continues beside marginal cost. */
function besideCost(reads: Reads, signal: ScorerFacts['signal']): ScorerFacts {
  return { reads, fused: undefined, replacedByCost: false, signal };
}

const shown = (name: string, input: keyof ScorerInputs): OperationSignal => ({ name, input });
const CACHED = shown('cached tokens', 'cachedTokens');
const INFLIGHT = shown('requests in flight', 'inflight');
const TOKENS = shown('tokens in flight', 'inflightTokens');

/** Inputs of a hash scorer: without a load factor it does not look at the load. */
const hashed: Reads = ([, , factor]) => ['labels', 'headers', ...(factor! > 0 ? (['inflight'] as const) : [])];

/** Inputs of a picker: further picks look at the hosts of endpoints. */
function apart(...reads: readonly ReadName[]): (parameters: readonly number[]) => readonly ReadName[] {
  return ([count, hosts]) => (count! > 1 && hosts! > 0 ? [...reads, 'labels'] : reads);
}

type Facts = Readonly<Record<ScorerName, ScorerFacts> & Record<Exclude<OperationName, ScorerName>, OperationFacts>>;

/**
 * Facts of every operation. From them follow the columns that the core fills for a program, the messages of the proxy
 * that a configuration needs (config/proxy-needs.ts), the scorers that marginal cost replaces, and the signals of
 * `why`.
 */
export const OPERATIONS: Facts = {
  OP_FILTER_MASK: { reads: ['mask'] },
  OP_FILTER_HOST: { reads: ['hookColumn'] },
  OP_FILTER_THRESHOLD: { reads: valueReads },
  OP_FILTER_RANGE: { reads: valueReads },
  OP_FILTER_LOWEST: { reads: valueReads },
  OP_FILTER_UTILIZATION: {
    reads: ([active, running, waiting, usage]) =>
      limited([
        [active, ['inflight']],
        [running, ['known', 'running']],
        [waiting, WAITING],
        [usage, ['known', 'kvUsage']],
      ]),
  },
  OP_FILTER_PREFIX_AFFINITY: {
    reads: ([, , penalty, , predicted]) => {
      if (!(penalty! > 0)) return ['matches'];
      return ['matches', predicted ? 'predictions' : 'inflightTokens'];
    },
  },
  OP_FILTER_CONTEXT_LENGTH: { reads: ['labels', 'promptLength'] },
  OP_FILTER_UNSATURATED: { reads: [...WAITING, 'kvUsage', 'signalTime'] },
  OP_FILTER_CONCURRENCY: {
    reads: ([requests, tokens]) =>
      limited([
        [requests, ['inflight']],
        [tokens, ['inflightTokens']],
      ]),
  },
  OP_FILTER_STICKY: { reads: ['matches', 'inflightTokens'] },
  OP_FILTER_SERVED_MODEL: { reads: ['hookColumn'] },
  OP_FILTER_WARM_UP: { reads: ['charged', 'hitShare', 'matches', ...WAITING] },
  OP_FILTER_OVERLOAD: {
    reads: ([waiting, usage]) => [
      // A learned limit is that of the predicted count's own full engine.
      ...(waiting! < Number.POSITIVE_INFINITY ? WAITING : []),
      ...(usage! < 0 ? (['blockTokens', 'blockCount', 'promptLength', 'matches'] as const) : []),
      ...(usage! < Number.POSITIVE_INFINITY ? (['known', 'kvUsage'] as const) : []),
    ],
  },
  OP_FILTER_TOPOLOGY: { reads: ['labels', 'earlierPick'] },
  OP_FILTER_TIER: { reads: ['predictions'] },

  OP_SCORE_QUEUE: loadOrCache(WAITING, QUEUED, 'fewest'),
  OP_SCORE_RUNNING: loadOrCache(['known', 'running'], shown('running requests', 'running'), 'fewest'),
  OP_SCORE_KV_USAGE: loadOrCache(['known', 'kvUsage'], shown('KV cache used', 'kvUsage'), 'usage'),
  OP_SCORE_PREFIX: loadOrCache(['matches'], CACHED, 'prefix'),
  OP_SCORE_ACTIVE_REQUEST: loadOrCache(['inflight'], INFLIGHT),
  OP_SCORE_TOKEN_LOAD: loadOrCache(['inflightTokens', 'matches', 'promptLength'], TOKENS),
  OP_SCORE_ACTIVE_BLOCKS: loadOrCache(
    ([, , , decay, queued]) => {
      const blocks: readonly ReadName[] = ['activeBlocks', 'outputBlocks', 'overlap', 'matches'];
      return decay! > 0 || queued ? [...blocks, 'inflightTokens'] : blocks;
    },
    shown('active blocks', 'activeBlocks'),
  ),
  OP_SCORE_LOAD_AWARE: loadOrCache(WAITING, QUEUED),
  OP_SCORE_NO_HIT_LRU: loadOrCache(['matches', 'coldOrder'], CACHED),
  OP_SCORE_LMETRIC: loadOrCache(['inflightTokens', 'inflight', 'matches', 'promptLength'], TOKENS),
  OP_SCORE_CACHE_AWARE: loadOrCache(['inflight', 'matches'], CACHED),
  OP_SCORE_PREFIX_BALANCE: loadOrCache(['inflight', 'matches'], CACHED),
  OP_SCORE_EXPLOIT_EXPLORE: loadOrCache(['inflightTokens', 'inflight', 'matches', 'promptLength'], CACHED),

  OP_SCORE_MARGINAL_COST: besideCost(COST, CACHED),
  OP_SCORE_LATENCY: besideCost(
    ['predictions', 'inflight', ...WAITING, 'kvUsage', 'matches'],
    shown('predicted time to first token, ms', 'predictedTtftMs'),
  ),
  OP_SCORE_ADAPTER: besideCost(
    ([remembers]) => [
      ...(['model', 'adaptersRunning', 'adaptersWaiting', 'adaptersMax'] as const),
      ...(remembers ? (['adaptersSent'] as const) : []),
    ],
    shown('adapter: 1 loaded, 0.8 has room, 0 none', 'score'),
  ),
  OP_SCORE_HOST: besideCost(['hookColumn'], shown('figure of the hook plugin', 'score')),
  OP_SCORE_HEADER_LABEL: besideCost(['labels', 'headers'], shown('label is that of the header', 'score')),
  OP_SCORE_ATTRIBUTE: besideCost(
    valueReads,
    ([source]) => VALUES.get(source!)?.signal ?? shown('attribute on its scale', 'score'),
  ),
  OP_SCORE_CONTEXT_LENGTH: besideCost(['labels', 'promptLength'], shown('prompt tokens', 'promptTokens')),
  OP_SCORE_RENDEZVOUS: besideCost(hashed, INFLIGHT),
  OP_SCORE_CONSISTENT_HASH: besideCost(hashed, INFLIGHT),
  OP_SCORE_SESSION_HOME: besideCost(['sessions'], shown('last turn of the session was there', 'score')),
  OP_SCORE_TOPOLOGY: besideCost(['labels', 'earlierPick'], shown('nearness: 1 host, 0.2 rack, 0.05 zone', 'score')),

  OP_PICK_MAX_SCORE: { reads: apart('known', 'inflight') },
  OP_PICK_RANDOM: { reads: apart() },
  OP_PICK_WEIGHTED_RANDOM: { reads: apart() },
  OP_PICK_BEST_OF: { reads: ([count, , hosts]) => apart('known', 'inflight')([count!, hosts!]) },
  OP_PICK_LEAST_REQUEST: { reads: apart('known', 'inflight') },
  OP_PICK_ROUND_ROBIN: { reads: apart() },

  OP_PREDICT: {
    reads: [
      ...['known', 'waiting', 'kvUsage', 'inflight', 'prefillTokens', 'strictestTpot', 'matches', 'mask'],
      ...['predictions', 'promptLength', 'wantedTimes'],
    ] as readonly ReadName[],
  },
  OP_ADMIT_LATENCY: { reads: ['predictions', 'known', 'running', 'kvUsage', 'inflight', 'wantedTimes'] },
  OP_WOULD_PICK: { reads: COST },
};

/** Inputs of an operation with its parameters; none for an operation outside the core, which no program takes. */
export function readsOf({ code, parameters }: Pick<Operation, 'code' | 'parameters'>): readonly ReadName[] {
  const { reads } = (OPERATIONS as Readonly<Record<string, OperationFacts>>)[code] ?? { reads: [] };
  return typeof reads === 'function' ? reads(parameters) : reads;
}

/** Operations whose overlap counts only where the prompt presses a KV cache (assembly/scheduling/memory-price.ts). */
const PRESSED_OVERLAP: ReadonlySet<OperationName> = new Set(['OP_SCORE_MARGINAL_COST', 'OP_WOULD_PICK']);

/** Whether an operation takes the overlap as 0 where the prompt presses no KV cache. */
export function takesPressedOverlap(code: OperationName): boolean {
  return PRESSED_OVERLAP.has(code);
}

/** Whether an operation is a scorer. */
export function isScorer(code: OperationName): code is ScorerName {
  return code.startsWith('OP_SCORE_');
}

/** Term of the fused pass that an operation becomes; undefined = none. */
export function fusedTerm(code: OperationName): FusedTerm | undefined {
  return isScorer(code) ? OPERATIONS[code]?.fused : undefined;
}

/** The input that a scorer goes by most of all. */
export function signalOf(code: ScorerName, parameters: readonly number[]): OperationSignal {
  const { signal } = OPERATIONS[code];
  return typeof signal === 'function' ? signal(parameters) : signal;
}
