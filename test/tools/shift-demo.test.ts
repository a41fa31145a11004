import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { figuresOf } from '../../dist/tools/demo/shift/figures.js';
import { comparison, LiveTable, learnedText } from '../../dist/tools/demo/shift/report.js';
import { type RequestOutcome, runPlan } from '../../dist/tools/demo/shift/run.js';
import type { ShiftRun } from '../../dist/tools/demo/shift/shift.js';
import { PHASES, type PlannedRequest, planTraffic } from '../../dist/tools/demo/shift/traffic.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

const signal = new AbortController().signal;
const OPTIONS = { seed: 1, servers: 4, speedup: 1, load: 1, seconds: 200 };
const TARGETS = { firstOutputTargetMs: 2_000, perTokenTargetMs: 60 };

describe('the traffic of the shift', () => {
  const plan = planTraffic(OPTIONS);
  const ofPhase = (phase: number) => plan.filter((request) => request.phase === phase);

  it('the traffic of the shift is the same for the same seed and another for another', () => {
    expect(planTraffic(OPTIONS)).toEqual(plan);
    expect(planTraffic({ ...OPTIONS, seed: 2 })).not.toEqual(plan);
  });

  it('the traffic of the shift comes in order, ends in time, and goes through every phase', () => {
    const times = plan.map(({ atMs }) => atMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(times.at(-1)).toBeLessThan(200_000);
    for (let phase = 0; phase < PHASES.length; phase++) {
      const due = ofPhase(phase).map(({ atMs }) => atMs);
      expect(Math.min(...due)).toBeGreaterThanOrEqual(phase * 50_000);
      expect(Math.max(...due)).toBeLessThan((phase + 1) * 50_000);
    }
  });

  it('the traffic of the shift has as many requests as the rates say', () => {
    // 3 questions a second and server to shared prompts, and 0.2 conversations of four turns.
    const expected = (3 + 4 * 0.2) * 4 * 50;
    expect(ofPhase(0).length / expected).toBeGreaterThan(0.9);
    expect(ofPhase(0).length / expected).toBeLessThan(1.1);
  });

  it('the traffic of the shift asks after shared system prompts, some oftener than others', () => {
    const counts = new Map<string, number>();
    for (const { says } of ofPhase(0)) {
      if (says[0]!.role === 'system') counts.set(says[0]!.content, (counts.get(says[0]!.content) ?? 0) + 1);
    }
    expect(counts.size).toBe(48);
    expect(Math.max(...counts.values())).toBeGreaterThan(5 * Math.min(...counts.values()));
  });

  it('the traffic of the shift repeats no long prompt from its first bytes on', () => {
    const starts = ofPhase(1).flatMap(({ says }) =>
      says[0]!.content.length >= 10_000 ? says[0]!.content.slice(0, 64) : [],
    );
    const long = starts.filter((start) => start.includes('document'));
    expect(long.length).toBeGreaterThan(100);
    expect(new Set(long).size).toBe(long.length);
  });

  it('the traffic of the shift comes faster to faster servers, to more of them, and under more load', () => {
    expect(planTraffic({ ...OPTIONS, load: 2 }).length / plan.length).toBeCloseTo(2, 0);
    expect(planTraffic({ ...OPTIONS, speedup: 2 }).length / plan.length).toBeCloseTo(2, 0);
    expect(planTraffic({ ...OPTIONS, servers: 8 }).length / plan.length).toBeCloseTo(2, 0);
  });
});

/** A model server that answers with one word; the prompts that it was sent. */
async function modelServer(status = 200): Promise<{ url: string; prompts: string[][] }> {
  const prompts: string[][] = [];
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const { messages } = JSON.parse(Buffer.concat(pieces).toString()) as { messages: { content: string }[] };
    prompts.push(messages.map(({ content }) => content));
    response.writeHead(status, { 'x-inference-pod': 'server-0' });
    const events = [
      'data: {"choices":[{"delta":{"content":"word"}}]}',
      'data: {"choices":[],"usage":{"prompt_tokens":20,"prompt_tokens_details":{"cached_tokens":5}}}',
      'data: [DONE]\n\n',
    ];
    response.end(events.join('\n\n'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => new Promise((resolve) => server.close(resolve)));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, prompts };
}

function planned(dialogue: number, text: string, phase = 0, atMs = 0): PlannedRequest {
  return { atMs, phase, dialogue, says: [{ role: 'user', content: text }], answerTokens: 4 };
}

describe('sending it', () => {
  it('the sender of the shift repeats what a dialogue has said and was answered before its next turn', async () => {
    const { url, prompts } = await modelServer();
    const outcomes: RequestOutcome[] = [];
    await runPlan({
      url,
      model: 'm',
      signal,
      plan: [planned(1, 'one'), planned(1, 'two')],
      enter: () => {},
      hear: (outcome) => outcomes.push(outcome),
    });
    expect(prompts).toEqual([['one'], ['one', 'word', 'two']]);
    expect(outcomes.map(({ answer }) => answer?.server)).toEqual(['server-0', 'server-0']);
  });

  it('the sender of the shift tells of every phase when it begins, also of one without a request', async () => {
    const { url } = await modelServer();
    const phases: number[] = [];
    const plan = [planned(1, 'one', 0), planned(2, 'two', 2, 1)];
    await runPlan({ url, model: 'm', signal, plan, enter: (phase) => phases.push(phase), hear: () => {} });
    expect(phases).toEqual([0, 1, 2]);
  });

  it('the sender of the shift tells of a request that failed, and goes on with its dialogue', async () => {
    const { url, prompts } = await modelServer(503);
    const outcomes: RequestOutcome[] = [];
    const plan = [planned(1, 'one'), planned(1, 'two')];
    await runPlan({ url, model: 'm', signal, plan, enter: () => {}, hear: (outcome) => outcomes.push(outcome) });
    expect(outcomes.map(({ error }) => error?.slice(0, 10))).toEqual(['status 503', 'status 503']);
    expect(prompts[1]).toEqual(['one', 'two']);
  });

  it('the sender of the shift ends when it is told to, with the answers that it waits for', async () => {
    const { url } = await modelServer();
    const ending = new AbortController();
    const outcomes: RequestOutcome[] = [];
    const plan = [planned(1, 'now'), planned(2, 'in an hour', 0, 3_600_000)];
    const ran = runPlan({
      url,
      model: 'm',
      signal: ending.signal,
      plan,
      enter: () => {},
      hear: (outcome) => {
        outcomes.push(outcome);
        ending.abort();
      },
    });
    await ran;
    expect(outcomes).toHaveLength(1);
  });
});

function answered(
  server: string,
  firstTokenMs: number,
  wholeMs: number,
  cachedTokens: number,
  phase = 0,
): RequestOutcome {
  const answer = { server, firstTokenMs, wholeMs, promptTokens: 100, cachedTokens, text: '' };
  return { planned: planned(0, '', phase), answer };
}

describe('the figures', () => {
  it('the figures are quantiles, the cached share, the spread over servers and the cost', () => {
    const figures = figuresOf(
      [
        answered('a', 100, 190, 50),
        answered('a', 300, 390, 100),
        answered('b', 200, 290, 0),
        { planned: planned(0, ''), error: 'status 503' },
      ],
      ['a', 'b'],
      TARGETS,
    );
    expect(figures).toMatchObject({ answered: 3, failed: 1, firstTokenP50: 200, firstTokenP99: 300, cached: 0.5 });
    expect(figures.imbalance).toBe(2);
    expect(figures.firstServer).toBeCloseTo(2 / 3);
    // Three further tokens in 90 ms are 30 ms each: half of the target. First tokens take 200 ms of 2 s on average.
    expect(figures.cost).toBeCloseTo(0.1 + 0.5);
  });

  it('the figures are unknown where nothing was answered, and show as a dash', () => {
    const figures = figuresOf([], ['a'], TARGETS);
    expect(figures.cost).toBeNaN();
    const line = new LiveTable().rows({ second: 1, phase: 0, pools: [{ figures, learned: LEARNED }] });
    expect(line).not.toContain('NaN');
    expect(line).toContain('–');
  });
});

const LEARNED = {
  arm: 'learned',
  state: 'canary',
  fallbacks: 0,
  samples: { learned: 7, ignored: 0, lost: 0 },
  fit: { samples: 7, correlation: 0.5, bias: 0 },
  effectiveWeights: { context: 0.0413, queue: 0.0275, waiting: 0.0025, activeRequest: 0.0002, kvTokens: 0.0667 },
} as unknown as ShiftRun['after'];

describe('the report', () => {
  const run = (name: string, firstTokenMs: number): ShiftRun => {
    const phases = PHASES.map((_, phase) =>
      figuresOf([answered('a', firstTokenMs, firstTokenMs, 50, phase)], ['a'], TARGETS),
    );
    return { name, phases, whole: phases[0]!, before: LEARNED, after: LEARNED, outcomes: [] };
  };

  it('the report shows each window with a line for each pool: who decides, the guard and the weights', () => {
    const { whole } = run('', 250);
    const pools = [
      { figures: whole, learned: { ...LEARNED, arm: 'static', state: 'shadow' } as ShiftRun['after'] },
      { figures: whole, learned: LEARNED },
    ];
    const table = new LiveTable();
    const [phase, first, second, weights] = table.rows({ second: 3, phase: 1, pools }).split('\n');
    expect(phase).toBe('  long prompts');
    expect(
      first!
        .trim()
        .split(/\s{2,}/)
        .slice(0, 4),
    ).toEqual(['3', 'configured', '1', '250 ms']);
    expect(second).toContain('canary');
    expect(weights).toContain('context 41.3  queue 27.5  waiting 2.5  request 0.2  KV 66.7');
    expect(table.rows({ second: 4, phase: 1, pools })).not.toContain('long prompts');
  });

  it('the report puts the cost of the second pool beside that of the first, phase by phase and in all', () => {
    const lines = comparison(run('configured', 400), run('always', 300)).split('\n');
    const pairs = lines.filter((line) => line.includes('−25.0 %'));
    expect(pairs).toHaveLength(PHASES.length + 1);
    expect(lines.slice(0, 2)[1]).toBe(`  ${PHASES[0]!.name}`);
  });

  it('the lines of the shift fit 80 columns', () => {
    const { whole } = run('', 99_999);
    const figures = { ...whole, answered: 9_999, failed: 99_999, cached: 1, imbalance: 99.99, cost: 999.99 };
    const effectiveWeights = {
      context: 0.9999,
      queue: 0.9999,
      waiting: 0.9999,
      activeRequest: 0.9999,
      kvTokens: 0.9999,
    };
    const learned = { ...LEARNED, effectiveWeights } as unknown as ShiftRun['after'];
    const table = new LiveTable();
    const live = [table.head(), table.rows({ second: 1_000, phase: 3, pools: [{ figures, learned }] })];
    const end = comparison({ ...run('configured', 99_999), after: learned }, run('always', 99_999));
    const text = [...live, end, learnedText({ ...run('always', 1), before: learned, after: learned })].join('\n');
    for (const line of text.split('\n')) expect([line, line.length <= 80]).toEqual([line, true]);
  });

  it('the report says how the weights moved and what the guard made of it', () => {
    const text = learnedText(run('always', 1));
    expect(text).toContain('learned from 7 requests');
    expect(text).toContain('canary, learned costs decide');
  });
});
