import { LABEL_KEY, LABEL_VALUE, type LabelSelector } from '../../contract/label-selector.js';

/** Thrown for an unreadable text form of a Kubernetes label selector. */
export class BadSelector extends Error {
  /** The wrong rule, as it stands in the text. */
  readonly rule: string;

  constructor(rule: string) {
    super(`"${rule}" is no rule of a label selector: write key=value, key in (a, b), key or !key`);
    this.rule = rule;
  }
}

const SET = /^(\S+)\s+(in|notin)\s*\(([^()]*)\)$/;

type Requirement = LabelSelector['matchExpressions'][number];

/**
 * The rules of a selector in the syntax of `kubectl -l`: `a=b`, `a==b`, `a!=b`, `a in (b, c)`, `a notin (b, c)`, `a`,
 * `!a`, separated by commas.
 * @throws BadSelector that names the rule
 */
export function parseSelector(text: string): LabelSelector {
  const rules = text.split(/,(?![^()]*\))/).map((rule) => rule.trim());
  return { matchLabels: {}, matchExpressions: rules.map(requirement) };
}

function requirement(rule: string): Requirement {
  const set = SET.exec(rule);
  if (set !== null) {
    const values = set[3]!.split(',').map((value) => value.trim());
    return checked(rule, set[1]!, set[2] === 'in' ? 'In' : 'NotIn', values);
  }
  const [, key, operator, value] = /^([^=!]+?)\s*(==|=|!=)\s*([^=!]*)$/.exec(rule) ?? [];
  if (key !== undefined) return checked(rule, key, operator === '!=' ? 'NotIn' : 'In', [value!]);
  if (rule.startsWith('!')) return checked(rule, rule.slice(1).trim(), 'DoesNotExist', []);
  return checked(rule, rule, 'Exists', []);
}

function checked(rule: string, key: string, operator: Requirement['operator'], values: string[]): Requirement {
  if (!LABEL_KEY.test(key) || !values.every((value) => LABEL_VALUE.test(value))) {
    throw new BadSelector(rule);
  }
  return { key, operator, values };
}
