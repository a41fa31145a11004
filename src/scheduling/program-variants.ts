import type { Operation } from '../core/operations.js';
import { learnedProgram, observedProgram, projectedProgram } from './learned-profile.js';
import { ruledProgram } from './rules.js';

/**
 * Variants in which the programs run. Tags are carried by the training samples of their decisions. configured:
 * unchanged · observed: unchanged, with the pick of marginal cost recorded · learned: by marginal cost · projected: by
 * their own scorers with other weights · ruled: by the scorers of a rule
 */
export type ProgramVariant =
  | { readonly kind: 'configured' | 'learned'; readonly tag: number }
  | { readonly kind: 'observed'; readonly tag: number; readonly projects?: boolean }
  | { readonly kind: 'ruled'; readonly tag: number; readonly rule: number }
  | { readonly kind: 'projected'; readonly tag: number; readonly weights: readonly number[] };

/**
 * The program of a profile in a variant.
 * @param projects whether the sums of a projection belong to this profile; at most one profile of a configuration has
 * them
 */
export function programOf(
  operations: readonly Operation[],
  variant: ProgramVariant,
  projects: boolean,
): readonly Operation[] {
  switch (variant.kind) {
    case 'configured':
      return operations;
    case 'observed':
      return observedProgram(operations, projects && variant.projects === true);
    case 'learned':
      return learnedProgram(operations);
    case 'ruled':
      return ruledProgram(operations, variant.rule);
    case 'projected':
      return projects ? projectedProgram(operations, variant.weights) : observedProgram(operations);
  }
}
