// Results that others have published, and where examples/simulation/published.yaml replays them.
export interface Claim {
  /** In published.yaml. */
  readonly workload: string;
  readonly policies: readonly string[];
  readonly title: string;
  readonly published: string;
  /** How the replay differs from what was published, and what follows. */
  readonly note: string;
}

export const CLAIMS: readonly Claim[] = [
  {
    workload: 'sglang',
    policies: ['round-robin', 'smg', 'learned'],
    title: 'SGLang: hits from 20 to 75 %',
    published:
      'SGLang 0.4 (December 2024): the cache-aware router raises hits from 20 to 75 % and throughput 1.9 times.',
    note:
      'Five prompts share each beginning, so that round robin finds one in five of the tokens; the number of prompts ' +
      'of a beginning is not published and was chosen for that.',
  },
  {
    workload: 'mooncake',
    policies: ['random', 'least-request', 'active-prefix', 'learned'],
    title: 'Mooncake: the order of its schedulers',
    published:
      'Mooncake (FAST ’25): by time to first token, random > load balancing > cache-aware > cache and ' +
      'load together.',
    note:
      'The published conversations, second half, on eight servers that prefill and decode (Mooncake ' +
      'has separate ones).',
  },
  {
    workload: 'dynamo',
    policies: ['round-robin', 'dynamo', 'learned'],
    title: 'Dynamo: three times the time to first token',
    published:
      'NVIDIA Dynamo (March 2025): KV-aware routing gives a third of the TTFT and half of the latency ' +
      'of round robin.',
    note: 'Tool calls with popular beginnings in the place of 100,000 real queries, which are not public.',
  },
  {
    workload: 'lmetric',
    policies: ['least-request', 'lmetric', 'learned'],
    title: 'LMetric: −92 and −52 % of the time to first token',
    published:
      'LMetric (arXiv 2603.15202): mean TTFT −92 % against vLLM’s own balancing, −52 % against a ' +
      'production scheduler.',
    note: 'The traces of its tables are not at hand; tool calls at the limit of the fleet stand for them.',
  },
  {
    workload: 'preble',
    policies: ['round-robin', 'preble', 'learned'],
    title: 'Preble: 1.5 to 14.5 times on average',
    published:
      'Preble (arXiv 2407.00023): average latency 1.5 to 14.5 times lower, p99 2 to 10 times, than ' +
      'SGLang behind round robin.',
    note: 'The factor grows without bound with the time for which round robin is kept beyond its capacity.',
  },
  ...(['llm-d ramp', 'llm-d ramp with small caches', 'llm-d ramp with old metrics'] as const).map((workload) => ({
    workload,
    policies: ['random', 'load-only', 'precise', 'learned'],
    title: `llm-d: 57 times${workload.slice('llm-d ramp'.length).replace(' with', ', with')}`,
    published:
      'llm-d (September 2025): TTFT p90 0.542 s with KV events, 31.1 s with the approximate index, ' +
      '94.9 s by load, 92.6 s at random.',
    note: {
      'llm-d ramp':
        '73 % of the KV capacity; answers have 175 tokens, as follows from the published tokens a second. ' +
        'Not reproduced ' +
        'between the two indexes: with the weights of the default the approximate one keeps the hits. What tips over ' +
        'is the weight of the prefix (`precise` is 2/1/1 over KV events): it loses hits as load rises, and is then ' +
        'overloaded for the rest of the ramp, by any factor.',
      'llm-d ramp with small caches':
        'The same with two thirds of the memory, so that what is shared fills the caches to 112 %.',
      'llm-d ramp with old metrics': 'The same with the load of five seconds ago.',
    }[workload],
  })),
  {
    workload: 'lodestar',
    policies: ['active-prefix', 'learned'],
    title: 'Lodestar: 1.41 times the time to first token',
    published:
      'Lodestar (arXiv 2606.00946): mean TTFT 1.41 times and p99 1.47 times lower than prefix and ' +
      'load, more on mixed fleets.',
    note: 'Tool calls on four fast and four slow servers; `active-prefix` and the default are prefix and load.',
  },
  {
    workload: 'ten beginnings',
    policies: ['load-only', 'dynamo', 'learned'],
    title: 'Predictive blocks against polled metrics',
    published: 'A router that counts the blocks that it has sent itself sees load that a scrape shows a second later.',
    note: '8 × Llama 8B on L40S, 7,000 tokens in, 100 out, ten beginnings of half the prompt, metrics once a second.',
  },
  {
    workload: 'burst of ten beginnings',
    policies: ['load-only', 'dynamo', 'learned'],
    title: 'Predictive blocks against polled metrics: a burst of 1,000',
    published:
      'The same, 1,000 requests within a tenth of a second: polled metrics send them where nothing seems to wait.',
    note: 'Imbalance is the computing time of the busiest server over the mean.',
  },
];
