import { z } from 'zod';
import { type RandomStream, ZipfRanks } from '../fleet/random-stream.js';
import type { Session, Turn } from '../fleet/workload.js';
import { arrivals } from './arrivals.js';
import { defineWorkload } from './generator.js';
import { arrivalFields, drawLength, type Length, length } from './parameters.js';
import type { GrowingText } from './text.js';

interface Dialogue {
  readonly turns: number;
  readonly first: Length;
  readonly prompt: Length;
  readonly output: Length;
  readonly thinkMs: () => number;
  /** Longest context; a dialogue ends before it. */
  readonly most: number;
  /** Sessions that go on from the end of a turn beside it. */
  readonly spawns?: (text: GrowingText) => readonly Session[];
}

/** A dialogue over a beginning: every turn sends all that was said before. */
function dialogue(beginning: GrowingText, settings: Dialogue, startMs: number, random: RandomStream): Session {
  const text = beginning.copy();
  const lengths: Omit<Turn, 'chain'>[] = [];
  const ends: number[] = [];
  for (let turn = 0; turn < settings.turns; turn++) {
    const prompt = drawLength(turn === 0 ? settings.first : settings.prompt, random);
    const outputTokens = drawLength(settings.output, random);
    if (turn > 0 && text.tokens + prompt + outputTokens > settings.most) break;
    const promptTokens = text.append(prompt).tokens;
    ends.push(text.append(outputTokens).tokens);
    const thinkMs = turn === 0 ? 0 : settings.thinkMs();
    const spawns = settings.spawns?.(text) ?? [];
    lengths.push({ promptTokens, outputTokens, thinkMs, ...(spawns.length > 0 && { spawns }) });
  }
  // All turns look into one chain: each is the beginning of the next.
  const chain = text.chain();
  const turns = lengths.map((turn, i) => ({ ...turn, chain: chain.subarray(0, text.blocksIn(ends[i]!)) }));
  return { startMs, part: 0, turns };
}

export const chat = defineWorkload({
  kind: 'chat',
  doc: 'Conversations of several turns, closed loop: the next turn comes after the last answer and a pause to think.',
  parameters: z.strictObject({
    ...arrivalFields(2),
    prompts: z.int().min(1).default(20).describe('Different system prompts.'),
    popularity: z.number().min(0).default(1).describe('Zipf exponent of the system prompts.'),
    system: length(1000, 0.5, 16_000),
    turns: z.number().min(1).default(6).describe('Mean turns (geometric).'),
    prompt: length(180, 1, 8_000),
    output: length(250, 0.7, 4_000),
    thinkSeconds: z.number().min(0).default(10).describe('Mean pause before the next turn (exponential).'),
    longest: z.int().min(1).default(32_000).describe('Context at which a conversation ends.'),
  }),
  generate(given, context) {
    const { random, seconds } = context;
    const systems = Array.from({ length: given.prompts }, () =>
      context.text().append(drawLength(given.system, random)),
    );
    const ranks = new ZipfRanks(given.prompts, given.popularity);
    return arrivals(given, seconds, random).map((at) =>
      dialogue(
        systems[ranks.draw(random)]!,
        {
          turns: geometric(given.turns, random),
          first: given.prompt,
          prompt: given.prompt,
          output: given.output,
          thinkMs: () => random.exponential(given.thinkSeconds * 1e3),
          most: given.longest,
        },
        at,
        random,
      ),
    );
  },
});

type Quantiles = readonly (readonly [share: number, seconds: number])[];

function isQuantiles(points: Quantiles): boolean {
  if (points.length === 0) return true;
  const rises = points.slice(1).every(([share, seconds], i) => share > points[i]![0] && seconds >= points[i]![1]);
  return points.length > 1 && rises && points[0]![0] === 0 && points.at(-1)![0] === 1;
}

/** The value at a share of a distribution that is given by points. */
function quantileOf(points: Quantiles, at: number): number {
  const next = Math.max(
    1,
    points.findIndex(([share]) => share >= at),
  );
  const [[low, from], [high, to]] = [points[next - 1]!, points[next]!];
  return from * (to / from) ** ((at - low) / (high - low));
}

const agentFields = {
  ...arrivalFields(0.04),
  tools: z.int().min(1).default(4).describe('Different sets of system prompt and tools.'),
  system: length(15_000, 0.2, 40_000),
  task: length(6_000, 1, 60_000),
  turns: z.number().min(1).default(30).describe('Mean turns (geometric).'),
  result: length(1_800, 1.2, 30_000),
  output: length(439, 0.9, 4_000),
  thinkSeconds: z.number().min(0).default(10).describe('Median pause before the next turn.'),
  thinkMost: z.number().min(0).default(30).describe('Longer pauses are cut to this; seconds.'),
  pauses: z
    .array(z.tuple([z.number().min(0).max(1), z.number().gt(0)]))
    .default([])
    .describe(
      'Quantiles of the pauses in the place of the median: points [share, seconds], from share 0 to 1, ' +
        'straight lines of the logarithm between them.',
    )
    .refine(isQuantiles, 'the shares must rise from 0 to 1, and the seconds must not fall'),
  longest: z.int().min(1).default(131_000).describe('Context at which a session ends.'),
};

type AgentSettings = z.output<z.ZodObject<typeof agentFields>>;

/** Pauses of agents are heavy-tailed: p50 10 s, p90 166 s in the traces, a sigma of 2.2. */
function agentPauses({ thinkSeconds, thinkMost, pauses }: AgentSettings, random: RandomStream): () => number {
  if (pauses.length > 0) return () => 1e3 * quantileOf(pauses, random.uniform());
  return () => 1e3 * Math.min(thinkMost, thinkSeconds * Math.exp(2.2 * random.normal()));
}

function agentDialogue(given: AgentSettings, random: RandomStream): Dialogue {
  return {
    turns: geometric(given.turns, random),
    first: given.task,
    prompt: given.result,
    output: given.output,
    thinkMs: agentPauses(given, random),
    most: given.longest,
  };
}

export const agentic = defineWorkload({
  kind: 'agentic',
  doc:
    'Coding agents, closed loop: a long shared system prompt with tools, dozens of turns that add tool results, ' +
    'contexts of tens of thousands of tokens (shape of the WEKA agentic traces).',
  parameters: z.strictObject(agentFields),
  generate(given, context) {
    const { random, seconds } = context;
    const systems = Array.from({ length: given.tools }, () => context.text().append(drawLength(given.system, random)));
    return arrivals(given, seconds, random).map((at) =>
      dialogue(systems[random.below(given.tools)]!, agentDialogue(given, random), at, random),
    );
  },
});

export const subAgents = defineWorkload({
  kind: 'sub-agents',
  doc:
    'Coding agents that hand work to others: some turns end with a burst of sub-agents, ' +
    'which begin with all that was ' +
    'said and work beside each other; the agent goes on when all of them are done.',
  parameters: z.strictObject({
    ...agentFields,
    burstShare: z.number().min(0).max(1).default(0.05).describe('Share of the turns that end with a burst.'),
    burst: z
      .strictObject({
        mean: z.number().min(1).default(8).describe('Mean of the sub-agents of a burst (lognormal).'),
        sigma: z.number().min(0).max(3).default(1).describe('Standard deviation of the logarithm.'),
        most: z.int().min(1).default(50),
      })
      .prefault({}),
    subTurns: z.number().min(1).default(4).describe('Mean turns of a sub-agent (geometric).'),
  }),
  generate(given, context) {
    const { random, seconds } = context;
    const { burst, burstShare, subTurns } = given;
    const systems = Array.from({ length: given.tools }, () => context.text().append(drawLength(given.system, random)));
    const helper = (text: GrowingText) => {
      const turns = { ...agentDialogue(given, random), turns: geometric(subTurns, random), first: given.result };
      return dialogue(text, turns, 0, random);
    };
    const spawns = (text: GrowingText) => {
      if (random.uniform() >= burstShare) return [];
      return Array.from({ length: drawLength(burst, random) }, () => helper(text));
    };
    return arrivals(given, seconds, random).map((at) =>
      dialogue(systems[random.below(given.tools)]!, { ...agentDialogue(given, random), spawns }, at, random),
    );
  },
});

export const toolCalls = defineWorkload({
  kind: 'tool-calls',
  doc:
    'Tool agents as independent requests: a tool prompt by popularity and a history of its own (lengths of the ' +
    'Mooncake toolagent trace: 8,596 in, 182 out).',
  parameters: z.strictObject({
    ...arrivalFields(6),
    tools: z.int().min(1).default(60).describe('Different tool prompts.'),
    popularity: z.number().min(0).default(1.2).describe('Zipf exponent of the tool prompts.'),
    shared: length(5_000, 0.5, 60_000),
    prompt: length(3_600, 1, 60_000),
    output: length(182, 0.8, 4_000),
  }),
  generate(given, context) {
    const { random, seconds } = context;
    const beginnings = Array.from({ length: given.tools }, () =>
      context.text().append(drawLength(given.shared, random)),
    );
    const ranks = new ZipfRanks(given.tools, given.popularity);
    return arrivals(given, seconds, random).map((at) =>
      dialogue(beginnings[ranks.draw(random)]!, oneTurn(given), at, random),
    );
  },
});

export const reasoning = defineWorkload({
  kind: 'reasoning',
  doc: 'Short questions and long answers: decoding is all that counts.',
  parameters: z.strictObject({
    ...arrivalFields(5),
    prompt: length(400, 0.6, 8_000),
    output: length(2_000, 0.6, 16_000),
  }),
  generate(given, context) {
    return arrivals(given, context.seconds, context.random).map((at) =>
      dialogue(context.text(), oneTurn(given), at, context.random),
    );
  },
});

function oneTurn({ prompt, output }: { readonly prompt: Length; readonly output: Length }): Dialogue {
  return { turns: 1, first: prompt, prompt, output, thinkMs: () => 0, most: Number.POSITIVE_INFINITY };
}

function geometric(mean: number, random: RandomStream): number {
  if (mean <= 1) return 1;
  return 1 + Math.floor(Math.log(1 - random.uniform()) / Math.log(1 - 1 / mean));
}
