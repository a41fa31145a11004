import { z } from 'zod';

const requirement = z
  .strictObject({
    key: z.string().min(1).describe('Label that the rule is about.'),
    operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('How the label is compared.'),
    values: z.array(z.string()).default([]).describe('Values for In and NotIn; must be empty otherwise.'),
  })
  .refine((rule) => takesValues(rule.operator) === rule.values.length > 0, {
    error: 'In and NotIn need at least one entry in values, Exists and DoesNotExist take none',
  });

/** A Kubernetes LabelSelector. Empty = every endpoint. */
export const labelSelector = z.strictObject({
  matchLabels: z.record(z.string(), z.string()).default({}).describe('Labels that must have exactly these values.'),
  matchExpressions: z.array(requirement).default([]).describe('Rules that must all hold.'),
});

export type LabelSelector = z.output<typeof labelSelector>;

/** Kubernetes semantics: every rule must hold; NotIn also accepts an absent label. */
export function selectorAccepts(selector: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  const exact = Object.entries(selector.matchLabels).every(([key, value]) => labels[key] === value);
  return exact && selector.matchExpressions.every((rule) => holds(rule, labels[rule.key]));
}

function takesValues(operator: string): boolean {
  return operator === 'In' || operator === 'NotIn';
}

function holds(rule: LabelSelector['matchExpressions'][number], value: string | undefined): boolean {
  switch (rule.operator) {
    case 'In':
      return value !== undefined && rule.values.includes(value);
    case 'NotIn':
      return value === undefined || !rule.values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
}
