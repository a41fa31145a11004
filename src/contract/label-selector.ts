/** A Kubernetes LabelSelector. Empty = every endpoint. */
export interface LabelSelector {
  readonly matchLabels: Readonly<Record<string, string>>;
  readonly matchExpressions: readonly LabelRule[];
}

interface LabelRule {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  /** Values of the operators In and NotIn. */
  readonly values: readonly string[];
}

/** Label keys of Kubernetes, with or without a prefix, and label values. */
export const LABEL_KEY =
  /^([A-Za-z0-9][-A-Za-z0-9.]{0,252}\/)?(?=[^/]{1,63}$)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
export const LABEL_VALUE = /^(?=.{0,63}$)([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/;

/** Kubernetes semantics: every rule must hold; NotIn also accepts an absent label. */
export function selectorAccepts(selector: LabelSelector, labels: Readonly<Record<string, string>>): boolean {
  const exact = Object.entries(selector.matchLabels).every(([key, value]) => labels[key] === value);
  return exact && selector.matchExpressions.every((rule) => holds(rule, labels[rule.key]));
}

/** Whether rules of this operator have values. */
export function takesValues(operator: string): boolean {
  return operator === 'In' || operator === 'NotIn';
}

function holds(rule: LabelRule, value: string | undefined): boolean {
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
