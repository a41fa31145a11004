import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { LineBudget } from '../../dist/src/operations/line-budget.js';
import { createLogger } from '../../dist/src/operations/log.js';

const OPTIONS = { zapLogLevel: undefined, verbosity: 1, zapEncoder: 'json' } as unknown as Parameters<
  typeof createLogger
>[0];

/** A logger, and the lines that it has written. */
function written(options = OPTIONS) {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger(options, { write: (line) => void lines.push(JSON.parse(line)) });
  return { log, lines };
}

/** A budget, and what it has written: the message and the number of lines that it stands for. */
function counted() {
  const lines: [string, number][] = [];
  const budget = new LineBudget();
  const take = (message: string, nowMs: number, level = 50) =>
    budget.take(level, message, (count) => void lines.push([message, count]), nowMs);
  return { lines, budget, take };
}

describe('lines of one kind', () => {
  it('a flood of lines that differ by names is twenty lines, and one with the number of the rest', () => {
    const { lines, budget, take } = counted();
    for (let i = 0; i < 20_000; i++) take(`endpoint llm/vllm-${i} is left out: pool full`, i / 10);
    expect(lines.length).toBe(20);
    budget.flush();
    expect(lines.at(-1)).toEqual(['endpoint llm/vllm-19999 is left out: pool full', 19_980]);
  });

  it('the next interval begins with what the one before has left out, and has lines of its own', () => {
    const { lines, take } = counted();
    for (let i = 0; i < 30; i++) take('endpoint 10.0.0.1:8000 is gone', 0);
    take('endpoint 10.0.0.2:8000 is gone', 10_000);
    expect(lines.slice(20)).toEqual([
      ['endpoint 10.0.0.1:8000 is gone', 10],
      ['endpoint 10.0.0.2:8000 is gone', 1],
    ]);
  });

  it('a flood of one kind leaves the lines of others alone', () => {
    const { lines, take } = counted();
    for (let i = 0; i < 1_000; i++) take(`Pod "pod ${i}" has no address`, 0);
    take('the API server has not answered', 0);
    take('Pod "pod 1" has no address', 0, 30);
    expect(lines.slice(20)).toEqual([
      ['the API server has not answered', 1],
      ['Pod "pod 1" has no address', 1],
    ]);
  });

  it('kinds beyond five hundred share one budget', () => {
    const { lines, take } = counted();
    const letters = (i: number) => [...String(i)].map((digit) => 'abcdefghij'[Number(digit)]).join('');
    for (let i = 0; i < 2_000; i++) take(`kind ${letters(i)}`, 0);
    expect(lines.length).toBe(520);
  });
});

describe('the log', () => {
  it('a line that stands for others says for how many, with fields and message of the latest', () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { log, lines } = written();
    const part = log.child({ part: 'pool' });
    for (let i = 0; i < 25; i++) part.warn({ endpoint: `e${i}` }, `endpoint e${i} is left out`);
    expect(lines.length).toBe(20);
    vi.advanceTimersByTime(10_000);
    expect(lines.slice(20)).toMatchObject([
      { part: 'pool', endpoint: 'e24', msg: 'endpoint e24 is left out', lines: 5 },
    ]);
  });

  it('lines of debugging have no bound', () => {
    const { log, lines } = written({ ...OPTIONS, verbosity: 4 });
    for (let i = 0; i < 100; i++) log.debug({ i }, 'a step');
    expect(lines.length).toBe(100);
  });
});
