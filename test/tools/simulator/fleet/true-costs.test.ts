import { describe, expect, test } from 'vitest';
import { defaultAdaptation } from '../../../../dist/src/config/adaptation.js';
import { HARDWARE } from '../../../../dist/tools/simulator/fleet/hardware.js';
import { fittedStepTime } from '../../../../dist/tools/simulator/fleet/step-time.js';
import { trueCosts } from '../../../../dist/tools/simulator/fleet/true-costs.js';

function endpoint(hardware: string, speed = 1) {
  const { constants, maxBatchedTokens } = HARDWARE[hardware]!;
  return {
    limits: { blockTokens: 64, blocks: 4800, maxBatchedTokens, maxSequences: 256, longPrefillTokens: 8192 },
    stepTime: fittedStepTime(constants),
    speed,
    labels: {},
    joinMs: 0,
    leaveMs: Number.POSITIVE_INFINITY,
    lies: false,
  };
}

const { model } = defaultAdaptation();

describe('the true costs of engines', () => {
  test('the true costs of engines are those of the step time: a full chunk, a lone output, what load adds', () => {
    const { coefficients } = trueCosts([endpoint('qwen3-32b-h100-tp2')], model, 250);
    // Published: about 460 ms for a chunk of 8,192 tokens.
    expect(coefficients.prefillMsPerKiloToken).toBeGreaterThan(48);
    expect(coefficients.prefillMsPerKiloToken).toBeLessThan(60);
    expect(coefficients.stepMs).toBeGreaterThan(12);
    expect(coefficients.stepMs).toBeLessThan(15);
    expect(coefficients.growthMs).toBeGreaterThan(1);
    expect(coefficients.growthMs).toBeLessThan(8);
    expect([coefficients.outputTokens, coefficients.missPrice]).toEqual([250, model.missPrice]);
  });

  test('the true costs of engines say how slow the others are beside the first endpoint', () => {
    const { speeds } = trueCosts(
      [endpoint('llama-8b-h100'), endpoint('llama-8b-h100', 0.5), endpoint('llama-8b-a100')],
      model,
      200,
    );
    expect(speeds.slice(0, 2)).toEqual([1, 2]);
    expect(speeds[2]).toBeGreaterThan(1.5);
  });
});
