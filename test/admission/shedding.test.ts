import { describe, expect, it } from 'vitest';
import { LegacyAdmission } from '../../dist/src/admission/shedding.js';

const ask = (priority: number, saturation: number) =>
  new LegacyAdmission(() => saturation).admit({ priority, fairnessId: 'f', subset: undefined });

describe('legacy admission', () => {
  it('legacy admission sheds requests below priority 0 while the pool is saturated', () => {
    expect(ask(-1, 1)).toEqual({
      kind: 'rejected',
      code: 'ResourceExhausted',
      message: 'system saturated, sheddable request dropped',
      reason: 'rejected-saturated',
      bound: { by: 'pool-saturation', used: 1, limit: 1 },
    });
  });

  it.each([
    [-1, 0.99],
    [0, 1],
    [5, 7],
  ])('legacy admission admits priority %i at saturation %d', (priority, saturation) => {
    expect(ask(priority, saturation)).toBe('admitted');
  });

  it('legacy admission does not measure the pool for requests that it never sheds', () => {
    const admission = new LegacyAdmission(() => {
      throw new Error('measured');
    });
    expect(admission.admit({ priority: 0, fairnessId: 'f', subset: undefined })).toBe('admitted');
  });
});
