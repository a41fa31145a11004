import { describe, expect, it } from 'vitest';
import { ChangeDetector } from '../../dist/src/adaptation/change-detector.js';

/** Numbers of the observations, from 1, at which an alarm is raised. */
function alarms(errors: readonly number[]): readonly number[] {
  const detector = new ChangeDetector();
  return errors.flatMap((z, i) => (detector.observe(z) ? [i + 1] : []));
}

const times = (count: number, z: number): number[] => Array.from({ length: count }, () => z);

describe('the change detector', () => {
  it('the change detector raises no alarm while errors stay as they were', () => {
    expect(alarms(times(5000, 0.3))).toEqual([]);
    expect(alarms(Array.from({ length: 5000 }, (_, i) => (i % 2 === 0 ? 0.4 : -0.4)))).toEqual([]);
  });

  it('the change detector raises one alarm when everything takes longer, and begins anew', () => {
    expect(alarms([...times(100, 0), ...times(40, 1), ...times(1000, 1)])).toEqual([115]);
  });

  it('the change detector raises one alarm when everything takes less time', () => {
    expect(alarms([...times(100, 0), ...times(40, -1), ...times(1000, -1)])).toEqual([115]);
  });

  it('the change detector looks for changes from its fiftieth observation on', () => {
    expect(alarms([...times(49, -2), ...times(20, 2)])).toEqual([53]);
  });

  it('the change detector takes a single error for no more than a factor of e²', () => {
    expect(alarms([...times(100, 0), 1000])).toEqual([]);
  });
});
