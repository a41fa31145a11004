import type { ModelRewrite, PoolState } from '../pool/endpoint.js';

/** Result of a rewrite rule. */
export interface Rewritten {
  /** Name of the rule. */
  readonly rule: string;
  readonly target: string;
}

interface CompiledRules {
  readonly objectives: ReadonlyMap<string, number>;
  readonly exact: ReadonlyMap<string, ModelRewrite>;
  readonly generic: ModelRewrite | undefined;
}

type RuleState = Pick<PoolState, 'objectives' | 'rewrites'>;

function compile(state: RuleState): CompiledRules {
  const exact = new Map<string, ModelRewrite>();
  let generic: ModelRewrite | undefined;
  // The sort is stable: rules of one age keep the order of their source, so the same rule wins after every reload.
  for (const rule of [...state.rewrites].sort((a, b) => a.age - b.age)) {
    if (rule.models.length === 0) generic ??= rule;
    for (const model of rule.models) if (!exact.has(model)) exact.set(model, rule);
  }
  return { objectives: state.objectives, exact, generic };
}

/** Objectives and model rewrites of the pool. A request sees the old or the new rules, never a mixture. */
export class RequestRules {
  #rules: CompiledRules;
  readonly #requireMatch: boolean;

  /** @param requireMatch refuses models that no objective and no rule names (`--require-model-match`) */
  constructor(state: RuleState = { objectives: new Map(), rewrites: [] }, requireMatch = false) {
    this.#rules = compile(state);
    this.#requireMatch = requireMatch;
  }

  /** Replaces all rules. */
  replace(state: RuleState): void {
    this.#rules = compile(state);
  }

  /** Priority of an objective; 0 for an unknown or missing one. */
  priority(objective: string | undefined): number {
    return objective === undefined ? 0 : (this.#rules.objectives.get(objective) ?? 0);
  }

  /** Whether a model is served: an objective or a rewrite rule names it, or no match is required. */
  serves(model: string): boolean {
    const { objectives, exact, generic } = this.#rules;
    return !this.#requireMatch || generic !== undefined || exact.has(model) || objectives.has(model);
  }

  /**
   * The target of an incoming model name: an exact rule beats a generic one, the oldest wins among equals.
   * @param random uniform in [0, 1)
   */
  rewrite(model: string, random: () => number): Rewritten | undefined {
    const rule = this.#rules.exact.get(model) ?? this.#rules.generic;
    if (rule === undefined || rule.targets.length === 0) return undefined;
    return { rule: rule.name, target: chooseTarget(rule.targets, random) };
  }
}

/** Chooses by weight. A target without a weight counts as 0. When all weights are 0, the chances are equal. */
function chooseTarget(targets: ModelRewrite['targets'], random: () => number): string {
  if (targets.length === 1) return targets[0]!.model;
  let total = 0;
  for (const target of targets) total += target.weight ?? 0;
  if (total <= 0) return targets[Math.floor(random() * targets.length)]!.model;
  let rest = random() * total;
  for (const target of targets) {
    rest -= target.weight ?? 0;
    if (rest < 0) return target.model;
  }
  return targets.findLast((target) => (target.weight ?? 0) > 0)!.model;
}
