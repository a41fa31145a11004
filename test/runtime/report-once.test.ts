import { describe, expect, it } from 'vitest';
import { ReportOnce } from '../../dist/src/runtime/report-once.js';

function reports() {
  const told: string[] = [];
  return { told, once: new ReportOnce((problem) => told.push(problem)) };
}

describe('a problem that is met again and again', () => {
  it('a recurring problem is told once', () => {
    const { once, told } = reports();
    once.problem(new Error('no such file'));
    once.problem(new Error('no such file'));
    expect(told).toEqual(['no such file']);
  });

  it('a recurring problem is told again after another one', () => {
    const { once, told } = reports();
    for (const problem of ['a', 'b', 'a']) once.problem(problem);
    expect(told).toEqual(['a', 'b', 'a']);
  });

  it('a recurring problem is told again after it was over', () => {
    const { once, told } = reports();
    once.problem('a');
    once.over();
    once.problem('a');
    expect(told).toEqual(['a', 'a']);
  });
});
