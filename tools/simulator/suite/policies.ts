import {
  type Ablation,
  evolvedWeights,
  plainLeastSquares,
  shortestFirstToken,
  untied,
  withoutDecode,
} from '../fleet/ablation.js';
import type { MakeAdmissionRule } from '../fleet/admission-rule.js';
import { llmDThunderAgent } from '../fleet/llm-d-thunder-agent.js';
import { thunderAgent } from '../fleet/thunder-agent.js';
import type { ScorerWeights } from './schema.js';

/** A rival to compare with: a configuration as users write them, with the source of the rule. */
export interface Baseline {
  readonly name: string;
  readonly doc: string;
  readonly configuration: string;
  /** Whether the prefix index is fed by the engines' events. */
  readonly kvEvents?: boolean;
  /** True for a policy with full and current knowledge (true costs, caches, load), which no real picker has. */
  readonly omniscient?: boolean;
  readonly ablation?: Ablation;
  /** Rule of another router by which turns of named sessions are held. */
  readonly admission?: MakeAdmissionRule;
}

type Entry = readonly [type: string, weight?: number, parameters?: Readonly<Record<string, unknown>>];

/** The text of a configuration with one profile, which learns nothing. */
function profile(...entries: readonly Entry[]): string {
  return learning({ mode: 'off' }, ...entries);
}

function learning(adaptation: Readonly<Record<string, unknown>>, ...entries: readonly Entry[]): string {
  return JSON.stringify({
    adaptation,
    apiVersion: 'llm-d.ai/v1alpha1',
    kind: 'EndpointPickerConfig',
    plugins: entries.map(([type, , parameters]) => ({ type, ...(parameters === undefined ? {} : { parameters }) })),
    schedulingProfiles: [
      {
        name: 'default',
        plugins: entries
          .filter(([type]) => !type.endsWith('-producer'))
          .map(([pluginRef, weight]) => ({ pluginRef, ...(weight === undefined ? {} : { weight }) })),
      },
    ],
  });
}

/** The text of a configuration that weighs scorers and learns nothing. Scorers of weight 0 are left out. */
export function weightedProfile(weights: ScorerWeights): string {
  return profile(...Object.entries(weights).filter(([, weight]) => weight > 0));
}

const DEFAULT_SCORERS: readonly Entry[] = [
  ['queue-scorer', 2],
  ['kv-cache-utilization-scorer', 2],
  ['prefix-cache-scorer', 3],
];

const weighted = (queue: number, kv: number, prefix: number) =>
  profile(['queue-scorer', queue], ['kv-cache-utilization-scorer', kv], ['prefix-cache-scorer', prefix]);

function ablated(name: string, doc: string, ablation: Ablation): Baseline {
  return { name, doc, configuration: learning({ mode: 'always' }, ...DEFAULT_SCORERS), ablation };
}

export const baselines: readonly Baseline[] = [
  { name: 'default', doc: "llm-d's queue 2, KV 2, prefix 3: the reference", configuration: weighted(2, 2, 3) },
  { name: 'equal', doc: 'queue 1, KV 1, prefix 1', configuration: weighted(1, 1, 1) },
  {
    name: 'precise',
    doc: 'queue 2, KV 1, prefix 1 over an index fed by the engines’ events',
    configuration: weighted(2, 1, 1),
    kvEvents: true,
  },
  { name: 'prefix-heavy', doc: 'queue 1, KV 1, prefix 8', configuration: weighted(1, 1, 8) },
  {
    name: 'load-only',
    doc: 'queue 2, KV 2',
    configuration: profile(['queue-scorer', 2], ['kv-cache-utilization-scorer', 2]),
  },
  { name: 'round-robin', doc: 'endpoints in turn', configuration: profile(['round-robin-picker']) },
  { name: 'random', doc: 'any endpoint', configuration: profile(['random-picker']) },
  { name: 'least-request', doc: 'fewest requests in flight', configuration: profile(['least-request-picker']) },
  {
    name: 'two-choices',
    doc: 'the less loaded of two drawn at random',
    configuration: profile(['power-of-two-picker']),
  },
  {
    name: 'active-prefix',
    doc: 'active requests 1, prefix 1',
    configuration: profile(['active-request-scorer', 1], ['prefix-cache-scorer', 1]),
  },
  {
    name: 'active-prefix-3',
    doc: 'active requests 1, prefix 3',
    configuration: profile(['active-request-scorer', 1], ['prefix-cache-scorer', 3]),
  },
  {
    name: 'sticky',
    doc: 'holders until they are saturated, among them the fewest tokens (llm-d, August 2026)',
    configuration: profile(['sticky-until-saturated-filter'], ['token-load-scorer', 1]),
  },
  {
    name: 'sticky-active',
    doc: 'holders until they are saturated, among them the fewest requests',
    configuration: profile(['sticky-until-saturated-filter'], ['active-request-scorer', 1]),
  },
  {
    name: 'fewest-tokens',
    doc: 'fewest uncached prompt tokens pending, this request included (LPWL)',
    configuration: profile(['approx-prefix-cache-producer'], ['token-load-scorer', 1]),
  },
  {
    name: 'lmetric',
    doc: 'pending tokens × requests (arXiv 2603.15202)',
    configuration: profile(['lmetric-scorer', 1]),
  },
  {
    name: 'dynamo',
    doc: "Dynamo's cost: prefill blocks + active blocks, unique",
    configuration: profile(['active-blocks-scorer', 1, { countPrefillInFlight: true }]),
  },
  {
    name: 'dynamo-8',
    doc: "Dynamo's cost with prefill × 8",
    configuration: profile(['active-blocks-scorer', 1, { overlapWeight: 8, countPrefillInFlight: true }]),
  },
  {
    name: 'smg',
    doc: 'SGLang gateway, cache_aware: match above 0.5, overload above 32 and 1.1 × the mean',
    configuration: profile([
      'cache-aware-scorer',
      1,
      { cacheThreshold: 0.5, balanceAbsThreshold: 32, balanceRelThreshold: 1.1 },
    ]),
  },
  {
    name: 'learned',
    doc: 'marginal cost with learned coefficients, without a guard, from the first request',
    configuration: learning({ mode: 'always' }, ...DEFAULT_SCORERS),
  },
  {
    name: 'guarded',
    doc: 'the default, and marginal cost as far as the guard allows',
    configuration: learning({ mode: 'auto' }, ...DEFAULT_SCORERS),
  },
  {
    name: 'projected',
    doc: 'the default’s own scorers with weights fitted to learned costs, without a guard',
    configuration: learning({ mode: 'always', drive: 'weights' }, ...DEFAULT_SCORERS),
  },
  {
    name: 'ducb-4',
    doc:
      'the default and three other rules in turn by discounted upper confidence bounds, without a guard (arXiv ' +
      '0805.3415)',
    configuration: learning({ mode: 'always', drive: 'rules' }, ...DEFAULT_SCORERS),
  },
  {
    name: 'constant-oracle',
    doc: 'marginal cost with the true constants of the engines, caches and load known at once: a reference',
    configuration: profile(['marginal-cost-scorer', 1]),
    omniscient: true,
  },
  ablated('no-busy-price', 'learned, without 1/(1 - ρ)', { hidesPrefillRate: true }),
  ablated('no-kv-price', 'learned, without the price of the last KV blocks', { hidesKvUsage: true }),
  ablated('no-decode', 'learned, without what requests add to each other’s steps', withoutDecode),
  ablated('no-speed', 'learned, all endpoints taken as equally fast', { ignoresSpeed: true }),
  ablated('untied', 'learned, with prices of their own for own tokens and for tokens ahead', untied),
  ablated(
    'plain-rls',
    'learned, by plain recursive least squares in the place of the anchored ridge',
    plainLeastSquares,
  ),
  ablated('explore-1', 'learned, and 1 % of the requests anywhere', { explores: 0.01 }),
  ablated(
    'shortest-ttft',
    'shortest predicted time to first token, selfishly (Mooncake’s rule, learned)',
    shortestFirstToken,
  ),
  ablated(
    'gorgo',
    'GORGO: uncached and queued tokens, weights by an evolution strategy (arXiv 2602.11688)',
    evolvedWeights,
  ),
  {
    name: 'aibrix',
    doc: 'AIBrix prefix-cache: longest match within two deviations of the mean, fewest requests when out of balance',
    configuration: profile(['prefix-balance-scorer', 1]),
  },
  {
    name: 'thunder-agent',
    doc: 'ThunderAgent’s rule (arXiv 2602.13692), clients tell the end of a session',
    configuration: weighted(2, 2, 3),
    admission: thunderAgent(true),
  },
  {
    name: 'thunder-agent-unreleased',
    doc: 'the same, clients tell no end',
    configuration: weighted(2, 2, 3),
    admission: thunderAgent(false),
  },
  {
    name: 'thunder-agent-llm-d',
    doc: 'the rule of llm-d-router’s plugin thunder-agent (llm-d-router#2964)',
    configuration: weighted(2, 2, 3),
    admission: llmDThunderAgent,
  },
  {
    name: 'preble',
    doc: "Preble's E2: exploit the least loaded holder, or explore by load and tokens to compute",
    configuration: profile(['exploit-explore-scorer', 1]),
  },
];
