import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Engine } from '../../../../dist/tools/simulator/fleet/engine.js';
import { HARDWARE } from '../../../../dist/tools/simulator/fleet/hardware.js';
import { recipeConstants } from '../../../../dist/tools/simulator/fleet/recipe.js';
import { tableStepTime } from '../../../../dist/tools/simulator/fleet/step-table.js';
import { fittedStepTime, type StepTime } from '../../../../dist/tools/simulator/fleet/step-time.js';

/**
 * Two runs of vLLM 0.19 with Llama-3.1-8B, published by LLMServingSim 2.0 (MIT): 300 requests with ShareGPT lengths at
 * about 10 a second, chunks of 2,048 tokens. The file holds when each request came, its lengths, and mean, median, 90th
 * and 99th percentile of what was measured, in milliseconds.
 */
interface GoldenRun {
  readonly maxSequences: number;
  readonly arrivalMs: readonly number[];
  readonly promptTokens: readonly number[];
  readonly outputTokens: readonly number[];
  readonly measured: Readonly<Record<'ttft' | 'tpot' | 'e2e', readonly number[]>>;
}

const runs = JSON.parse(readFileSync(new URL('./golden-runs.json', import.meta.url), 'utf8')) as Record<
  string,
  GoldenRun
>;

const none = new Int32Array(0);

function statistics(values: readonly number[]): number[] {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(share * sorted.length)]!;
  return [sorted.reduce((a, b) => a + b, 0) / sorted.length, at(0.5), at(0.9), at(0.99)];
}

/** The run again, on a simulated engine: time to first token, time per token, end to end. */
function replay(name: string, stepTime: StepTime) {
  const run = runs[name]!;
  const limits = {
    blockTokens: 16,
    blocks: Math.floor(HARDWARE[name]!.kvTokens / 16),
    maxBatchedTokens: 2048,
    maxSequences: run.maxSequences,
    longPrefillTokens: 2048,
  };
  const requests = run.arrivalMs.map((at, i) => ({
    at,
    promptTokens: run.promptTokens[i]!,
    outputTokens: run.outputTokens[i]!,
    chain: none,
    first: 0,
    last: 0,
  }));
  const engine = new Engine<(typeof requests)[number]>(limits, stepTime, 1);
  let now = 0;
  let next = 0;
  let left = requests.length;
  const listener = {
    token: ({ request, generated }: { request: (typeof requests)[number]; generated: number }) => {
      if (generated === 1) request.first = now;
    },
    finished: ({ request }: { request: (typeof requests)[number] }) => {
      request.last = now;
      left--;
    },
  };
  while (left > 0) {
    while (next < requests.length && requests[next]!.at <= now) engine.submit(requests[next++]!);
    const ms = engine.beginStep();
    if (ms === 0) now = requests[next]!.at;
    else {
      now += ms;
      engine.endStep(listener);
    }
  }
  return {
    ttft: statistics(requests.map(({ at, first }) => first - at)),
    tpot: statistics(requests.map(({ first, last, outputTokens }) => (last - first) / (outputTokens - 1))),
    e2e: statistics(requests.map(({ at, last }) => last - at)),
    preemptions: engine.preemptions,
  };
}

function errors(simulated: readonly number[], measured: readonly number[]): number {
  return Math.max(...simulated.map((value, i) => Math.abs(value / measured[i]! - 1)));
}

describe('a simulated engine against runs of a real one', () => {
  test.each(Object.keys(runs))('%s by the formula: TTFT within 10 %, TPOT and end to end within 5 %', (name) => {
    const { ttft, tpot, e2e } = replay(name, fittedStepTime(HARDWARE[name]!.constants));
    const { measured } = runs[name]!;
    expect(errors(ttft, measured.ttft)).toBeLessThan(0.1);
    expect(errors(tpot, measured.tpot)).toBeLessThan(0.05);
    expect(errors(e2e, measured.e2e)).toBeLessThan(0.05);
  });

  test('llama-8b-rtx-pro-6000 by the table: TTFT within 10 %, TPOT and end to end within 5 %', () => {
    const name = 'llama-8b-rtx-pro-6000';
    const { ttft, tpot, e2e } = replay(name, tableStepTime(HARDWARE[name]!.table!));
    const { measured } = runs[name]!;
    expect(errors(ttft, measured.ttft)).toBeLessThan(0.1);
    expect(errors(tpot, measured.tpot)).toBeLessThan(0.05);
    expect(errors(e2e, measured.e2e)).toBeLessThan(0.05);
  });

  // The table overrates mixed steps of this GPU: its profile has only batches of one length.
  test('llama-8b-rtx-4090 by the table: every statistic within 10 %', () => {
    const name = 'llama-8b-rtx-4090';
    const { ttft, tpot, e2e, preemptions } = replay(name, tableStepTime(HARDWARE[name]!.table!));
    const { measured } = runs[name]!;
    expect(Math.max(errors(ttft, measured.ttft), errors(tpot, measured.tpot), errors(e2e, measured.e2e))).toBeLessThan(
      0.1,
    );
    expect(preemptions).toBeGreaterThan(100);
  });

  /**
   * Time of one token alone, prompt tokens in the fullest second of the run, KV bytes per token, and bandwidth of the
   * data sheet.
   */
  const recipes = {
    'llama-8b-rtx-4090': { tokenMs: 17.3, promptTokensPerSecond: 11_749, bandwidthGBs: 1008 },
    'llama-8b-rtx-pro-6000': { tokenMs: 12.7, promptTokensPerSecond: 16_306, bandwidthGBs: 1792 },
  };

  test.each(Object.entries(recipes))('%s by a recipe of three numbers: every statistic within 10 %', (name, recipe) => {
    const worst = (kvBytesPerToken: number) => {
      const { ttft, tpot, e2e } = replay(name, fittedStepTime(recipeConstants({ ...recipe, kvBytesPerToken })));
      const { measured } = runs[name]!;
      return Math.max(errors(ttft, measured.ttft), errors(tpot, measured.tpot), errors(e2e, measured.e2e));
    };
    // 32 layers, keys and values, 8 heads of 128 numbers, 2 bytes each.
    expect(worst(32 * 2 * 8 * 128 * 2)).toBeLessThan(0.1);
    // Two numbers are not enough: without the third a long context costs nothing.
    expect(worst(1)).toBeGreaterThan(0.25);
  });
});
