import { CORE } from '../core/core-names.js';
import type { Operation, OperationName } from '../core/programs.js';

/**
 * Scorers whose subject is a part of marginal cost: load and cache. Other scorers (sessions, LoRA adapters, labels,
 * custom plugins) continue beside it.
 */
const REPLACED: ReadonlyMap<OperationName, string> = new Map<OperationName, string>([
  ['OP_SCORE_QUEUE', 'queue-scorer'],
  ['OP_SCORE_RUNNING', 'running-requests-size-scorer'],
  ['OP_SCORE_KV_USAGE', 'kv-cache-utilization-scorer'],
  ['OP_SCORE_PREFIX', 'prefix-cache-scorer'],
  ['OP_SCORE_ACTIVE_REQUEST', 'active-request-scorer'],
  ['OP_SCORE_TOKEN_LOAD', 'token-load-scorer'],
  ['OP_SCORE_ACTIVE_BLOCKS', 'active-blocks-scorer'],
  ['OP_SCORE_LOAD_AWARE', 'load-aware-scorer'],
  ['OP_SCORE_NO_HIT_LRU', 'no-hit-lru-scorer'],
  ['OP_SCORE_LMETRIC', 'lmetric-scorer'],
  ['OP_SCORE_CACHE_AWARE', 'cache-aware-scorer'],
  ['OP_SCORE_PREFIX_BALANCE', 'prefix-balance-scorer'],
  ['OP_SCORE_EXPLOIT_EXPLORE', 'exploit-explore-scorer'],
]);

/** Their plugin types. */
export const replacedScorers: ReadonlySet<string> = new Set(REPLACED.values());

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

/** Whether the operation is a scorer of load or cache, which marginal cost and rules can replace. */
export function isReplaced({ code }: Operation): boolean {
  return REPLACED.has(code);
}
