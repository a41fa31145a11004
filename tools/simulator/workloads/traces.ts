import { z } from 'zod';
import type { Session, Turn } from '../fleet/workload.js';
import { defineWorkload, type GeneratorContext } from './generator.js';
import { half, speedup, tracePath } from './parameters.js';
import { TraceBlocks } from './trace-blocks.js';
import { type CsvRow, csvRows, isoMs, jsonLines, part } from './trace-lines.js';

const mooncakeLine = z.object({
  timestamp: z.number().min(0),
  input_length: z.int().min(1),
  output_length: z.int().min(0),
  hash_ids: z.array(z.int()),
});

/** Timestamps closer together than this are exact times. */
const TICK_MS_MIN = 1_000;
const MOONCAKE_BLOCK = 512;

/**
 * Distance of the ticks that timestamps stand on (of the published traces about 3 s), over which requests are spread; 0
 * for exact times. The median, because single ticks are empty and others off by a millisecond.
 */
export function tickOf(timestamps: readonly number[]): number {
  const times = [...new Set(timestamps)].sort((a, b) => a - b);
  const gaps = times
    .slice(1)
    .map((time, i) => time - times[i]!)
    .sort((a, b) => a - b);
  return gaps.length === 0 || gaps[0]! < TICK_MS_MIN ? 0 : gaps[(gaps.length - 1) >> 1]!;
}

export const mooncake = defineWorkload({
  kind: 'mooncake',
  doc:
    'A trace in the format of Mooncake (FAST 2025): timestamp in ms, lengths, ids of blocks of 512 tokens. ' +
    'Timestamps on ticks are spread over the tick.',
  parameters: z.strictObject({ path: tracePath, speedup, half }),
  source: 'https://github.com/kvcache-ai/Mooncake (FAST25-release/traces)',
  generate({ path, speedup: faster, half: which }, context) {
    const lines = part(path, jsonLines(path, context.read(path), mooncakeLine), which);
    const blocks = new TraceBlocks(path, MOONCAKE_BLOCK, context);
    const begin = lines[0]!.timestamp;
    const tickMs = tickOf(lines.map(({ timestamp }) => timestamp));
    return within(
      lines.map((line) => {
        const outputTokens = Math.max(1, line.output_length);
        const chain = blocks.chain(line.hash_ids, line.input_length, line.input_length + outputTokens);
        const startMs = (line.timestamp - begin + context.random.uniform() * tickMs) / faster;
        return single(startMs, line.input_length, outputTokens, chain);
      }),
      context.seconds,
    );
  },
});

/** Names of columns in published traces and in logs, the usual ones first; units follow from the name. */
const COLUMNS = {
  time: ['timestamp', 'timestamp_ms', 'time', 'arrival_time', 'arrived_at'],
  prompt: ['contexttokens', 'prompt_tokens', 'input_tokens', 'input_length', 'num_prompt_tokens'],
  output: ['generatedtokens', 'output_tokens', 'completion_tokens', 'output_length', 'num_generation_tokens'],
} as const;

const columnNames = z
  .strictObject({
    time: z.string().min(1).optional().describe('An ISO 8601 time, or a number of seconds; of milliseconds in `…_ms`.'),
    prompt: z.string().min(1).optional().describe('Tokens of the prompt.'),
    output: z.string().min(1).optional().describe('Tokens of the answer.'),
  })
  .default({});

type Columns = z.output<typeof columnNames>;

const csvParameters = z.strictObject({
  path: tracePath,
  columns: columnNames.describe(
    'Names of the columns; where one is left out, a usual name is looked for. Others are ignored.',
  ),
  speedup,
  half,
});

export const csv = defineWorkload({
  kind: 'csv',
  doc: 'A trace as CSV with named columns in any order: time, prompt and output tokens. Nothing is shared.',
  parameters: csvParameters,
  generate: fromCsv,
});

export const azure = defineWorkload({
  kind: 'azure',
  doc: 'A trace of the Azure public dataset: columns TIMESTAMP, ContextTokens, GeneratedTokens. Nothing is shared.',
  parameters: z.strictObject({ path: tracePath, speedup, half }),
  source: 'https://github.com/Azure/AzurePublicDataset (AzureLLMInferenceDataset)',
  generate: (parameters, context) => fromCsv({ ...parameters, columns: {} }, context),
});

function fromCsv(
  { path, columns, speedup: faster, half: which }: z.output<typeof csvParameters>,
  context: GeneratorContext,
): Session[] {
  const { columns: given, rows } = csvRows(path, context.read(path));
  const names = {
    time: columnOf(path, given, 'time', columns),
    prompt: columnOf(path, given, 'prompt', columns),
    output: columnOf(path, given, 'output', columns),
  };
  const lines = part(path, rows, which).map((row) => ({
    ms: timeMs(path, row, names.time),
    promptTokens: Math.max(1, tokens(path, row, names.prompt)),
    outputTokens: Math.max(1, tokens(path, row, names.output)),
  }));
  const begin = lines[0]!.ms;
  const blocks = new TraceBlocks(path, context.blockTokens, context);
  return within(
    lines.map(({ ms, promptTokens, outputTokens }) =>
      single((ms - begin) / faster, promptTokens, outputTokens, blocks.chain([], 0, promptTokens + outputTokens)),
    ),
    context.seconds,
  );
}

function columnOf(path: string, given: readonly string[], what: keyof typeof COLUMNS, named: Columns): string {
  const usual: readonly string[] = COLUMNS[what];
  const found =
    named[what] === undefined
      ? given.find((name) => usual.includes(name.toLowerCase()))
      : given.find((name) => name === named[what]);
  if (found !== undefined) return found;
  const wanted = named[what] === undefined ? `a column such as ${usual[0]}` : `the column ${named[what]}`;
  throw new Error(`${path}:1: ${wanted} is missing: set columns.${what} of the workload to one of ${given.join(', ')}`);
}

function timeMs(path: string, { line, cells }: CsvRow, column: string): number {
  const text = cells[column]!;
  const number = text === '' ? Number.NaN : Number(text);
  const ms = Number.isNaN(number) ? isoMs(text) : number * (/_ms$/i.test(column) ? 1 : 1e3);
  if (ms !== undefined) return ms;
  throw new Error(`${path}:${line}: ${column}: expected an ISO 8601 time or a number, got ${JSON.stringify(text)}`);
}

function tokens(path: string, { line, cells }: CsvRow, column: string): number {
  const text = cells[column]!;
  const count = text === '' ? Number.NaN : Number(text);
  if (count >= 0 && Number.isInteger(count)) return count;
  throw new Error(`${path}:${line}: ${column}: expected a whole number of tokens, got ${JSON.stringify(text)}`);
}

const ownLine = z
  .object({
    timestamp_ms: z.number().min(0).optional(),
    timestamp: z.string().optional(),
    prompt_tokens: z.int().min(1),
    output_tokens: z.int().min(1),
    block_ids: z.array(z.union([z.int(), z.string()])).default([]),
    session: z.union([z.int(), z.string()]).optional(),
    think_ms: z.number().min(0).default(0),
  })
  .transform(({ timestamp, timestamp_ms, ...line }, context) => {
    const timeMs = timestamp_ms ?? (timestamp === undefined ? undefined : isoMs(timestamp));
    if (timeMs !== undefined) return { ...line, timeMs };
    const message = 'expected timestamp_ms, milliseconds, or timestamp, an ISO 8601 time such as 2026-11-22T10:00:00Z';
    context.addIssue({ code: 'custom', path: [timestamp === undefined ? 'timestamp_ms' : 'timestamp'], message });
    return z.NEVER;
  });

type OwnLine = z.output<typeof ownLine>;

export const jsonl = defineWorkload({
  kind: 'jsonl',
  doc:
    'A trace of your own, one JSON object a line: timestamp_ms or timestamp (ISO 8601), prompt_tokens, ' +
    'output_tokens, and if known block_ids (each id stands for a block after the blocks before it; ids beyond the ' +
    'prompt are those of the answer), session and think_ms (closed loop). Other keys are ignored.',
  parameters: z.strictObject({
    path: tracePath,
    traceBlockTokens: z.int().min(1).default(64).describe('Tokens of one of its blocks, such as 16.'),
    speedup,
    half,
  }),
  generate({ path, traceBlockTokens, speedup: faster, half: which }, context) {
    const lines = part(path, jsonLines(path, context.read(path), ownLine), which);
    const blocks = new TraceBlocks(path, traceBlockTokens, context);
    const begin = lines[0]!.timeMs;
    const next = followers(lines);
    const sessions = new Map<string, { startMs: number; turns: Turn[] }>();
    for (const [number, line] of lines.entries()) {
      const key = sessionKey(line, number);
      const { ids, tokens } = knownContent(line, next.get(number), traceBlockTokens);
      const turn = {
        promptTokens: line.prompt_tokens,
        outputTokens: line.output_tokens,
        chain: blocks.chain(ids, tokens, line.prompt_tokens + line.output_tokens),
        thinkMs: line.think_ms,
      };
      const known = sessions.get(key);
      if (known === undefined)
        sessions.set(key, { startMs: (line.timeMs - begin) / faster, turns: [{ ...turn, thinkMs: 0 }] });
      else known.turns.push(turn);
    }
    return within(
      [...sessions.values()].map((session) => ({ ...session, part: 0 })),
      context.seconds,
    );
  },
});

function sessionKey({ session }: OwnLine, number: number): string {
  return session === undefined ? `request ${number}` : `session ${session}`;
}

/** The next line of the same session, by number. */
function followers(lines: readonly OwnLine[]): ReadonlyMap<number, OwnLine> {
  const last = new Map<string, number>();
  const next = new Map<number, OwnLine>();
  for (const [number, line] of lines.entries()) {
    const key = sessionKey(line, number);
    const before = last.get(key);
    if (before !== undefined) next.set(before, line);
    last.set(key, number);
  }
  return next;
}

/**
 * Ids of a line, and the tokens that they stand for. The answer is known where the line has ids beyond its prompt, or
 * where the next prompt of the session goes on from it: the engine holds its blocks then, and the next prompt finds
 * them.
 */
function knownContent(line: OwnLine, next: OwnLine | undefined, blockTokens: number) {
  const { block_ids: ids, prompt_tokens: prompt, output_tokens: output } = line;
  if (ids.length > Math.ceil(prompt / blockTokens)) return { ids, tokens: prompt + output };
  const whole = Math.min(ids.length, Math.floor(prompt / blockTokens));
  const goesOn =
    next !== undefined &&
    next.prompt_tokens >= prompt + output &&
    next.block_ids.length > whole &&
    ids.slice(0, whole).every((id, i) => next.block_ids[i] === id);
  return goesOn && whole > 0 ? { ids: next.block_ids, tokens: prompt + output } : { ids, tokens: prompt };
}

function single(startMs: number, promptTokens: number, outputTokens: number, chain: Int32Array): Session {
  return { startMs, part: 0, turns: [{ promptTokens, outputTokens, chain, thinkMs: 0 }] };
}

function within(sessions: Session[], seconds: number): Session[] {
  return sessions.filter(({ startMs }) => startMs < seconds * 1e3).sort((a, b) => a.startMs - b.startMs);
}
