import { isDeepStrictEqual } from 'node:util';
import type { AdapterLevel, EndpointFacts, LoadedAdapters, ServedModel } from '../../contract/endpoint-facts.js';
import type { EndpointSignals } from '../../core/endpoint-table.js';

/** Changes wait this long for others that come with them. */
const TELL_MS = 20;

export interface FactsBoardOptions {
  /** Whether a plugin reads which adapters are loaded. */
  readonly adapters: boolean;
  /** Receives the endpoints whose facts have changed. */
  readonly tell: (changed: readonly EndpointFacts[]) => void;
}

/** What endpoints have told of themselves, for the shards: each change is told once. */
export class FactsBoard {
  readonly #options: FactsBoardOptions;
  readonly #facts = new Map<string, EndpointFacts>();
  readonly #changed = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: FactsBoardOptions) {
    this.#options = options;
  }

  /** All that is known now. */
  get known(): readonly EndpointFacts[] {
    return [...this.#facts.values()];
  }

  /** The list of models of an endpoint; undefined = it has none any more. */
  models(id: string, models: readonly ServedModel[] | undefined): void {
    this.#set({ id, models, adapters: this.#facts.get(id)?.adapters });
  }

  /** The signals of an endpoint's metrics page. */
  scraped(id: string | undefined, signals: EndpointSignals): void {
    if (!this.#options.adapters || id === undefined) return;
    this.#set({ id, models: this.#facts.get(id)?.models, adapters: loadedAdapters(signals) });
  }

  /** The endpoint is gone. */
  forget(id: string): void {
    if (this.#facts.delete(id)) this.#change(id);
  }

  #set(facts: EndpointFacts): void {
    const { id, models, adapters } = facts;
    const before = this.#facts.get(id);
    if (isDeepStrictEqual(before?.models, models) && equalAdapters(before?.adapters, adapters)) return;
    if (models === undefined && adapters === undefined) this.#facts.delete(id);
    else this.#facts.set(id, facts);
    this.#change(id);
  }

  #change(id: string): void {
    this.#changed.add(id);
    this.#timer ??= setTimeout(() => this.#tell(), TELL_MS).unref();
  }

  #tell(): void {
    this.#timer = undefined;
    const none = { models: undefined, adapters: undefined };
    const changed = [...this.#changed].map((id) => this.#facts.get(id) ?? { id, ...none });
    this.#changed.clear();
    this.#options.tell(changed);
  }
}

function equalAdapters(a: LoadedAdapters | undefined, b: LoadedAdapters | undefined): boolean {
  return a === b || isDeepStrictEqual(a, b);
}

/** What signals say of loaded adapters; undefined = nothing, not even the number of slots. */
export function loadedAdapters({ residency, adapters, model }: EndpointSignals): LoadedAdapters | undefined {
  const slots = residency?.slots ?? adapters?.max;
  if (residency === undefined && slots === undefined) return undefined;
  const active = new Set([...(adapters?.running ?? []), ...(adapters?.waiting ?? [])]);
  const onGpu = residency?.gpu ?? [];
  const pinned = new Set(residency?.pinned);
  return {
    levels: residency && levelsOf(residency),
    onGpu: residency?.onGpu ?? onGpu.length,
    slots: slots ?? 0,
    busy: onGpu.filter((name) => active.has(name)).length,
    replaceable: onGpu.some((name) => !pinned.has(name) && !active.has(name)),
    baseModel: model ?? '',
  };
}

/** An adapter on both levels is on the GPU. */
function levelsOf({ gpu, cpu }: NonNullable<EndpointSignals['residency']>): ReadonlyMap<string, AdapterLevel> {
  const levels = new Map<string, AdapterLevel>(cpu.map((name) => [name, 'cpu']));
  for (const name of gpu) levels.set(name, 'gpu');
  return levels;
}
