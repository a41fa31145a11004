import type { ServedModel } from '../../contract/endpoint-facts.js';
import type { EndpointSignals } from '../../core/endpoint-table.js';
import { UNUSED_MS_MAX, type VouchedNames } from '../../operations/telemetry/shown-names.js';
import { DEFAULT_FAIRNESS_ID } from '../../request/control-headers.js';
import type { RulesMessage } from '../messages.js';
import type { Part } from '../part.js';

/** Bound on the names that model servers tell. Names of objects and of the configuration have none. */
const TOLD_MAX = 1_000;
/** Interval between two looks at what is vouched for. */
const COLLECT_MS = 1_000;
/** Time that a new name waits for others. */
const COLLECT_SOON_MS = 10;

/** Sources of names that a client cannot make up. */
export interface VouchedLabelSources {
  readonly rules: () => RulesMessage;
  /** Lists of models by endpoint; undefined when they are not fetched. */
  readonly servedModels: () => ReadonlyMap<string, readonly ServedModel[]> | undefined;
  /** Base models and tenants of the configuration. */
  readonly configured: () => { readonly models: readonly string[]; readonly tenants: readonly string[] };
  /** Receives the names whenever they change. */
  readonly changed: (names: VouchedNames) => void;
  /** Milliseconds of a clock that does not go back. */
  readonly now: () => number;
}

/** Collects the names that are label values of the metrics because a rule, an adapter or a model server has them. */
export class VouchedLabels implements Part {
  readonly #sources: VouchedLabelSources;
  /** Time in milliseconds at which a model server last told a name. */
  readonly #told = new Map<string, number>();
  #names: VouchedNames;
  #timer: NodeJS.Timeout | undefined;
  #soon: NodeJS.Timeout | undefined;

  constructor(sources: VouchedLabelSources) {
    this.#sources = sources;
    this.#names = this.#current();
  }

  start(): void {
    this.#timer = setInterval(() => this.collect(), COLLECT_MS).unref();
    this.collect();
  }

  stop(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#soon);
  }

  /** The present names. */
  get names(): VouchedNames {
    this.collect();
    return this.#names;
  }

  /** Takes names from the signals of an endpoint: the model of its page, and its adapters. */
  hear({ model, adapters }: Pick<EndpointSignals, 'model' | 'adapters'>): void {
    if (model !== undefined) this.#tell(model);
    for (const name of adapters?.running ?? []) this.#tell(name);
    for (const name of adapters?.waiting ?? []) this.#tell(name);
  }

  /** Collects within some milliseconds. */
  collectSoon(): void {
    if (this.#soon !== undefined) return;
    this.#soon = setTimeout(() => {
      this.#soon = undefined;
      this.collect();
    }, COLLECT_SOON_MS).unref();
  }

  /** Reads all sources, drops names that are too old, and reports a change. */
  collect(): void {
    for (const models of this.#sources.servedModels()?.values() ?? []) for (const { id } of models) this.#tell(id);
    const oldest = this.#sources.now() - UNUSED_MS_MAX;
    for (const [name, at] of this.#told) if (at < oldest) this.#told.delete(name);
    const names = this.#current();
    if (equal(names.models, this.#names.models) && equal(names.fairnessIds, this.#names.fairnessIds)) return;
    this.#names = names;
    this.#sources.changed(names);
  }

  #tell(name: string): void {
    const isKnown = this.#told.has(name);
    if (!isKnown && this.#told.size === TOLD_MAX) return;
    this.#told.set(name, this.#sources.now());
    if (!isKnown) this.collectSoon();
  }

  #current(): VouchedNames {
    const { rules, configured } = this.#sources;
    const { objectives, rewrites, models } = rules();
    const { models: base, tenants } = configured();
    const targets = rewrites.flatMap((rewrite) => rewrite.targets.map(({ model }) => model));
    const named = [...objectives.map(([name]) => name), ...rewrites.flatMap((rewrite) => rewrite.models), ...targets];
    return {
      models: new Set([...named, ...models.map(([name]) => name), ...base, ...this.#told.keys()]),
      fairnessIds: new Set([DEFAULT_FAIRNESS_ID, ...tenants]),
    };
  }
}

function equal(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && [...a].every((name) => b.has(name));
}
