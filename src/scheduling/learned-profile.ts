import { CORE } from '../core/core-names.js';
import { isScorer, OPERATIONS, type Operation } from '../core/operations.js';

/** Whether marginal cost can replace scorers of this program. */
export function canLearn(operations: readonly Operation[]): boolean {
  return operations.some(isReplaced) && !operations.some(({ code }) => code === 'OP_SCORE_MARGINAL_COST');
}

/** The program with one scorer of marginal cost, whose weight is the sum of the replaced scorers' weights. */
export function learnedProgram(operations: readonly Operation[]): readonly Operation[] {
  if (!canLearn(operations)) return operations;
  const weight = operations.filter(isReplaced).reduce((sum, operation) => sum + operation.weight, 0);
  const at = operations.findIndex(isReplaced);
  return operations.flatMap((operation, i) => {
    if (i === at) return [{ code: 'OP_SCORE_MARGINAL_COST', weight: weight > 0 ? weight : 1, parameters: [] }];
    return isReplaced(operation) ? [] : [operation];
  });
}

/**
 * The unchanged program, whose decisions also record the pick of marginal cost.
 * @param projects sums up products of its scorers and marginal cost, for `projectedProgram`
 */
export function observedProgram(operations: readonly Operation[], projects = false): readonly Operation[] {
  if (!canLearn(operations)) return operations;
  const at = operations.findIndex(({ code }) => code.startsWith('OP_PICK'));
  if (at < 0) return operations;
  const scorers = projects ? projectedScorers(operations) : [];
  const note: Operation = { code: 'OP_WOULD_PICK', weight: 1, parameters: [scorers.length, ...scorers] };
  return [...operations.slice(0, at), note, ...operations.slice(at)];
}

/** Numbers of the operations whose weights a projection moves. */
export function projectedScorers(operations: readonly Operation[]): readonly number[] {
  return operations
    .flatMap((operation, i) => (isReplaced(operation) && operation.weight > 0 ? [i] : []))
    .slice(0, CORE.PROJECTION_SCORERS);
}

/** The program with other weights for its projected scorers, in their order. */
export function projectedProgram(operations: readonly Operation[], weights: readonly number[]): readonly Operation[] {
  const scorers = projectedScorers(operations);
  if (scorers.length !== weights.length) return observedProgram(operations, true);
  const weighed = operations.map((operation, i) => {
    const index = scorers.indexOf(i);
    return index < 0 ? operation : { ...operation, weight: weights[index]! };
  });
  return observedProgram(weighed, true);
}

/**
 * Whether the operation is a scorer of load or cache, which marginal cost and rules can replace. Other scorers
 * (sessions, LoRA adapters, labels, custom plugins) continue beside them.
 */
export function isReplaced({ code }: Pick<Operation, 'code'>): boolean {
  return isScorer(code) && OPERATIONS[code].replacedByCost;
}
