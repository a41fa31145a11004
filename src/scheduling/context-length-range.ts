import type { LabelValue } from './program.js';

/**
 * The range of prompt lengths in an endpoint's label: `min-max` in tokens, both included. Anything else is bad, the empty
 * label too; an endpoint without the label takes any length.
 */
export function contextLengthRange(label: string | undefined): LabelValue {
  if (label === undefined) return { kind: 'range', range: undefined };
  const parts = /^\s*(\d{1,15})\s*-\s*(\d{1,15})\s*$/.exec(label);
  if (parts === null) return { kind: 'range', range: 'bad' };
  const min = Number(parts[1]);
  const max = Number(parts[2]);
  return { kind: 'range', range: min > max ? 'bad' : { min, max } };
}
