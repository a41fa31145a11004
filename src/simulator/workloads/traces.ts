import { z } from 'zod';
import type { Session, Turn } from '../fleet/workload.js';
import { defineWorkload, type GeneratorContext } from './generator.js';
import { half, speedup, tracePath } from './parameters.js';

/** All lines of a trace, or one half of them. */
function part<Line>(lines: readonly Line[], which: 'all' | 'first' | 'second'): readonly Line[] {
  const middle = lines.length >> 1;
  if (which === 'first') return lines.slice(0, middle);
  return which === 'second' ? lines.slice(middle) : lines;
}

/** Lines of a JSONL file, checked. @throws Error with the number of the first bad line */
function jsonLines<Schema extends z.ZodType>(path: string, text: string, schema: Schema): z.output<Schema>[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  if (lines.length === 0) throw new Error(`${path}: the trace is empty`);
  return lines.map((line, number) => {
    const bad = (what: string) => new Error(`${path}:${number + 1}: ${what}`);
    let data: unknown;
    try {
      data = JSON.parse(line);
    } catch {
      throw bad('not a JSON document');
    }
    const checked = schema.safeParse(data);
    if (checked.success) return checked.data;
    const issue = checked.error.issues[0]!;
    throw bad(`${issue.path.join('.') || 'line'}: ${issue.message}`);
  });
}

/** Ids of blocks of a trace in the workload's blocks: each is cut into equal pieces. */
class CutBlocks {
  readonly #first = new Map<string | number, number>();
  readonly #pieces: number;
  readonly #context: GeneratorContext;

  /** @throws Error when the trace's blocks are no multiple of the workload's */
  constructor(path: string, traceBlock: number, context: GeneratorContext) {
    if (traceBlock % context.blockTokens !== 0) {
      throw new Error(`${path}: blocks of ${traceBlock} tokens are no multiple of blockTokens, ${context.blockTokens}`);
    }
    this.#pieces = traceBlock / context.blockTokens;
    this.#context = context;
  }

  /** Chain of a prompt with these blocks, and of its output behind it, which is not shared. */
  chain(blocks: readonly (string | number)[], promptTokens: number, outputTokens: number): Int32Array {
    const { blockTokens, ids } = this.#context;
    const known = Math.min(Math.floor(promptTokens / blockTokens), blocks.length * this.#pieces);
    const chain = new Int32Array(Math.floor((promptTokens + outputTokens) / blockTokens));
    for (let from = 0; from < known; from += this.#pieces) {
      const first = this.#firstOf(blocks[from / this.#pieces]!);
      const end = Math.min(known, from + this.#pieces);
      for (let i = from; i < end; i++) chain[i] = first + i - from;
    }
    const own = ids.take(chain.length - known);
    for (let i = known; i < chain.length; i++) chain[i] = own + i - known;
    return chain;
  }

  #firstOf(block: string | number): number {
    let first = this.#first.get(block);
    if (first === undefined) {
      first = this.#context.ids.take(this.#pieces);
      this.#first.set(block, first);
    }
    return first;
  }
}

const mooncakeLine = z.object({
  timestamp: z.number().min(0),
  input_length: z.int().min(1),
  output_length: z.int().min(0),
  hash_ids: z.array(z.int()),
});

/** Timestamps of the published traces stand on ticks of about 3 s: requests are spread over the tick. */
const TICK_MS = 3_000;
const MOONCAKE_BLOCK = 512;

export const mooncake = defineWorkload({
  kind: 'mooncake',
  doc: 'A trace in the format of Mooncake (FAST 2025): timestamp in ms, lengths, ids of blocks of 512 tokens.',
  parameters: z.strictObject({ path: tracePath, speedup, half }),
  generate({ path, speedup: faster, half: which }, context) {
    const lines = part(jsonLines(path, context.read(path), mooncakeLine), which);
    const blocks = new CutBlocks(path, MOONCAKE_BLOCK, context);
    const begin = lines[0]!.timestamp;
    return within(
      lines.map((line) => {
        const outputTokens = Math.max(1, line.output_length);
        const chain = blocks.chain(line.hash_ids, line.input_length, outputTokens);
        const startMs = (line.timestamp - begin + context.random.uniform() * TICK_MS) / faster;
        return single(startMs, line.input_length, outputTokens, chain);
      }),
      context.seconds,
    );
  },
});

export const azure = defineWorkload({
  kind: 'azure',
  doc: 'A trace of the Azure public dataset (2023): columns TIMESTAMP, ContextTokens, GeneratedTokens. Nothing is shared.',
  parameters: z.strictObject({ path: tracePath, speedup, half }),
  generate({ path, speedup: faster, half: which }, context) {
    const [head, ...rows] = context.read(path).trim().split(/\r?\n/);
    if (head?.trim() !== 'TIMESTAMP,ContextTokens,GeneratedTokens') {
      throw new Error(`${path}:1: expected the columns TIMESTAMP,ContextTokens,GeneratedTokens`);
    }
    const lines = part(rows, which).map((row, i) => {
      const [time, prompt, output] = row.split(',');
      const ms = Date.parse(`${time?.trim().replace(' ', 'T').slice(0, 23)}Z`);
      const promptTokens = Number(prompt);
      if (Number.isNaN(ms) || !(promptTokens >= 0)) throw new Error(`${path}: line ${i + 2} cannot be read: ${row}`);
      return { ms, promptTokens: Math.max(1, promptTokens), outputTokens: Math.max(1, Number(output)) };
    });
    const begin = lines[0]!.ms;
    const blocks = new CutBlocks(path, context.blockTokens, context);
    return within(
      lines.map(({ ms, promptTokens, outputTokens }) =>
        single((ms - begin) / faster, promptTokens, outputTokens, blocks.chain([], promptTokens, outputTokens)),
      ),
      context.seconds,
    );
  },
});

const ownLine = z.strictObject({
  timestamp_ms: z.number().min(0),
  prompt_tokens: z.int().min(1),
  output_tokens: z.int().min(1),
  block_ids: z.array(z.union([z.int(), z.string()])).default([]),
  session: z.union([z.int(), z.string()]).optional(),
  think_ms: z.number().min(0).default(0),
});

export const jsonl = defineWorkload({
  kind: 'jsonl',
  doc: 'A trace of your own, one JSON object a line: timestamp_ms, prompt_tokens, output_tokens, and if known block_ids (each id stands for a block after the blocks before it), session and think_ms (closed loop).',
  parameters: z.strictObject({
    path: tracePath,
    traceBlockTokens: z.int().min(1).default(64).describe('Tokens of one of its blocks.'),
    speedup,
    half,
  }),
  generate({ path, traceBlockTokens, speedup: faster, half: which }, context) {
    const lines = part(jsonLines(path, context.read(path), ownLine), which);
    const blocks = new CutBlocks(path, traceBlockTokens, context);
    const begin = lines[0]!.timestamp_ms;
    const sessions = new Map<string, { startMs: number; turns: Turn[] }>();
    for (const [number, line] of lines.entries()) {
      const key = line.session === undefined ? `request ${number}` : `session ${line.session}`;
      const turn = {
        promptTokens: line.prompt_tokens,
        outputTokens: line.output_tokens,
        chain: blocks.chain(line.block_ids, line.prompt_tokens, line.output_tokens),
        thinkMs: line.think_ms,
      };
      const known = sessions.get(key);
      if (known === undefined)
        sessions.set(key, { startMs: (line.timestamp_ms - begin) / faster, turns: [{ ...turn, thinkMs: 0 }] });
      else known.turns.push(turn);
    }
    return within(
      [...sessions.values()].map((session) => ({ ...session, part: 0 })),
      context.seconds,
    );
  },
});

function single(startMs: number, promptTokens: number, outputTokens: number, chain: Int32Array): Session {
  return { startMs, part: 0, turns: [{ promptTokens, outputTokens, chain, thinkMs: 0 }] };
}

function within(sessions: Session[], seconds: number): Session[] {
  return sessions.filter(({ startMs }) => startMs < seconds * 1e3).sort((a, b) => a.startMs - b.startMs);
}
