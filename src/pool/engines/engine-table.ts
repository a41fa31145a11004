import { BUILTIN_ENGINES, type EngineConfig } from './builtin-engines.js';
import { Engine } from './engine.js';

export interface EngineTableOptions {
  /** Override a built-in engine of the same name as a whole, or add one. */
  readonly engineConfigs?: readonly EngineConfig[] | undefined;
  /**
   * Endpoint label that names the engine. Default `llm-d.ai/engine-type`; the older name is read where it is absent.
   */
  readonly engineLabelKey?: string | undefined;
  /** Keys of the custom metrics that plugins read; null = a value that comes from elsewhere. */
  readonly attributes?: readonly (string | null)[] | undefined;
  /** Whether a plugin reads which LoRA adapters are loaded. Default false. */
  readonly loadedAdapters?: boolean | undefined;
  /** Engine of endpoints without that label. Default `vllm`. */
  readonly defaultEngine?: string | undefined;
}

export interface EngineChoice {
  readonly engine: Engine;
  readonly known: boolean;
  /** Name by the endpoint's label; empty = none. */
  readonly asked: string;
}

const ENGINE_LABEL = 'llm-d.ai/engine-type';
export const OLDER_ENGINE_LABEL = 'inference.networking.k8s.io/engine-type';

/** The engines of a pool by name. Throws at construction when the configuration names a metric or engine wrongly. */
export class EngineTable {
  readonly #engines = new Map<string, Engine>();
  readonly #label: string;
  readonly #fallback: Engine;

  constructor(options: EngineTableOptions = {}) {
    this.#label = options.engineLabelKey || ENGINE_LABEL;
    const { attributes, loadedAdapters } = options;
    for (const config of BUILTIN_ENGINES)
      this.#engines.set(config.name, new Engine(config, 'engines', attributes, loadedAdapters));
    const named = new Set<string>();
    for (const [i, config] of (options.engineConfigs ?? []).entries()) {
      const field = `engineConfigs[${i}]`;
      if (config.name === '') throw new Error(`${field}.name: is empty: name the engine as the endpoints' label does`);
      if (named.has(config.name)) throw new Error(`${field}.name: "${config.name}" stands twice: keep one of them`);
      named.add(config.name);
      this.#engines.set(config.name, new Engine(config, field, attributes, loadedAdapters));
    }
    const fallback = this.#engines.get(options.defaultEngine || 'vllm');
    if (fallback === undefined) {
      throw new Error(`defaultEngine: "${options.defaultEngine}" is unknown: choose one of ${this.names().join(', ')}`);
    }
    this.#fallback = fallback;
  }

  names(): string[] {
    return [...this.#engines.keys()];
  }

  all(): readonly Engine[] {
    return [...this.#engines.values()];
  }

  /**
   * The engine that an endpoint's labels name; `known` is false when they name none of the table (the default serves).
   */
  choose(labels: Readonly<Record<string, string>>): EngineChoice {
    const asked = labels[this.#label] ?? labels[OLDER_ENGINE_LABEL] ?? '';
    if (asked === '') return { engine: this.#fallback, known: true, asked };
    const engine = this.#engines.get(asked);
    return engine === undefined ? { engine: this.#fallback, known: false, asked } : { engine, known: true, asked };
  }
}
