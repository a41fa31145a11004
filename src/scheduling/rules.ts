import type { Operation } from '../core/operations.js';
import { canLearn, isReplaced, observedProgram } from './learned-profile.js';

/** A way to weigh load and cache that can replace a profile's own scorers of them. */
export interface Rule {
  readonly name: string;
  /** Its scorers for a block size of the prefix index in tokens; undefined = the profile's own. */
  readonly scorers: ((blockTokens: number) => readonly Operation[]) | undefined;
}

/** Candidate rules of `drive: rules`; index 0 is the configured profile. */
export const rules: readonly Rule[] = [
  { name: 'configured', scorers: undefined },
  {
    name: 'requests and prefix',
    scorers: (blockTokens) => [
      { code: 'OP_SCORE_ACTIVE_REQUEST', weight: 4, parameters: [0, 1] },
      { code: 'OP_SCORE_PREFIX', weight: 4, parameters: [0, 8192, blockTokens] },
      { code: 'OP_SCORE_QUEUE', weight: 1, parameters: [] },
    ],
  },
  { name: 'tokens times requests', scorers: () => [{ code: 'OP_SCORE_LMETRIC', weight: 1, parameters: [] }] },
  {
    name: 'blocks, prefill eightfold',
    scorers: () => [{ code: 'OP_SCORE_ACTIVE_BLOCKS', weight: 1, parameters: [8, 0, 1, 0, 1] }],
  },
];

/** The program with the scorers of a rule in place of its own of load and cache, scaled to the sum of their weights. */
export function ruledProgram(operations: readonly Operation[], rule: number): readonly Operation[] {
  const scorers = rules[rule]?.scorers;
  if (scorers === undefined || !canLearn(operations)) return observedProgram(operations);
  const own = operations.filter(isReplaced);
  const others = scorers(own.find(({ code }) => code === 'OP_SCORE_PREFIX')?.parameters[2] ?? 0);
  const total = sumOf(own) > 0 ? sumOf(own) : 1;
  const weighed = others.map((each) => ({ ...each, weight: (each.weight * total) / sumOf(others) }));
  const at = operations.findIndex(isReplaced);
  return observedProgram(
    operations.flatMap((operation, i) => (i === at ? weighed : isReplaced(operation) ? [] : [operation])),
  );
}

function sumOf(operations: readonly Operation[]): number {
  return operations.reduce((sum, { weight }) => sum + weight, 0);
}
