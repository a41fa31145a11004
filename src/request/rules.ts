import type { ModelAccess } from '../contract/decide-settings.js';
import type { LegacyModel, ModelRewrite, PoolRules } from '../contract/endpoint.js';

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
  readonly models: ReadonlyMap<string, LegacyModel>;
}

/** As llm-d-router has it: every model, and clients may rewrite. */
const OPEN_ACCESS: ModelAccess = { matchRequired: false, clientsRewrite: true };

type RuleState = Pick<PoolRules, 'objectives' | 'rewrites' | 'models'>;

function compile(state: RuleState): CompiledRules {
  const exact = new Map<string, ModelRewrite>();
  let generic: ModelRewrite | undefined;
  // The sort is stable: rules of one age keep the order of their source, so the same rule wins after every reload.
  for (const rule of [...state.rewrites].sort((a, b) => a.age - b.age)) {
    if (rule.models.length === 0) generic ??= rule;
    for (const model of rule.models) if (!exact.has(model)) exact.set(model, rule);
  }
  return { objectives: state.objectives, exact, generic, models: state.models ?? new Map() };
}

/** Objectives and model rewrites of the pool. A request sees the old or the new rules, never a mixture. */
export class RequestRules {
  #rules: CompiledRules;
  readonly access: ModelAccess;

  constructor(state: RuleState = { objectives: new Map(), rewrites: [] }, access: ModelAccess = OPEN_ACCESS) {
    this.#rules = compile(state);
    this.access = access;
  }

  /** Replaces all rules. */
  replace(state: RuleState): void {
    this.#rules = compile(state);
  }

  /** Whether there is an objective of this name. */
  hasObjective(name: string): boolean {
    return this.#rules.objectives.has(name);
  }

  /** Priority of an objective; 0 for an unknown or missing one. */
  priority(objective: string | undefined): number {
    return objective === undefined ? 0 : (this.#rules.objectives.get(objective) ?? 0);
  }

  /** Priority of a request for a model: its objective's, if known, else that of an InferenceModel. */
  priorityOf(objective: string | undefined, model: string): number {
    const { objectives, models } = this.#rules;
    const named = objective === undefined ? undefined : objectives.get(objective);
    return named ?? models.get(model)?.priority ?? 0;
  }

  /**
   * Whether a model may be asked for: an objective, a rewrite rule or an InferenceModel names it, or none has to. A
   * model whose InferenceModel has no target with a weight is not served.
   */
  serves(model: string): boolean {
    const { objectives, exact, generic, models } = this.#rules;
    const legacy = models.get(model);
    if (exact.has(model) || generic !== undefined) return true;
    if (legacy !== undefined) return !legacy.refused;
    return !this.access.matchRequired || objectives.has(model);
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
