import { z } from 'zod';
import { ZipfRanks } from '../fleet/random-stream.js';
import type { Session } from '../fleet/workload.js';
import { arrivals } from './arrivals.js';
import { defineWorkload, type GeneratorContext } from './generator.js';
import { arrivalFields, drawLength, length } from './parameters.js';
import type { GrowingText } from './text.js';

/** One request: a beginning that it may share with others, its own text, its answer. */
function request(beginning: GrowingText, own: number, output: number, startMs: number): Session {
  const text = beginning.copy().append(own);
  const promptTokens = text.tokens;
  text.append(output);
  return { startMs, part: 0, turns: [{ promptTokens, outputTokens: output, chain: text.chain(), thinkMs: 0 }] };
}

function sharedTexts({ text, random }: GeneratorContext, count: number, tokens: Parameters<typeof drawLength>[0]) {
  return Array.from({ length: count }, () => text().append(drawLength(tokens, random)));
}

export const sharedPrefix = defineWorkload({
  kind: 'shared-prefix',
  doc:
    "Requests with one of several long shared beginnings (llm-d-benchmark's b2b profile: 150 groups, 6,000 + 1,200 " +
    'in, 1,000 out).',
  parameters: z.strictObject({
    ...arrivalFields(8),
    groups: z.int().min(1).default(150).describe('Different beginnings.'),
    popularity: z.number().min(0).default(0).describe('Zipf exponent of the beginnings; 0 = all alike.'),
    shared: length(6000, 0, 100_000),
    prompt: length(1200, 0, 100_000),
    output: length(1000, 0, 20_000),
  }),
  generate(given, context) {
    const { random, seconds } = context;
    const beginnings = sharedTexts(context, given.groups, given.shared);
    const ranks = new ZipfRanks(given.groups, given.popularity);
    return arrivals(given, seconds, random).map((at) =>
      request(beginnings[ranks.draw(random)]!, drawLength(given.prompt, random), drawLength(given.output, random), at),
    );
  },
});

export const documents = defineWorkload({
  kind: 'documents',
  doc:
    "Questions about long documents that come back. Fitted to what is published of Mooncake's synthetic trace: " +
    '15,325 tokens in, 149 out, 65 % of the tokens seen before, and the hits of one cache of 2.6, 5.1 and 10.2 ' +
    'million tokens (28, 42 and 57 %).',
  parameters: z.strictObject({
    ...arrivalFields(3.91),
    document: length(15_100, 0.9, 120_000),
    questions: z.number().min(1).default(3.9).describe('Mean questions about a document (geometric).'),
    againSeconds: z.number().gt(0).default(140).describe('Mean time until the next question about it (gamma).'),
    againVariation: z.number().min(0.1).max(10).default(1.2).describe('Coefficient of variation of that time.'),
    prompt: length(225, 0.8, 4_000),
    output: length(149, 0.8, 4_000),
  }),
  generate(given, { random, seconds, text }) {
    // Documents from before the beginning are still asked about, so that the first minutes are like the others.
    const again = () => random.gamma(given.againSeconds * 1e3, given.againVariation);
    const before = LEAD * given.againSeconds;
    const flow = { ...given, rate: given.rate / given.questions, curve: shifted(given.curve, before) };
    const sessions = arrivals(flow, seconds + before, random).flatMap((at) => {
      const document = text().append(drawLength(given.document, random));
      const asked: Session[] = [];
      for (let time = at - before * 1e3; time < seconds * 1e3; time += again()) {
        const own = request(document, drawLength(given.prompt, random), drawLength(given.output, random), time);
        if (time >= 0) asked.push(own);
        if (random.uniform() < 1 / given.questions) break;
      }
      return asked;
    });
    return sessions.sort((a, b) => a.startMs - b.startMs);
  },
});

/** Mean times between questions after which a document's questions have nearly all been asked. */
const LEAD = 6;

function shifted(curve: readonly (readonly [number, number])[], seconds: number): (readonly [number, number])[] {
  return curve.map(([second, factor]) => [second + seconds, factor]);
}

export const separate = defineWorkload({
  kind: 'separate',
  doc: 'Requests that share nothing (lengths as of the Azure conversation trace of 2023: 1,155 in, 211 out).',
  parameters: z.strictObject({
    ...arrivalFields(40),
    prompt: length(1155, 1, 16_000),
    output: length(211, 0.8, 4_000),
  }),
  generate(given, { random, seconds, text }) {
    return arrivals(given, seconds, random).map((at) =>
      request(text(), drawLength(given.prompt, random), drawLength(given.output, random), at),
    );
  },
});

export const tenants = defineWorkload({
  kind: 'tenants',
  doc:
    'Tenants of very different weight, each with its own system prompt, lengths and bursts (after ServeGen: few ' +
    'clients make most of the traffic).',
  parameters: z.strictObject({
    rate: z.number().gt(0).default(20).describe('Mean requests per second of all together.'),
    tenants: z.int().min(1).max(1000).default(40).describe('Number of tenants.'),
    weight: z.number().min(0).default(1.1).describe('Zipf exponent of their shares of the traffic.'),
    variation: z.number().min(0.1).max(20).default(2).describe('Mean coefficient of variation of their gaps.'),
    system: length(1500, 0.8, 16_000),
    prompt: length(1000, 1, 16_000),
    output: length(250, 0.8, 4_000),
  }),
  generate(given, context) {
    const { random, seconds } = context;
    const shares = Array.from({ length: given.tenants }, (_, rank) => (rank + 1) ** -given.weight);
    const sum = shares.reduce((a, b) => a + b, 0);
    const sessions = shares.flatMap((share) => {
      const system = context.text().append(drawLength(given.system, random));
      const prompt = { ...given.prompt, mean: random.lognormal(given.prompt.mean, 0.6) };
      const output = { ...given.output, mean: random.lognormal(given.output.mean, 0.6) };
      const variation = Math.max(0.5, random.lognormal(given.variation, 0.5));
      const flow = { rate: (given.rate * share) / sum, variation, curve: [] };
      return arrivals(flow, seconds, random).map((at) =>
        request(system, drawLength(prompt, random), drawLength(output, random), at),
      );
    });
    return sessions.sort((a, b) => a.startMs - b.startMs);
  },
});

export const crowd = defineWorkload({
  kind: 'crowd',
  doc: 'A steady flow over shared beginnings, and for a while a crowd that all asks with one new beginning.',
  parameters: z.strictObject({
    ...arrivalFields(10),
    groups: z.int().min(1).default(100).describe('Beginnings of the steady flow.'),
    shared: length(3000, 0.3, 32_000),
    prompt: length(600, 0.6, 16_000),
    output: length(250, 0.6, 4_000),
    crowdAt: z.number().min(0).default(120).describe('Second at which the crowd comes.'),
    crowdFor: z.number().gt(0).default(30).describe('Seconds for which it stays.'),
    crowdFactor: z.number().gt(0).default(2).describe('Its rate as a multiple of the steady one.'),
  }),
  generate(given, context) {
    const { random, seconds } = context;
    const beginnings = sharedTexts(context, given.groups, given.shared);
    const news = context.text().append(drawLength(given.shared, random));
    const steady = arrivals(given, seconds, random).map((at) =>
      request(
        beginnings[random.below(given.groups)]!,
        drawLength(given.prompt, random),
        drawLength(given.output, random),
        at,
      ),
    );
    const flow = { rate: given.rate * given.crowdFactor, variation: given.variation, curve: [] };
    const together = arrivals(flow, Math.min(given.crowdFor, Math.max(0, seconds - given.crowdAt)), random).map((at) =>
      request(news, drawLength(given.prompt, random), drawLength(given.output, random), at + given.crowdAt * 1e3),
    );
    return [...steady, ...together].sort((a, b) => a.startMs - b.startMs);
  },
});
