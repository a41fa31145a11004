import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { HARDWARE } from '../../../../dist/tools/simulator/fleet/hardware.js';
import { recipeConstants } from '../../../../dist/tools/simulator/fleet/recipe.js';
import type { StepTable } from '../../../../dist/tools/simulator/fleet/step-table.js';
import { fittedStepTime, type StepConstants } from '../../../../dist/tools/simulator/fleet/step-time.js';
import { fleetOf } from '../../../../dist/tools/simulator/suite/fleet-of.js';
import { fleetSchema } from '../../../../dist/tools/simulator/suite/schema.js';
import { activatedExperts } from '../../../../scripts/step-profile.ts';

const decoding = (sequences: number, context: number) => ({
  tokens: sequences,
  prefillTokens: 0,
  prefillPairs: 0,
  decodes: sequences,
  decodeContext: sequences * context,
  rows: sequences,
});

describe('a recipe of three numbers', () => {
  test('a recipe says that a lone token takes tokenMs, a full chunk the time of its tokens, a context bytes over bandwidth', () => {
    const recipe = { tokenMs: 11, promptTokensPerSecond: 10_000, kvBytesPerToken: 100_000, bandwidthGBs: 2_000 };
    const step = fittedStepTime(recipeConstants(recipe));
    expect(step(decoding(1, 0))).toBeCloseTo(11, 2);
    // 10,000 contexts of 100,000 bytes are 1 GB: half a millisecond at 2,000 GB/s.
    expect(step(decoding(1, 10_000)) - step(decoding(1, 0))).toBeCloseTo(0.5, 9);
    const chunk = { ...decoding(0, 0), tokens: 8_192, prefillTokens: 8_192 };
    expect(Math.abs(step(chunk) / 819.2 - 1)).toBeLessThan(0.01);
  });

  // KV bytes: layers × 2 × 8 KV heads × 128 × 2 bytes. Bandwidth: GPUs × 3,350 GB/s. Time of a lone token and rate of
  // prompts: those of the fit to measured kernels, which knows the all-reduce as well.
  test.each([
    ['llama-70b-h100-tp4', 14.8, 14_177, 80 * 2 * 8 * 128 * 2, 4 * 3350],
    ['qwen3-32b-h100-tp2', 13.2, 18_004, 64 * 2 * 8 * 128 * 2, 2 * 3350],
  ])(
    'a fleet of %s decodes as the measured kernels do, within 10 %',
    (name, tokenMs, promptTokensPerSecond, kvBytesPerToken, bandwidthGBs) => {
      const recipe = { tokenMs, promptTokensPerSecond, kvBytesPerToken, bandwidthGBs };
      const [own, known] = [{ recipe }, { hardware: name }].map(
        (fleet) => fleetOf(fleetSchema.parse({ ...fleet, endpoints: 1 }), 64).endpoints[0]!.stepTime,
      );
      for (const [sequences, context] of [
        [1, 16],
        [8, 1_000],
        [32, 4_096],
        [64, 8_192],
        [128, 2_048],
      ] as const) {
        const work = decoding(sequences, context);
        expect(Math.abs(own!(work) / known!(work) - 1)).toBeLessThan(0.1);
      }
      expect(HARDWARE[name]).toBeDefined();
    },
  );

  test('a recipe beside constants, or with a table, is refused', () => {
    const recipe = { tokenMs: 11, promptTokensPerSecond: 1e4, kvBytesPerToken: 1e5, bandwidthGBs: 2e3 };
    const fleet = (change: object) => () => fleetOf(fleetSchema.parse({ recipe, ...change }), 64);
    expect(fleet({ constants: { weightsMs: 3, tokenUs: 10 } })).toThrow('constants and recipe exclude each other');
    expect(fleet({ truth: 'table' })).toThrow('truth "table" takes no constants and no recipe');
  });
});

const folder = mkdtempSync(join(tmpdir(), 'profile-'));
afterAll(() => rmSync(folder, { recursive: true }));
const SCRIPT = fileURLToPath(new URL('../../../../scripts/fit-step-time.ts', import.meta.url));

/** A profile whose times are straight lines, so that every step can be worked out on paper. */
function writeProfile(experts: boolean, contexts = [16, 128, 512, 1024, 2048, 4096, 8192]): void {
  const csv = (name: string, lines: readonly (readonly (string | number)[])[]) =>
    writeFileSync(join(folder, name), `${lines.map((cells) => cells.join(',')).join('\n')}\n`);
  const tokens = [1, 8, 64, 256, 512, 1024, 2048];
  const dense = tokens.flatMap((n) => [
    ['qkv_proj', n, 100 + n],
    ['layernorm', n, 10],
    ['embedding', n, 50],
  ]);
  csv('dense.csv', [['layer', 'tokens', 'time_us'], ...dense]);
  csv('per_sequence.csv', [['layer', 'sequences', 'time_us'], ...[1, 64, 256].map((n) => ['lm_head', n, 400 + n])]);
  const prompts = [16, 64, 256, 512, 1024, 2048].flatMap((chunk) =>
    [0, 256, 1024, 4096, 16384].map((before) => [chunk, before, 0, 0, 10 + (chunk * (before + chunk / 2)) / 1e5]),
  );
  const decodes = [1, 4, 16, 32, 64, 128, 256].flatMap((n) =>
    contexts.map((context) => [0, 0, n, context, 10 + (n * context) / 1e3]),
  );
  const mixed = [16, 32, 64, 128, 1, 4].flatMap((n) =>
    contexts.map((context) => [256, 0, n, context, 60 + (2 * n * context) / 1e3]),
  );
  csv('attention.csv', [
    ['prefill_chunk', 'kv_prefill', 'n_decode', 'kv_decode', 'time_us'],
    ...[...prompts, ...decodes, ...mixed],
  ]);
  rmSync(join(folder, 'moe.csv'), { force: true });
  if (!experts) return;
  // Each activated expert reads 6 µs of weights, each token computes for 0.5 µs.
  const moe = [1, 4].flatMap((ep) =>
    tokens.flatMap((n) => [2, 8, 32, 128].map((active) => [ep, n, active, 5 + 6 * active + (0.5 * n) / ep])),
  );
  csv('moe.csv', [['ep', 'tokens', 'activated_experts', 'time_us'], ...moe]);
}

function fitted(...options: string[]): { readonly constants: StepConstants; readonly table: StepTable } {
  const text = execFileSync(process.execPath, [SCRIPT, folder, '--layers', '40', '--overhead', '1', ...options], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return JSON.parse(text) as ReturnType<typeof fitted>;
}

/** Milliseconds of the table for so many tokens. */
function tableAt({ tokens, tokensMs }: StepTable, n: number): number {
  const at = Math.max(
    1,
    tokens.findIndex((known) => known >= n),
  );
  const [x0, x1, y0, y1] = [tokens[at - 1]!, tokens[at]!, tokensMs[at - 1]!, tokensMs[at]!];
  return y0 + ((y1 - y0) * (n - x0)) / (x1 - x0);
}

/** 40 layers of a product and two norms, and the embedding, in milliseconds. */
const denseMs = (n: number) => (40 * (100 + n + 2 * 10) + 50) / 1e3;

describe('step times from a profile', () => {
  test('step times of a profile with two contexts have all constants', () => {
    writeProfile(false, [16, 512]);
    const { constants } = fitted();
    expect(Object.entries(constants).filter(([, value]) => !Number.isFinite(value))).toEqual([]);
    expect(constants.decodeTokenNs).toBeCloseTo(40, 0);
  });

  test('step times of one GPU are the sums of its layers', () => {
    writeProfile(false);
    const { table, constants } = fitted();
    for (const n of [1, 64, 512, 2048]) expect(tableAt(table, n) / denseMs(n)).toBeCloseTo(1, 1);
    expect([constants.reduceMs, constants.reduceTokenUs]).toEqual([0, 0]);
  });

  test('step times of four GPUs have the all-reduce of two per layer over their links', () => {
    writeProfile(false);
    const links = ['--gpus', '4', '--link', '450', '--hidden', '8192', '--link-latency', '5'];
    const [alone, joined] = [fitted(), fitted(...links)];
    // 80 all-reduces of 5 µs; of a token 2 × 3/4 × 8192 × 2 bytes = 24,576 bytes at 450 GB/s = 54.6 ns each.
    expect(joined.constants.reduceMs).toBeCloseTo(0.4, 6);
    expect(joined.constants.reduceTokenUs).toBeCloseTo((80 * 24_576) / 450 / 1e3, 2);
    for (const n of [1, 512, 2048]) {
      const more = tableAt(joined.table, n) - tableAt(alone.table, n);
      expect(more).toBeCloseTo(0.4 + (n * 80 * 24_576) / 450 / 1e6, 1);
    }
    expect(joined.constants.weightsMs).toBe(alone.constants.weightsMs);
  });

  test('step times of a mixture of experts have those that the tokens of a step need', () => {
    writeProfile(true);
    const { table } = fitted('--experts', '128', '--active', '8');
    // One token needs 8 of 128 experts; 64 tokens need 128 × (1 - (1 - 1/16)^64) = 125.9 of them.
    expect(activatedExperts({ experts: 128, active: 8, spread: 1 }, 1)).toBeCloseTo(8, 9);
    expect(activatedExperts({ experts: 128, active: 8, spread: 1 }, 64)).toBeCloseTo(125.94, 2);
    const expertMs = (n: number) => (40 * (5 + 6 * 128 * (1 - (15 / 16) ** n) + 0.5 * n)) / 1e3;
    for (const n of [1, 64, 512, 2048]) expect(tableAt(table, n) / (denseMs(n) + expertMs(n))).toBeCloseTo(1, 1);
  });

  test('step times of experts that are spread over four GPUs have a quarter of them on each', () => {
    writeProfile(true);
    const { table } = fitted('--experts', '128', '--active', '8', '--expert-gpus', '4');
    const expertMs = (n: number) => (40 * (5 + 6 * 32 * (1 - (15 / 16) ** n) + (0.5 * n) / 4)) / 1e3;
    for (const n of [1, 64, 2048]) expect(tableAt(table, n) / (denseMs(n) + expertMs(n))).toBeCloseTo(1, 1);
  });

  test.each([
    ['experts without their number', [], '--experts: expected a number above 0'],
    ['GPUs without a link', ['--gpus', '2'], '--link: expected a number above 0'],
    [
      'GPUs that the table does not have',
      ['--experts', '128', '--active', '8', '--expert-gpus', '3'],
      'set --expert-gpus to one of 1, 4',
    ],
  ])('step times of a profile are refused for want of an option: %s', (_what, options, message) => {
    writeProfile(true);
    expect(() => fitted(...options)).toThrow(message);
  });
});
