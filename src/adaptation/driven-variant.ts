import type { ProgramVariant } from '../scheduling/program-variants.js';
import type { Drive } from './adapter.js';

/** The program variant for an arm. */
export function variantOfDrive({ arm, tag, weights, rule }: Drive): ProgramVariant {
  if (arm === 'static') return { kind: 'observed', tag, projects: weights !== undefined };
  if (rule !== undefined) return { kind: 'ruled', tag, rule };
  return weights === undefined ? { kind: 'learned', tag } : { kind: 'projected', tag, weights };
}
