// Traffic and fleets drawn at random, as a suite writes them. A number draws the same on every machine.
import { HARDWARE } from '../../dist/tools/simulator/fleet/hardware.js';
import { RandomStream } from '../../dist/tools/simulator/fleet/random-stream.js';

/** One kind of traffic on one fleet. */
export interface DrawnWorkload {
  readonly name: string;
  readonly kind: string;
  readonly fleet: Readonly<Record<string, unknown>>;
  /** Fields of the kind, without rate and seconds. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Rate at which the search for what the default carries begins, in the middle of its range. */
  readonly rate: number;
  /** Share of the default's requests within both objectives at its limit. */
  readonly goodput: number;
  /** Mean requests of one arrival. */
  readonly requestsPerArrival: number;
  /** Shortest traffic in which its sessions end, its caches fill, or its crowd comes and goes. */
  readonly secondsMin: number;
}

interface Length {
  readonly mean: number;
  readonly sigma: number;
  readonly most: number;
}

/** Tokens, counts and shares around usual ones. */
class Lot {
  readonly #random: RandomStream;
  /** Longest part of a prompt, in tokens. */
  readonly #tokensMax: number;

  constructor(random: RandomStream, tokensMax: number) {
    this.#random = random;
    this.#tokensMax = tokensMax;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.#random.uniform();
  }

  /** A whole number whose median is `usual`. @param sigma standard deviation of the logarithm */
  around(usual: number, sigma: number, least = 1): number {
    return Math.max(least, Math.round(usual * Math.exp(sigma * this.#random.normal())));
  }

  /** Lengths of which mean and spread vary. */
  tokens(mean: number, sigma: number, most: number): Length {
    const cut = Math.min(most, this.#tokensMax);
    const spread = Math.min(1.6, sigma * Math.exp(0.4 * this.#random.normal()));
    return { mean: Math.min(cut, this.around(mean, 0.6, 8)), sigma: round(spread), most: cut };
  }

  /** Coefficient of variation of the gaps: three in ten come in bursts. */
  variation(): number {
    return this.#random.uniform() < 0.3 ? round(this.between(1, 4)) : 1;
  }
}

const round = (value: number) => Number(value.toPrecision(3));

interface DrawnKind {
  readonly kind: string;
  /** Arrivals per second on eight endpoints. */
  readonly rate: number;
  readonly secondsMin: number;
  /** Absent = 0.9. */
  readonly goodput?: number;
  readonly fields: (lot: Lot, longest: number) => Readonly<Record<string, unknown>>;
}

const agentFields = (lot: Lot, longest: number) => ({
  tools: lot.around(4, 0.8),
  system: lot.tokens(9_000, 0.3, 40_000),
  task: lot.tokens(4_000, 1, 60_000),
  turns: lot.around(18, 0.5, 3),
  result: lot.tokens(1_500, 1, 30_000),
  output: lot.tokens(400, 0.8, 4_000),
  thinkSeconds: lot.around(6, 1),
  thinkMost: 60,
  longest,
  variation: lot.variation(),
});

const KINDS: readonly DrawnKind[] = [
  {
    kind: 'chat',
    rate: 2.5,
    secondsMin: 240,
    fields: (lot, longest) => ({
      prompts: lot.around(20, 1),
      popularity: round(lot.between(0, 1.4)),
      system: lot.tokens(1_000, 0.5, 16_000),
      turns: lot.around(6, 0.5, 2),
      prompt: lot.tokens(180, 1, 8_000),
      output: lot.tokens(250, 0.7, 4_000),
      thinkSeconds: lot.around(10, 0.8),
      longest,
      variation: lot.variation(),
    }),
  },
  { kind: 'agentic', rate: 0.15, secondsMin: 400, fields: agentFields },
  {
    kind: 'sub-agents',
    rate: 0.06,
    secondsMin: 400,
    // The requests of a burst wait for each other at any load.
    goodput: 0.75,
    fields: (lot, longest) => ({ ...agentFields(lot, longest), burstShare: round(lot.between(0.02, 0.1)) }),
  },
  {
    kind: 'tool-calls',
    rate: 12,
    secondsMin: 150,
    fields: (lot) => ({
      tools: lot.around(60, 0.8),
      popularity: round(lot.between(0, 1.6)),
      shared: lot.tokens(5_000, 0.5, 60_000),
      prompt: lot.tokens(2_500, 1, 60_000),
      output: lot.tokens(182, 0.8, 4_000),
      variation: lot.variation(),
    }),
  },
  {
    kind: 'shared-prefix',
    rate: 16,
    secondsMin: 150,
    fields: (lot) => ({
      groups: lot.around(60, 1.2, 2),
      popularity: round(lot.between(0, 1.4)),
      shared: lot.tokens(4_000, 0.3, 60_000),
      prompt: lot.tokens(800, 0.8, 20_000),
      output: lot.tokens(400, 0.6, 8_000),
      variation: lot.variation(),
    }),
  },
  {
    kind: 'documents',
    rate: 3,
    secondsMin: 240,
    fields: (lot) => ({
      document: lot.tokens(12_000, 0.9, 100_000),
      questions: lot.around(4, 0.5, 2),
      againSeconds: lot.around(100, 0.7),
      prompt: lot.tokens(225, 0.8, 4_000),
      output: lot.tokens(149, 0.8, 4_000),
      variation: lot.variation(),
    }),
  },
  {
    kind: 'separate',
    rate: 40,
    secondsMin: 120,
    fields: (lot) => ({
      prompt: lot.tokens(1_155, 1, 16_000),
      output: lot.tokens(211, 0.8, 4_000),
      variation: lot.variation(),
    }),
  },
  {
    kind: 'reasoning',
    rate: 12,
    secondsMin: 180,
    fields: (lot) => ({
      prompt: lot.tokens(400, 0.6, 8_000),
      output: lot.tokens(1_500, 0.6, 16_000),
      variation: lot.variation(),
    }),
  },
  {
    kind: 'tenants',
    rate: 35,
    secondsMin: 120,
    fields: (lot) => ({
      tenants: lot.around(40, 0.8, 2),
      weight: round(lot.between(0, 1.6)),
      variation: round(lot.between(1, 3)),
      system: lot.tokens(1_500, 0.8, 16_000),
      prompt: lot.tokens(1_000, 1, 16_000),
      output: lot.tokens(250, 0.8, 4_000),
    }),
  },
  {
    kind: 'crowd',
    rate: 12,
    secondsMin: 240,
    fields: (lot) => ({
      groups: lot.around(100, 0.8, 2),
      shared: lot.tokens(3_000, 0.3, 32_000),
      prompt: lot.tokens(600, 0.6, 16_000),
      output: lot.tokens(250, 0.6, 4_000),
      crowdAt: Math.round(lot.between(60, 120)),
      crowdFor: Math.round(lot.between(20, 60)),
      crowdFactor: round(lot.between(0.5, 2.5)),
      variation: lot.variation(),
    }),
  },
];

/** Models and GPUs of the simulator that are drawn from. */
const MACHINES = [
  'llama-8b-l40s',
  'llama-8b-a100',
  'llama-8b-h100',
  'qwen3-14b-h100',
  'qwen3-32b-h100-tp2',
  'llama-70b-h100-tp4',
  'llama-70b-h100-tp8',
] as const;
const ENDPOINTS = [2, 3, 4, 6, 8, 12, 16] as const;
/** Endpoints of the fleet for which the kinds have their rates. */
const USUAL_ENDPOINTS = 8;
/** Share of the fleets in which some machines are slower, and of those that are scraped rarely. */
const MIXED_SHARE = 0.2;
const RARELY_SCRAPED_SHARE = 0.2;

/**
 * Draws traffic and fleet. Each kind comes in turn, so that as many of all are drawn.
 * @param number 0 … ; the same number draws the same
 */
export function drawWorkload(number: number): DrawnWorkload {
  const random = new RandomStream(number, 'drawn traffic');
  const { kind, rate, secondsMin, goodput = 0.9, fields } = KINDS[number % KINDS.length]!;
  const endpoints = ENDPOINTS[random.below(ENDPOINTS.length)]!;
  const fleet = drawFleet(random, endpoints);
  const tokens = fleet.kvTokens;
  // The longest prompt has to fit into a cache beside others.
  const own = fields(new Lot(random, Math.floor(tokens / 4)), Math.floor(Math.min(100_000, tokens / 2)));
  return {
    name: `${kind} ${number}`,
    kind,
    fleet,
    fields: own,
    rate: (rate * endpoints) / USUAL_ENDPOINTS,
    goodput,
    requestsPerArrival: kind === 'documents' ? 1 : ((own as { readonly turns?: number }).turns ?? 1),
    secondsMin,
  };
}

/** The KV cache is that of the machine, less or more: other memory, other weights, other settings of the engine. */
function drawFleet(random: RandomStream, endpoints: number) {
  const hardware = MACHINES[random.below(MACHINES.length)]!;
  const kvTokens = Math.round(HARDWARE[hardware]!.kvTokens * Math.exp(0.5 * random.normal()));
  const slow = Math.max(1, Math.round(endpoints * (0.2 + 0.3 * random.uniform())));
  const speed = round(0.4 + 0.4 * random.uniform());
  const machines =
    random.uniform() < MIXED_SHARE
      ? { groups: [{ count: Math.max(1, endpoints - slow) }, { count: slow, speed }] }
      : { endpoints };
  const scrapeMs = [100, 200, 500, 1000][random.below(4)]!;
  const metrics = random.uniform() < RARELY_SCRAPED_SHARE ? { metrics: { scrapeMs } } : {};
  return { hardware, kvTokens, ...machines, ...metrics };
}
