import { describe, expect, it } from 'vitest';
import { type Coefficients, CostTable } from '../../dist/src/core/coefficients.js';
import { CORE } from '../../dist/src/core/core-names.js';
import { makePool, pickMax } from './pool.ts';

/** Each value differs from all others. */
const GIVEN: Coefficients = {
  baseMs: 1,
  prefillMsPerKiloToken: 2,
  waitingMs: 3,
  stepMs: 4,
  growthMs: 5,
  missPrice: 6,
  outputTokens: 7,
  firstOutputTargetMs: 8,
  perTokenTargetMs: 9,
  slots: 10,
  evictionPrice: 11,
};

describe('the coefficients of the cost model', () => {
  it('the coefficients of the cost model are in the core what the control thread wrote, in its order', () => {
    const { control, core } = makePool([pickMax], []);
    control.bytes.fill(0xff, control.call.inputAddress() >>> 0, (control.call.inputAddress() >>> 0) + 64);
    expect(new CostTable(control).write(GIVEN)).toBe(true);
    const at = core.call.coefficientsAddress() >>> 0;
    const written = Array.from({ length: 11 }, (_, i) => core.view.getFloat32(at + 4 * i, true));
    expect(written).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  });

  it('the coefficients of the cost model stay as they are while another thread holds the lock', () => {
    const { control, core } = makePool([pickMax], []);
    const table = new CostTable(control);
    table.write(GIVEN);
    const lock = CORE.HEADER + CORE.HEADER_COMMIT_LOCK;
    expect(core.call.lockAcquire(lock, 1)).toBe(1);
    expect(table.write({ ...GIVEN, baseMs: 99 })).toBe(false);
    core.call.lockRelease(lock);
    expect(core.view.getFloat32(core.call.coefficientsAddress() >>> 0, true)).toBe(1);
  });
});
