import type { PluginDefinition } from '../../src/scheduling/plugin.js';
import type { HookPluginSettings } from '../../src/scheduling/program.js';
import { TOKEN_BYTES } from '../../src/scheduling/prompt-sizes.js';
import { ExplainedPlugins, type PluginBody } from '../explain/explained-plugins.js';
import type { BenchPool } from './bench-pool.js';

const PATH = '/v1/chat/completions';
const HEADERS: ReadonlyMap<string, string> = new Map([
  [':path', PATH],
  ['content-type', 'application/json'],
]);
const FAIRNESS_ID = 'bench';
const PRIORITY = 0;

/** The hooks of one plugin that run before and in a decision, called as on a shard. */
export class HookCalls {
  readonly #plugins: ExplainedPlugins;
  readonly #body: PluginBody;

  /** @throws with one line when the plugin does not start */
  constructor(
    pool: BenchPool,
    settings: HookPluginSettings,
    registry: readonly PluginDefinition[],
    budgetClock: () => number,
  ) {
    const { core, directory, configuration } = pool;
    const scheduling = { ...configuration.scheduling, host: [settings] };
    this.#plugins = new ExplainedPlugins({
      ...{ core, directory, scheduling, registry, budgetClock },
      ...{ seed: 0n, nowMs: 1 },
    });
    this.#body = {
      ...{ model: 'model', targetModel: 'model', cacheSalt: undefined, media: [], maxOutputTokens: undefined },
      ...{ promptBytes: pool.promptTokens * TOKEN_BYTES, priority: PRIORITY, fairnessId: FAIRNESS_ID },
    };
  }

  /**
   * Calls of one request: header processor, screener, admitter, producer, match, filter and scorer, as far as present.
   */
  request(profile: string): void {
    const plugins = this.#plugins;
    const record = plugins.begin(HEADERS, PATH, PRIORITY, FAIRNESS_ID);
    const allowed = plugins.allow(record, undefined, this.#body);
    const subset = allowed === undefined || 'kind' in allowed ? undefined : allowed;
    plugins.fill(plugins.input(record, this.#body, subset, HEADERS), profile);
  }

  /** Number of calls that failed. */
  get failures(): number {
    return this.#plugins.failures.length;
  }

  close(): void {
    this.#plugins.close();
  }
}
