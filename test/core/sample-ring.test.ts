import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { type Measures, PrefixIndex, SampleReader, type TrainingSample } from '../../dist/src/core/index.js';
import { makePool, pickMax, plainRequest, scorer, smallSizes } from './pool.js';

const completed: Measures = {
  outcome: 'completed',
  firstOutputMs: 250,
  perTokenMs: 12.5,
  durationMs: 2750,
  outputTokens: 201,
  promptTokens: 1003,
  cachedTokens: 512,
};

const byQueue = [scorer('OP_SCORE_QUEUE'), pickMax];

function drained(reader: SampleReader): TrainingSample[] {
  const samples: TrainingSample[] = [];
  reader.drain((sample) => samples.push({ ...sample }));
  return samples;
}

/** One endpoint, and what is needed to send requests there and to sample them. */
function one() {
  const pool = makePool(byQueue, [{ waiting: 3, running: 5, kvUsage: 0.25 }]);
  const reader = new SampleReader(pool.control);
  const ask = (promptTokens: number, nowMs: number) =>
    ({ ...pool.decider.decide({ ...plainRequest, promptTokens, nowMs, priority: -2 }) }) as const;
  const end = ({ ticket, ticketGeneration }: { ticket: number; ticketGeneration: number }, measures = completed) => {
    const written = pool.decider.noteSample(ticket, ticketGeneration, measures);
    pool.decider.release(ticket, ticketGeneration);
    return written;
  };
  return { ...pool, reader, ask, end };
}

describe('a training sample', () => {
  it('a training sample tells which parts of the prompt lay below the GPU', () => {
    const prefix = scorer('OP_SCORE_PREFIX', 1, 0, 0, 64);
    const { core, control, decider } = makePool([prefix, pickMax], [{}]);
    const reader = new SampleReader(control);
    const index = new PrefixIndex(core);
    const hash = () => core.call.hashBlocks(40 * 256, 256);
    hash();
    index.store(0, undefined, 20, 'host');
    hash();
    index.store(0, undefined, 8, 'remote');
    hash();
    const asked = { ...plainRequest, blocks: 40, tail: false, promptTokens: 2560 };
    const { ticket, ticketGeneration } = decider.decide(asked);
    decider.noteSample(ticket, ticketGeneration, completed);
    const [{ hostTokens, diskTokens, remoteTokens, staged }] = drained(reader) as [TrainingSample];
    expect([hostTokens, diskTokens, remoteTokens].map((tokens) => Math.round(tokens! / 64))).toEqual([12, 0, 8]);
    expect(staged).toBe(false);
    const { ticket: next, ticketGeneration: generation } = decider.decide({ ...plainRequest, promptTokens: 2560 });
    decider.noteSample(next, generation, completed);
    expect(drained(reader)).toMatchObject([{ hostTokens: 0, diskTokens: 0, remoteTokens: 0 }]);
  });

  it('a training sample says whether other endpoints worked for the request before', () => {
    const { reader, ask, end } = one();
    end(ask(100, 1), { ...completed, staged: true });
    end(ask(100, 2), completed);
    expect(drained(reader).map(({ staged }) => staged)).toEqual([true, false]);
  });

  it.each([true, false, undefined])('a training sample says whether its request met its targets: %s', (targetsMet) => {
    const { reader, ask, end } = one();
    end(ask(100, 1), { ...completed, staged: true, targetsMet });
    expect(drained(reader)).toMatchObject([{ targetsMet, staged: true, unheard: false }]);
  });

  it('a training sample tells what was known at the decision, before the request was charged, and what came of it', () => {
    const { reader, ask, end } = one();
    ask(700, 1000);
    end(ask(1000, 1500));
    expect(drained(reader)).toMatchObject([
      {
        timeMs: 1500,
        slot: 0,
        slotGeneration: 1,
        priority: -2,
        profile: 0,
        promptTokens: 1000,
        uncachedTokens: 1000,
        bestCachedTokens: 0,
        inflight: 1,
        prefillTokens: 700,
        promptTokensInFlight: 700,
        waiting: 3,
        running: 5,
        kvUsage: 0.25,
        outcome: 'completed',
        firstOutputMs: 250,
        perTokenMs: 12.5,
        durationMs: 2750,
        outputTokens: 201,
        reportedPromptTokens: 1003,
        cachedTokens: 512,
        inflightAtEnd: 2,
        promptTokensAtEnd: 1700,
      },
    ]);
  });

  it('a training sample leaves unreported fields unknown', () => {
    const pool = makePool(byQueue, [{}]);
    const reader = new SampleReader(pool.control);
    const { ticket, ticketGeneration } = pool.decider.decide(plainRequest);
    pool.decider.noteSample(ticket, ticketGeneration, {
      outcome: 'aborted',
      firstOutputMs: undefined,
      perTokenMs: undefined,
      durationMs: 1,
      outputTokens: undefined,
      promptTokens: undefined,
      cachedTokens: undefined,
    });
    const unknown = { firstOutputMs: undefined, perTokenMs: undefined, outputTokens: undefined };
    const signals = { waiting: undefined, running: undefined, kvUsage: undefined };
    expect(drained(reader)).toMatchObject([
      { outcome: 'aborted', ...unknown, ...signals, reportedPromptTokens: undefined, cachedTokens: undefined },
    ]);
  });

  it('a training sample is not written for a charge that has been released', () => {
    const { reader, ask, end } = one();
    const decision = ask(10, 0);
    expect(end(decision)).toBe(true);
    expect(end(decision)).toBe(false);
    expect(drained(reader)).toHaveLength(1);
  });

  it('a training sample counts a prompt as ahead of others until its first output has come', () => {
    const { reader, decider, ask, end } = one();
    const first = ask(700, 0);
    decider.prefillDone(first.ticket, first.ticketGeneration, 1, true);
    end(ask(100, 0));
    expect(drained(reader)[0]).toMatchObject({ inflight: 1, prefillTokens: 0, promptTokensInFlight: 700 });
  });

  it('a training sample tells the prefill rate, which decays with a time constant of 20 s', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100_000 }), fc.integer({ min: 0, max: 3_000_000 }), (tokens, age) => {
        const { reader, ask, end } = one();
        ask(tokens, 1000);
        end(ask(1, 1000 + age));
        const expected = (tokens / 20_000) * Math.exp(-age / 20_000);
        const { prefillRate } = drained(reader)[0]!;
        expect(Math.abs(prefillRate - expected)).toBeLessThanOrEqual(expected * 1e-5 + 1e-30);
      }),
      { numRuns: 20 },
    );
  });

  it('a training sample carries the tag of the program that decided', () => {
    const { reader, programs, ask, end } = one();
    programs.publish(0, byQueue, { inserts: false, tag: 70_001 });
    end(ask(10, 0));
    expect(drained(reader)[0]).toMatchObject({ profile: 0, tag: 70_001 });
  });

  it('a training sample tells the same halves of a hash for the same model, and others for another', () => {
    const { reader, decider, end } = one();
    for (const adapter of ['a', 'b', 'a']) end({ ...decider.decide({ ...plainRequest, adapter }) });
    const [first, other, again] = drained(reader).map(({ modelLow, modelHigh }) => `${modelLow} ${modelHigh}`);
    expect(again).toBe(first);
    expect(other).not.toBe(first);
  });
});

describe('a reader of samples', () => {
  it('a reader of samples is handed each sample once, whatever other readers do', () => {
    const { reader, control, ask, end } = one();
    const other = new SampleReader(control);
    end(ask(1, 0));
    expect(drained(reader)).toHaveLength(1);
    end(ask(2, 0));
    expect(drained(reader).map(({ promptTokens }) => promptTokens)).toEqual([2]);
    expect(drained(other).map(({ promptTokens }) => promptTokens)).toEqual([1, 2]);
    expect(drained(other)).toEqual([]);
  });

  it('a reader of samples takes at most as many as it is asked to, and goes on from there', () => {
    const { reader, ask, end } = one();
    for (let i = 1; i <= 5; i++) end(ask(i, 0));
    const taken: number[] = [];
    expect(reader.drain(({ promptTokens }) => taken.push(promptTokens), 3)).toBe(3);
    expect(reader.drain(({ promptTokens }) => taken.push(promptTokens), 3)).toBe(2);
    expect(taken).toEqual([1, 2, 3, 4, 5]);
  });

  it('a reader of samples takes one of so many, as it is asked to, and the rest when there are enough again', () => {
    const { reader, ask, end } = one();
    const taken: number[] = [];
    const drain = (every: number) => reader.drain(({ promptTokens }) => taken.push(promptTokens), 100, every);
    for (let i = 1; i <= 8; i++) end(ask(i, 0));
    expect(drain(3)).toBe(2);
    expect(taken).toEqual([1, 4]);
    end(ask(9, 0));
    expect(drain(3)).toBe(1);
    end(ask(10, 0));
    expect(drain(1)).toBe(1);
    expect(taken).toEqual([1, 4, 7, 10]);
    expect(reader.lost).toBe(0);
  });

  it('a reader of samples counts what was overwritten before it came, and takes what is left in order', () => {
    const { reader, ask, end } = one();
    const written = CORE.SAMPLE_COUNT + 100;
    for (let i = 0; i < written; i++) end(ask(i, 0));
    const seen = drained(reader).map(({ promptTokens }) => promptTokens);
    expect(seen.length + reader.lost).toBe(written);
    expect(reader.lost).toBeGreaterThanOrEqual(100);
    expect(seen).toEqual(Array.from(seen, (_, i) => written - seen.length + i));
  });

  it('a reader of samples finds what the rings still hold when it asks for the oldest', () => {
    const { control, ask, end } = one();
    end(ask(9, 0));
    expect(drained(new SampleReader(control))).toEqual([]);
    expect(drained(new SampleReader(control, 'oldest'))).toHaveLength(1);
  });

  it('a reader of samples gets whole records only, in order and none twice, while three threads write as fast as they can', async () => {
    const pool = makePool(byQueue, [{ waiting: 0 }, { waiting: 0 }], { ...smallSizes, requests: 512 });
    const reader = new SampleReader(pool.control);
    const state = new SharedArrayBuffer(4);
    const rounds = 20_000;
    const workers = await Promise.all(
      [1, 2, 3].map(async (thread) => {
        const workerData = { pool: pool.memory, thread, request: plainRequest, rounds, state };
        const worker = new Worker(new URL('./sample-worker.ts', import.meta.url), { workerData });
        await once(worker, 'message');
        return worker;
      }),
    );
    const ended = Promise.all(workers.map((worker) => once(worker, 'exit')));
    let running = true;
    ended.then(() => (running = false));
    Atomics.store(new Int32Array(state), 0, 1);
    Atomics.notify(new Int32Array(state), 0);
    const last = new Map<number, number>();
    let torn = 0;
    let count = 0;
    const check = ({ promptTokens, durationMs, outputTokens, timeMs, priority }: TrainingSample) => {
      count++;
      if (durationMs !== promptTokens || outputTokens !== promptTokens || timeMs !== promptTokens) torn++;
      if (promptTokens <= (last.get(priority) ?? -1)) torn++;
      last.set(priority, promptTokens);
    };
    while (running) {
      reader.drain(check, 1000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    reader.drain(check);
    expect(torn).toBe(0);
    expect(count + reader.lost).toBe(3 * rounds);
    expect(pool.control.call.ledgerCheck()).toBe(0);
  });
});
