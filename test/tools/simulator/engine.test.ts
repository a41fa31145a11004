import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HARDWARE } from '../../../dist/tools/simulator/fleet/hardware.js';
import { fittedStepTime } from '../../../dist/tools/simulator/fleet/step-time.js';
import { BlockCache } from '../../../dist/tools/simulator/server/block-cache.js';
import { chainHashes } from '../../../dist/tools/simulator/server/block-hash.js';
import {
  DEFAULT_ENGINE,
  Engine,
  type EngineOptions,
  type Sequence,
} from '../../../dist/tools/simulator/server/engine.js';

const silent = { token: () => {}, finished: () => {} };

function request(prompt: string, outputTokens = 4, salt = '') {
  return { model: 'm', prompt: Buffer.from(prompt), salt, outputTokens, finishReason: 'stop' as const };
}

function engine(options: Partial<EngineOptions> = {}): Engine {
  return new Engine({ ...DEFAULT_ENGINE, noise: 0, ...options });
}

/** Runs until nothing is left; returns the time that has passed. */
function drain(subject: Engine, from = 0): number {
  let now = from;
  for (let step = subject.schedule(now); step !== undefined; step = subject.schedule(now)) {
    now += step.milliseconds;
    subject.complete(step, now);
  }
  return now;
}

/** `tokens` tokens of text that nobody else has. */
function text(name: string, tokens: number): string {
  return `${name}:`.padEnd(tokens * 4, `${name}.`);
}

/** A prompt of 1,000 tokens and two further tokens on the default engine, by the formula of the simulated fleet. */
const stepTime = fittedStepTime(HARDWARE['llama-8b-h100']!.constants);
const decode = (context: number) =>
  stepTime({ tokens: 1, prefillTokens: 0, prefillPairs: 0, decodes: 1, decodeContext: context, rows: 1 });
const LONE =
  stepTime({ tokens: 1_000, prefillTokens: 1_000, prefillPairs: 500_000, decodes: 0, decodeContext: 0, rows: 1 }) +
  decode(1_000) +
  decode(1_001);

describe('timing', () => {
  test('a lone request takes one step for its prompt and one for each further token', () => {
    const subject = engine();
    subject.submit(request(text('a', 1_000), 3), silent, 0);
    expect(drain(subject)).toBeCloseTo(LONE, 6);
  });

  test('a speed-up divides the time', () => {
    const subject = engine({ speedup: 10 });
    subject.submit(request(text('a', 1_000), 3), silent, 0);
    expect(drain(subject)).toBeCloseTo(LONE / 10, 6);
  });

  test('a slow-down stretches every step that begins after it, and ends', () => {
    const times = [1, 2, 1].map((factor) => {
      const subject = engine();
      subject.slowdown = factor;
      subject.submit(request(text('a', 1_000), 3), silent, 0);
      return drain(subject);
    });
    expect(times[1]).toBeCloseTo(2 * times[0]!, 6);
    expect(times[2]).toBe(times[0]);
  });

  test('a prompt over the budget is computed in chunks, and running sequences decode beside it', () => {
    const subject = engine({ maxStepTokens: 512 });
    subject.submit(request(text('short', 16), 50), silent, 0);
    subject.complete(subject.schedule(0)!, 10);
    subject.submit(request(text('long', 1_200), 1), silent, 10);
    const steps = [];
    for (let index = 0; index < 3; index++) {
      const step = subject.schedule(10)!;
      steps.push([step.decodeSequences, step.prefillTokens]);
      subject.complete(step, 10);
    }
    expect(steps).toEqual([
      [1, 511],
      [1, 511],
      [1, 178],
    ]);
  });

  test('the same seed gives the same tokens and times', () => {
    const run = () => {
      const tokens: string[] = [];
      const subject = engine({ noise: 0.1, seed: 7 });
      const listener = { token: (token: string) => tokens.push(token), finished: () => {} };
      for (const name of ['a', 'b', 'c']) subject.submit(request(text(name, 100), 8), listener, 0);
      return [drain(subject), tokens];
    };
    expect(run()).toEqual(run());
  });
});

describe('scheduling', () => {
  test('no more than the allowed number of sequences run, first come first served', () => {
    const subject = engine({ maxRunning: 2 });
    const sequences = ['a', 'b', 'c'].map((name) => subject.submit(request(text(name, 64)), silent, 0));
    subject.schedule(0);
    expect(sequences.map((sequence) => sequence.state)).toEqual(['running', 'running', 'waiting']);
  });

  test('a sequence waits while the memory cannot hold it', () => {
    const subject = engine({ blocks: 10 });
    const first = subject.submit(request(text('a', 96), 16), silent, 0);
    const second = subject.submit(request(text('b', 96), 16), silent, 0);
    subject.schedule(0);
    expect([first.state, second.state]).toEqual(['running', 'waiting']);
    drain(subject);
    expect([first.state, second.state]).toEqual(['finished', 'finished']);
  });

  test('an aborted sequence frees its place and its blocks, whatever it was doing', () => {
    const subject = engine({ maxRunning: 1 });
    const running = subject.submit(request(text('a', 160), 100), silent, 0);
    const waiting = subject.submit(request(text('b', 160), 100), silent, 0);
    const step = subject.schedule(0)!;
    subject.abort(waiting);
    subject.abort(running);
    subject.complete(step, 10);
    expect(subject.cache.used).toBe(0);
    expect(subject.schedule(10)).toBeUndefined();
    expect(subject.totals.aborted).toBe(2);
  });
});

describe('prefix cache', () => {
  test('a second turn finds prompt and answer of the first, in whole blocks', () => {
    const subject = engine();
    let answer = '';
    const listener = { token: (token: string) => (answer += token), finished: () => {} };
    const prompt = text('conversation', 100);
    subject.submit(request(prompt, 60), listener, 0);
    drain(subject);
    const second = subject.submit(request(`${prompt}${answer}and now?`), silent, 0);
    drain(subject);
    // 160 tokens are known; the last generated token was never computed as input, so its block stays open.
    expect(second.cachedTokens).toBe(144);
  });

  test('the last prompt token is always computed', () => {
    const subject = engine();
    const prompt = text('a', 64);
    subject.submit(request(prompt), silent, 0);
    drain(subject);
    const again = subject.submit(request(prompt), silent, 0);
    drain(subject);
    expect(again.cachedTokens).toBe(48);
  });

  test('requests with different salts share nothing', () => {
    const subject = engine();
    subject.submit(request(text('a', 128), 4, 'one'), silent, 0);
    drain(subject);
    const other = subject.submit(request(text('a', 128), 4, 'two'), silent, 0);
    drain(subject);
    expect(other.cachedTokens).toBe(0);
  });

  test('the least recently used prompt is evicted first, its tail before its head', () => {
    const subject = engine({ blocks: 24 });
    for (const name of ['a', 'b']) {
      subject.submit(request(text(name, 160), 1), silent, 0);
      drain(subject);
    }
    subject.submit(request(text('c', 128), 1), silent, 0);
    drain(subject);
    expect(subject.cache.match(chainHashes('', Buffer.from(text('b', 160))))).toBe(10);
    expect(subject.cache.match(chainHashes('', Buffer.from(text('a', 160))))).toBe(5);
  });

  test('hits and queries are counted in tokens', () => {
    const subject = engine();
    for (let turn = 0; turn < 2; turn++) {
      subject.submit(request(text('a', 128)), silent, 0);
      drain(subject);
    }
    expect(subject.totals).toMatchObject({ prefixQueries: 256, prefixHits: 112, prompt: 256, generated: 8 });
  });
});

test('the block cache never holds more than its capacity and forgets nothing that is in use', () => {
  const take = fc.record({ prompt: fc.integer({ min: 0, max: 5 }), length: fc.integer({ min: 1, max: 12 }) });
  fc.assert(
    fc.property(fc.array(fc.oneof(take, fc.constant('release' as const)), { maxLength: 60 }), (operations) => {
      const cache = new BlockCache(20);
      const live: number[][] = [];
      for (const operation of operations) {
        if (operation === 'release') {
          const hashes = live.shift();
          if (hashes !== undefined) cache.release(hashes, 0);
        } else {
          const hashes = Array.from({ length: operation.length }, (_, index) => operation.prompt * 100 + index);
          const matched = cache.match(hashes);
          if (cache.take(hashes, matched, hashes.length)) {
            for (const hash of hashes.slice(matched)) cache.fill(hash);
            live.push(hashes);
          }
        }
        expect(cache.cached).toBeLessThanOrEqual(20);
        expect(cache.used).toBe(new Set(live.flat()).size);
        for (const hashes of live) expect(cache.match(hashes)).toBe(hashes.length);
      }
    }),
  );
});

test('every sequence ends and every block comes back, whatever is submitted and aborted', () => {
  const job = fc.record({
    prompt: fc.integer({ min: 0, max: 3 }),
    tokens: fc.integer({ min: 1, max: 200 }),
    output: fc.integer({ min: 1, max: 20 }),
    abortAfter: fc.option(fc.integer({ min: 0, max: 10 })),
  });
  fc.assert(
    fc.property(fc.array(job, { minLength: 1, maxLength: 20 }), (jobs) => {
      const subject = engine({ blocks: 20, maxRunning: 3, maxStepTokens: 64 });
      const sequences: { sequence: Sequence; abortAfter: number | null }[] = [];
      for (const { prompt, tokens, output, abortAfter } of jobs) {
        const asked = request(text(`p${prompt}`, tokens), output);
        if (!subject.fits(asked.prompt.length, output)) continue;
        sequences.push({ sequence: subject.submit(asked, silent, 0), abortAfter });
      }
      for (let count = 0; ; count++) {
        const step = subject.schedule(0);
        for (const { sequence, abortAfter } of sequences) if (abortAfter === count) subject.abort(sequence);
        if (step === undefined) break;
        expect(step.prefillTokens + step.decodeSequences).toBeLessThanOrEqual(64);
        subject.complete(step, 0);
      }
      expect(subject.cache.used).toBe(0);
      expect(sequences.every(({ sequence }) => ['finished', 'aborted'].includes(sequence.state))).toBe(true);
    }),
  );
});
