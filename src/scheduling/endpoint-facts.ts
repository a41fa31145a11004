import type { EndpointFacts, LoadedAdapters, ServedModel } from '../contract/endpoint-facts.js';

interface Entry {
  readonly models: ReadonlyMap<string, ServedModel> | undefined;
  readonly adapters: LoadedAdapters | undefined;
}

/** A shard's copy of what endpoints have told of themselves, by endpoint id. */
export class EndpointFactsTable {
  readonly #entries = new Map<string, Entry>();
  #version = 0;

  /** Counts the changes, for what is worked out from them. */
  get version(): number {
    return this.#version;
  }

  /** Replaces what is known of each of these endpoints; of one without any fact nothing is kept. */
  apply(changes: readonly EndpointFacts[]): void {
    if (changes.length > 0) this.#version++;
    for (const { id, models, adapters } of changes) {
      if (models === undefined && adapters === undefined) this.#entries.delete(id);
      else this.#entries.set(id, { models: models && new Map(models.map((model) => [model.id, model])), adapters });
    }
  }

  /** Models by name; undefined = the endpoint has told no list. */
  modelsOf(id: string): ReadonlyMap<string, ServedModel> | undefined {
    return this.#entries.get(id)?.models;
  }

  adaptersOf(id: string): LoadedAdapters | undefined {
    return this.#entries.get(id)?.adapters;
  }
}
