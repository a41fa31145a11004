import { describe, expect, it } from 'vitest';
import type { Operation, OperationName } from '../../dist/src/core/operations.js';
import {
  canLearn,
  learnedProgram,
  observedProgram,
  projectedProgram,
} from '../../dist/src/scheduling/learned-profile.js';

const operation = (code: OperationName, weight = 1, ...parameters: number[]): Operation => ({
  code,
  weight,
  parameters,
});
const filter = operation('OP_FILTER_MASK', 1, 0);
const queue = operation('OP_SCORE_QUEUE', 2);
const prefix = operation('OP_SCORE_PREFIX', 3, 0, 8192, 64);
const adapter = operation('OP_SCORE_ADAPTER', 4, 0);
const pick = operation('OP_PICK_MAX_SCORE', 1, 1);
const marginal = operation('OP_SCORE_MARGINAL_COST');

describe('a learned program', () => {
  it('a learned program has marginal cost in the place of load and cache, with their weight together', () => {
    const learned = learnedProgram([filter, queue, adapter, prefix, pick]);
    expect(learned).toEqual([filter, operation('OP_SCORE_MARGINAL_COST', 5), adapter, pick]);
  });

  it('a learned program keeps what has nothing to do with cost as it is', () => {
    for (const program of [
      [filter, pick],
      [adapter, pick],
      [marginal, queue, pick],
    ]) {
      expect(canLearn(program)).toBe(false);
      expect(learnedProgram(program)).toEqual(program);
      expect(observedProgram(program)).toEqual(program);
    }
  });

  it('a learned program gives weight 1 to marginal cost when the scorers had none', () => {
    expect(learnedProgram([operation('OP_SCORE_QUEUE', 0), pick])).toEqual([marginal, pick]);
  });
});

describe('an observed program', () => {
  it('an observed program asks before the pick, and changes nothing else', () => {
    expect(observedProgram([queue, prefix, pick])).toEqual([queue, prefix, operation('OP_WOULD_PICK', 1, 0), pick]);
  });

  it('an observed program names the scorers whose weights a projection moves', () => {
    const free = operation('OP_SCORE_KV_USAGE', 0);
    const observed = observedProgram([filter, queue, adapter, free, prefix, pick], true);
    expect(observed[5]).toEqual(operation('OP_WOULD_PICK', 1, 2, 1, 4));
  });
});

describe('a projected program', () => {
  it('a projected program has other weights for load and cache, and goes on being observed', () => {
    const projected = projectedProgram([filter, queue, adapter, prefix, pick], [0.5, 4.5]);
    const [, first, second, third, note] = projected;
    expect([first!.weight, second!.weight, third!.weight]).toEqual([0.5, 4, 4.5]);
    expect(note).toEqual(operation('OP_WOULD_PICK', 1, 2, 1, 3));
  });

  it('a projected program keeps its weights when those given are of another profile', () => {
    expect(projectedProgram([queue, pick], [1, 2, 3])[0]).toEqual(queue);
  });
});
