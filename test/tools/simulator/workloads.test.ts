import { describe, expect, test } from 'vitest';
import { idealHitRatio, requestsOf, type Workload } from '../../../dist/tools/simulator/fleet/workload.js';
import { type Suite, suiteSchema } from '../../../dist/tools/simulator/suite/schema.js';
import { workloadOf } from '../../../dist/tools/simulator/suite/workload-of.js';
import { workloadKinds } from '../../../dist/tools/simulator/workloads/kinds.js';
import { tickOf } from '../../../dist/tools/simulator/workloads/traces.js';

const suite = (...workloads: object[]): Suite => suiteSchema.parse({ workloads, policies: [{ name: 'default' }] });

const files: Record<string, string> = {
  'mooncake.jsonl': [
    { timestamp: 0, input_length: 1100, output_length: 50, hash_ids: [0, 1, 2] },
    { timestamp: 3000, input_length: 1100, output_length: 0, hash_ids: [0, 1, 3] },
    { timestamp: 6000, input_length: 600, output_length: 5, hash_ids: [0, 4] },
    { timestamp: 9000, input_length: 600, output_length: 5, hash_ids: [0, 5] },
  ]
    .map((line) => JSON.stringify(line))
    .join('\n'),
  'azure.csv':
    'TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 ' +
    '18:17:05.9799600,110,27\r\n',
  'own.jsonl': [
    { timestamp_ms: 0, prompt_tokens: 130, output_tokens: 10, block_ids: ['a', 'b'], session: 's', think_ms: 9 },
    {
      timestamp_ms: 100,
      prompt_tokens: 200,
      output_tokens: 10,
      block_ids: ['a', 'b', 'c'],
      session: 's',
      think_ms: 700,
    },
    { timestamp_ms: 50, prompt_tokens: 64, output_tokens: 1, block_ids: ['a'] },
  ]
    .map((line) => JSON.stringify(line))
    .join('\n'),
  'exact.jsonl': [0, 1500, 1501, 4700]
    .map((timestamp) => JSON.stringify({ timestamp, input_length: 100, output_length: 5, hash_ids: [0] }))
    .join('\n'),
  'log.csv':
    'model,Output_Tokens,arrived_at,prompt_tokens\nm,10,2026-11-22T10:00:00.250Z,100\nm,20,2026-11-22 ' +
    '11:00:01.5+01:00,200\n',
  'seconds.csv': 'time,in,out\n"0.5",100,10\n2,200,20\n',
  'noted.jsonl': [
    { timestamp: '2026-11-22T10:00:00Z', prompt_tokens: 64, output_tokens: 1, user: 'anna', temperature: 0.7 },
    { timestamp: '2026-11-22T10:00:02.125Z', prompt_tokens: 64, output_tokens: 1 },
  ]
    .map((line) => JSON.stringify(line))
    .join('\n'),
  'small-blocks.jsonl': [
    { timestamp_ms: 0, prompt_tokens: 150, output_tokens: 10, block_ids: [1, 2, 3, 4, 5, 6, 7, 8, 9] },
    { timestamp_ms: 1, prompt_tokens: 150, output_tokens: 10, block_ids: [1, 2, 3, 4, 5, 6, 7, 80, 90] },
    { timestamp_ms: 2, prompt_tokens: 63, output_tokens: 10, block_ids: [1, 2, 3] },
  ]
    .map((line) => JSON.stringify(line))
    .join('\n'),
  'answers.jsonl': [
    { timestamp_ms: 0, prompt_tokens: 64, output_tokens: 128, block_ids: ['a'], session: 's' },
    { timestamp_ms: 1, prompt_tokens: 256, output_tokens: 64, block_ids: ['a', 'b', 'c', 'd'], session: 's' },
    { timestamp_ms: 2, prompt_tokens: 64, output_tokens: 64, block_ids: ['x', 'y'] },
    { timestamp_ms: 3, prompt_tokens: 128, output_tokens: 1, block_ids: ['x', 'y'] },
  ]
    .map((line) => JSON.stringify(line))
    .join('\n'),
  'bad.jsonl': '{"timestamp_ms": 0, "prompt_tokens": 0, "output_tokens": 1}',
};
const read = (path: string) => files[path]!;
const make = (workload: object, seed = 1) => workloadOf(suite({ name: 'w', ...workload }), 'w', seed, read);

/** A workload as one text; chains by their ends, which say all that was given out before. */
const print = ({ sessions }: Workload) =>
  sessions.map(({ startMs, turns }) => `${startMs} ${turns.map((t) => `${t.promptTokens}/${t.chain.at(-1)}`)}`).join();

describe('questions about documents', () => {
  test('questions about documents come as is published of the trace that they stand for', () => {
    const workloads = [1, 2, 3].map((seed) => make({ kind: 'documents', seconds: 1022 }, seed));
    const turns = workloads.flatMap(({ sessions }) => sessions.flatMap((session) => session.turns));
    const mean = (values: number[]) => values.reduce((a, b) => a + b, 0) / values.length;
    // Mooncake, synthetic trace: 3,993 requests in 1,022 s, 15,325 in, 149 out, 65 % of the tokens seen before.
    expect(Math.abs(turns.length / 3 / 3993 - 1)).toBeLessThan(0.1);
    expect(Math.abs(mean(turns.map((turn) => turn.promptTokens)) / 15_325 - 1)).toBeLessThan(0.08);
    expect(Math.abs(mean(turns.map((turn) => turn.outputTokens)) / 149 - 1)).toBeLessThan(0.08);
    expect(Math.abs(mean(workloads.map(idealHitRatio)) - 0.651)).toBeLessThan(0.05);
  });
});

describe('traffic of a suite', () => {
  const generated = workloadKinds.filter(({ parameters }) => !('path' in parameters.shape)).map(({ kind }) => kind);

  test.each(generated)('%s: same seed, same traffic; sessions in order, chains as long as their text', (kind) => {
    const workload = make({ kind, seconds: 60, rate: 5 });
    expect(print(make({ kind, seconds: 60, rate: 5 }))).toBe(print(workload));
    expect(print(make({ kind, seconds: 60, rate: 5 }, 2))).not.toBe(print(workload));
    expect(requestsOf(workload)).toBeGreaterThan(20);
    let before = 0;
    for (const { startMs, turns } of workload.sessions.slice(0, 100)) {
      expect(startMs).toBeGreaterThanOrEqual(before);
      expect(startMs).toBeLessThanOrEqual(60_000);
      before = startMs;
      for (const { promptTokens, outputTokens, chain } of turns) {
        expect(chain).toHaveLength(Math.floor((promptTokens + outputTokens) / 64));
        expect(Math.max(-1, ...chain.slice(0, 5))).toBeLessThan(workload.contents);
      }
    }
  });

  test('the rate is what was asked for, also in bursts and along a curve', () => {
    for (const changed of [
      {},
      { variation: 4 },
      {
        curve: [
          [0, 0.5],
          [400, 1.5],
        ],
      },
    ]) {
      const counts = [1, 2, 3, 4, 5].map(
        (seed) => make({ kind: 'separate', seconds: 400, rate: 20, ...changed }, seed).sessions.length,
      );
      const mean = counts.reduce((a, b) => a + b, 0) / counts.length;
      expect(Math.abs(mean / 8_000 - 1)).toBeLessThan(0.08);
    }
  });

  test('turns of a conversation begin with all that was said before', () => {
    const { sessions } = make({ kind: 'chat', seconds: 100, rate: 2 });
    const [first, second] = sessions.find(({ turns }) => turns.length > 2)!.turns;
    expect(second!.chain.subarray(0, first!.chain.length)).toEqual(first!.chain);
    expect(second!.promptTokens).toBeGreaterThan(first!.promptTokens + first!.outputTokens);
  });

  test('requests of the Mooncake format share the blocks whose ids are equal', () => {
    const workload = make({ kind: 'mooncake', path: 'mooncake.jsonl', seconds: 100 });
    const [a, b] = workload.sessions.map(({ turns }) => turns[0]!);
    expect(Array.from(a!.chain.subarray(0, 16))).toEqual(Array.from(b!.chain.subarray(0, 16)));
    expect(a!.chain[16]).not.toBe(b!.chain[16]);
    expect([a!.promptTokens, b!.outputTokens]).toEqual([1100, 1]);
    expect(idealHitRatio(workload)).toBeCloseTo((1024 + 512 + 512) / 3400, 10);
  });

  test('a half of a trace begins at its own first request', () => {
    const second = make({ kind: 'mooncake', path: 'mooncake.jsonl', half: 'second', seconds: 100, speedup: 3 });
    expect(second.sessions.map(({ startMs }) => Math.floor(startMs / 1000))).toEqual([0, 1]);
  });

  test('the Azure format is read with its times', () => {
    const { sessions } = make({ kind: 'azure', path: 'azure.csv', seconds: 100, speedup: 2 });
    expect(sessions.map(({ startMs, turns }) => [startMs, turns[0]!.promptTokens, turns[0]!.outputTokens])).toEqual([
      [0, 4808, 10],
      [1000, 110, 27],
    ]);
  });

  test('a trace of one’s own may have blocks and sessions', () => {
    const { sessions } = make({ kind: 'jsonl', path: 'own.jsonl', seconds: 100 });
    expect(sessions.map(({ turns }) => turns.length)).toEqual([2, 1]);
    expect(sessions[0]!.turns.map(({ thinkMs }) => thinkMs)).toEqual([0, 700]);
    expect(sessions[1]!.turns[0]!.chain[0]).toBe(sessions[0]!.turns[1]!.chain[0]);
  });

  test('exact timestamps of the Mooncake format stay as they are', () => {
    const { sessions } = make({ kind: 'mooncake', path: 'exact.jsonl', seconds: 100 });
    expect(sessions.map(({ startMs }) => startMs)).toEqual([0, 1500, 1501, 4700]);
  });

  test('timestamps on ticks are spread over the tick and not beyond', () => {
    const times = (seed: number) =>
      make({ kind: 'mooncake', path: 'mooncake.jsonl', seconds: 100 }, seed).sessions.map(({ startMs }) => startMs);
    expect(times(1).map((ms) => Math.floor(ms / 3000))).toEqual([0, 1, 2, 3]);
    expect(times(2)).not.toEqual(times(1));
    expect([tickOf([0, 3000, 5999, 9000, 9000, 15_000]), tickOf([7, 7]), tickOf([])]).toEqual([3000, 0, 0]);
  });

  test('a CSV trace has its columns in any order, under usual names, with ISO times', () => {
    const { sessions } = make({ kind: 'csv', path: 'log.csv', seconds: 100 });
    expect(sessions.map(({ startMs, turns }) => [startMs, turns[0]!.promptTokens, turns[0]!.outputTokens])).toEqual([
      [0, 100, 10],
      [1250, 200, 20],
    ]);
  });

  test('columns of a CSV trace may be named; numbers are seconds', () => {
    const columns = { prompt: 'in', output: 'out' };
    const { sessions } = make({ kind: 'csv', path: 'seconds.csv', columns, seconds: 100 });
    expect(sessions.map(({ startMs, turns }) => [startMs, turns[0]!.promptTokens])).toEqual([
      [0, 100],
      [1500, 200],
    ]);
  });

  test.each([
    [
      'a column that is not there',
      { path: 'seconds.csv' },
      'set columns.prompt of the workload to one of time, in, out',
    ],
    [
      'a named column that is not there',
      { path: 'seconds.csv', columns: { prompt: 'In', output: 'out' } },
      'seconds.csv:1: the column In is missing',
    ],
    [
      'a cell that is no time',
      { path: 'seconds.csv', columns: { time: 'in', prompt: 'in', output: 'time' } },
      'seconds.csv:2: time: expected a whole number of tokens, got "0.5"',
    ],
  ])('a CSV trace is refused with the remedy: %s', (_what, workload, message) => {
    expect(() => make({ kind: 'csv', ...workload })).toThrow(message);
  });

  test('a trace of one’s own may have ISO times and keys that mean nothing here', () => {
    const { sessions } = make({ kind: 'jsonl', path: 'noted.jsonl', seconds: 100 });
    expect(sessions.map(({ startMs }) => startMs)).toEqual([0, 2125]);
  });

  test('blocks of 16 tokens are joined to whole blocks of 64', () => {
    const { sessions } = make({ kind: 'jsonl', path: 'small-blocks.jsonl', traceBlockTokens: 16, seconds: 100 });
    const [a, b, c] = sessions.map(({ turns }) => Array.from(turns[0]!.chain));
    expect([a!.length, c!.length]).toEqual([2, 1]);
    expect([a![0] === b![0], a![1] === b![1], a![0] === c![0]]).toEqual([true, false, false]);
  });

  test('blocks that do not fit each other are refused', () => {
    const odd = { kind: 'jsonl', path: 'small-blocks.jsonl', traceBlockTokens: 48 };
    expect(() => make(odd)).toThrow('blocks of 48 tokens do not fit blockTokens, 64');
  });

  test('an answer is found again where the next prompt of its session goes on from it, or its ids are given', () => {
    const { sessions } = make({ kind: 'jsonl', path: 'answers.jsonl', seconds: 100 });
    const [first, second] = sessions[0]!.turns;
    expect(Array.from(second!.chain.subarray(0, 3))).toEqual(Array.from(first!.chain));
    const [asked, reused] = [sessions[1]!.turns[0]!, sessions[2]!.turns[0]!];
    expect(Array.from(reused.chain)).toEqual(Array.from(asked.chain));
  });

  test('a bad line of a trace is named', () => {
    expect(() => make({ kind: 'jsonl', path: 'bad.jsonl' })).toThrow('bad.jsonl:1: prompt_tokens');
  });

  test('a sequence puts workloads after each other and keeps them apart', () => {
    const both = suite(
      { name: 'a', kind: 'separate', rate: 5 },
      { name: 'b', kind: 'chat', rate: 5 },
      {
        name: 'shift',
        kind: 'sequence',
        parts: [
          { workload: 'a', seconds: 20 },
          { workload: 'b', seconds: 30 },
        ],
      },
    );
    const { sessions, parts } = workloadOf(both, 'shift', 1, read);
    expect(parts).toEqual(['a', 'b']);
    for (const { startMs, part } of sessions) expect(part).toBe(startMs < 20_000 ? 0 : 1);
    expect(sessions.at(-1)!.startMs).toBeGreaterThan(40_000);
  });
});
