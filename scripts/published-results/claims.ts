// Results that others have published, and where examples/simulation/published.yaml replays them.

/** Figures of a policy, means over the seeds. Times in milliseconds. */
export interface PolicyFigures {
  readonly ttft: number;
  readonly ttftP90: number;
  readonly ttftP99: number;
  readonly e2e: number;
  /** Share of the prompt tokens that were found in a cache, 0 … 1. */
  readonly hits: number;
  readonly imbalance: number;
}

/** One published figure, and the text of the same figure of the replay. */
export interface ReplayedFigure {
  readonly what: string;
  readonly published: string;
  readonly here: (of: (policy: string) => PolicyFigures) => string;
}

export interface Claim {
  /** In published.yaml. */
  readonly workload: string;
  /** Whether its traffic is a trace of others. */
  readonly trace?: boolean;
  readonly policies: readonly string[];
  readonly title: string;
  readonly published: string;
  /** How the replay differs from what was published, and what follows. */
  readonly note: string;
  readonly figures: readonly ReplayedFigure[];
}

type Figure = 'ttft' | 'ttftP90' | 'ttftP99' | 'e2e';

/** How many times lower a figure is by one policy than by another. */
function times(figure: Figure, than: string, policy: string): ReplayedFigure['here'] {
  return (of) => `${(of(than)[figure] / of(policy)[figure]).toFixed(2)} ×`;
}

/** Change of the mean TTFT by one policy against another. */
function change(than: string, policy: string): ReplayedFigure['here'] {
  return (of) => `${Math.round(100 * (of(policy).ttft / of(than).ttft - 1))} %`.replace('-', '−');
}

function seconds(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(1);
}

/** Policies from the largest mean TTFT to the smallest. */
function order(policies: readonly string[]): ReplayedFigure['here'] {
  return (of) => [...policies].sort((a, b) => of(b).ttft - of(a).ttft).join(' > ');
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
      'of a beginning is not published and was chosen for that. The rate is fixed, so the throughput is that of the ' +
      'traffic.',
    figures: [
      {
        what: 'hits, `round-robin` to `smg`',
        published: '20 to 75 %',
        here: (of) => `${(100 * of('round-robin').hits).toFixed(0)} to ${(100 * of('smg').hits).toFixed(0)} %`,
      },
    ],
  },
  {
    workload: 'mooncake',
    trace: true,
    policies: ['random', 'least-request', 'active-prefix', 'learned'],
    title: 'Mooncake: the order of its schedulers',
    published:
      'Mooncake (FAST ’25): by time to first token, random > load balancing > cache-aware > cache and ' +
      'load together.',
    note:
      'The published conversations, second half, on eight servers that prefill and decode (Mooncake ' +
      'has separate ones).',
    figures: [
      {
        what: 'order by mean TTFT',
        published: 'random > load > cache-aware > both',
        here: order(['random', 'least-request', 'active-prefix', 'learned']),
      },
    ],
  },
  ...(['dynamo', 'dynamo near the limit'] as const).map((workload) => ({
    workload,
    policies: ['round-robin', 'dynamo', 'learned'],
    title: `Dynamo: three times the time to first token${workload === 'dynamo' ? '' : ', near the limit'}`,
    published:
      'NVIDIA Dynamo (March 2025): KV-aware routing gives a third of the TTFT and half of the latency ' +
      'of round robin.',
    note: {
      dynamo:
        'Tool calls with popular beginnings in the place of 100,000 real queries, which are not public. The factor ' +
        'depends on how near round robin is to its capacity, which is not published.',
      'dynamo near the limit': 'The same at 1.3 times the rate, where round robin reaches its capacity.',
    }[workload],
    figures: [
      {
        what: 'TTFT mean, `round-robin` to `dynamo`',
        published: '3 ×',
        here: times('ttft', 'round-robin', 'dynamo'),
      },
      { what: 'end to end, the same', published: '2 ×', here: times('e2e', 'round-robin', 'dynamo') },
    ],
  })),
  ...(['lmetric', 'lmetric beyond the limit'] as const).map((workload) => ({
    workload,
    policies: ['least-request', 'lmetric', 'learned'],
    title: `LMetric: −92 and −52 % of the time to first token${workload === 'lmetric' ? '' : ', beyond the limit'}`,
    published:
      'LMetric (arXiv 2603.15202): mean TTFT −92 % against vLLM’s own balancing, −52 % against a ' +
      'production scheduler.',
    note: {
      lmetric:
        'The traces of its tables are not at hand; tool calls at the limit of the fleet stand for them. The ' +
        'production scheduler is not published; the default stands for it, and is nearer to `lmetric` here.',
      'lmetric beyond the limit':
        'The same at 1.2 times the rate, which exceeds the capacity of a balancing that sees no cache.',
    }[workload],
    figures: [
      {
        what: 'TTFT mean, `least-request` to `lmetric`',
        published: '−92 %',
        here: change('least-request', 'lmetric'),
      },
      { what: 'TTFT mean, default to `lmetric`', published: '−52 %', here: change('default', 'lmetric') },
    ],
  })),
  ...(['preble', 'preble near the limit'] as const).map((workload) => ({
    workload,
    policies: ['round-robin', 'preble', 'learned'],
    title: `Preble: 1.5 to 14.5 times on average${workload === 'preble' ? '' : ', near the limit'}`,
    published:
      'Preble (arXiv 2407.00023): average latency 1.5 to 14.5 times lower, p99 2 to 10 times, than ' +
      'SGLang behind round robin.',
    note: {
      preble:
        'Four servers beyond the capacity of every rule, so that all have a queue. The factor grows without bound ' +
        'with the time for which round robin alone is kept beyond its capacity.',
      'preble near the limit': 'The same at 0.85 times the rate, which exceeds the capacity of round robin alone.',
    }[workload],
    figures: [
      {
        what: 'end to end, `round-robin` to `preble`',
        published: '1.5 to 14.5 ×',
        here: times('e2e', 'round-robin', 'preble'),
      },
      { what: 'TTFT mean, the same', published: '–', here: times('ttft', 'round-robin', 'preble') },
      { what: 'TTFT p99, the same', published: '2 to 10 ×', here: times('ttftP99', 'round-robin', 'preble') },
    ],
  })),
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
        'Not reproduced between the two indexes: with the weights of the default the approximate one keeps the ' +
        'hits. What tips over is the weight of the prefix (`precise` is 2/1/1 over KV events): it loses hits as ' +
        'load rises, and is then overloaded for the rest of the ramp, by any factor.',
      'llm-d ramp with small caches':
        'The same with two thirds of the memory, so that what is shared fills the caches to 112 %.',
      'llm-d ramp with old metrics': 'The same with the load of five seconds ago.',
    }[workload],
    figures: [
      {
        what: 'TTFT p90, approximate index to KV events',
        published: '31.1 to 0.5 s',
        here: (of: (policy: string) => PolicyFigures) =>
          `${seconds(of('default').ttftP90)} (default) to ${seconds(of('precise').ttftP90)} s (\`precise\`)`,
      },
      {
        what: 'TTFT p90, random to the best index',
        published: '92.6 to 0.5 s',
        here: (of: (policy: string) => PolicyFigures) =>
          `${seconds(of('random').ttftP90)} to ${seconds(of('default').ttftP90)} s`,
      },
    ],
  })),
  {
    workload: 'lodestar',
    policies: ['active-prefix', 'learned'],
    title: 'Lodestar: 1.41 times the time to first token',
    published:
      'Lodestar (arXiv 2606.00946): mean TTFT 1.41 times and p99 1.47 times lower than prefix and ' +
      'load, more on mixed fleets.',
    note: 'Tool calls on four fast and four slow servers; `active-prefix` and the default are prefix and load.',
    figures: [
      {
        what: 'TTFT mean, `active-prefix` to `learned`',
        published: '1.41 ×',
        here: times('ttft', 'active-prefix', 'learned'),
      },
      { what: 'TTFT p99, the same', published: '1.47 ×', here: times('ttftP99', 'active-prefix', 'learned') },
    ],
  },
  {
    workload: 'ten beginnings',
    policies: ['load-only', 'dynamo', 'learned'],
    title: 'Predictive blocks against polled metrics',
    published: 'A router that counts the blocks that it has sent itself sees load that a scrape shows a second later.',
    note: '8 × Llama 8B on L40S, 7,000 tokens in, 100 out, ten beginnings of half the prompt, metrics once a second.',
    figures: [
      {
        what: 'TTFT mean, `load-only` to `dynamo`',
        published: 'lower',
        here: times('ttft', 'load-only', 'dynamo'),
      },
    ],
  },
  {
    workload: 'burst of ten beginnings',
    policies: ['load-only', 'dynamo', 'learned'],
    title: 'Predictive blocks against polled metrics: a burst of 1,000',
    published:
      'The same, 1,000 requests within a tenth of a second: polled metrics send them where nothing seems to wait.',
    note: 'Imbalance is the computing time of the busiest server over the mean.',
    figures: [
      {
        what: 'imbalance, `load-only` to `dynamo`',
        published: 'lower',
        here: (of) => `${of('load-only').imbalance.toFixed(2)} to ${of('dynamo').imbalance.toFixed(2)}`,
      },
      { what: 'TTFT mean, the same', published: 'lower', here: times('ttft', 'load-only', 'dynamo') },
    ],
  },
];
