import type { LoadedAdapters, ServedModel } from '../../contract/endpoint-facts.js';
import type { EndpointColumns } from '../../core/hook-columns.js';
import type { PickedEndpoint } from '../decision.js';
import type { EndpointDirectory } from '../endpoint-directory.js';
import { EndpointFactsTable } from '../endpoint-facts.js';
import type { EndpointViews } from './hooks.js';

/** The pool as hook plugins see it. One object serves all requests of a shard; `restrict` sets the present one. */
export class PoolViews implements EndpointViews {
  readonly #directory: EndpointDirectory;
  readonly #columns: EndpointColumns;
  readonly #facts: EndpointFactsTable;
  readonly waiting: Float32Array;
  readonly running: Float32Array;
  readonly kvUsage: Float32Array;
  readonly inflight: Uint32Array;
  readonly inflightTokens: Uint32Array;
  readonly matchedBlocks: Uint32Array;
  slots: readonly number[] = [];

  get all(): readonly number[] {
    return this.#directory.slots();
  }

  constructor(
    directory: EndpointDirectory,
    columns: EndpointColumns,
    facts: EndpointFactsTable = new EndpointFactsTable(),
  ) {
    this.#directory = directory;
    this.#facts = facts;
    this.#columns = columns;
    this.waiting = columns.waiting;
    this.running = columns.running;
    this.kvUsage = columns.kvUsage;
    this.inflight = columns.inflight;
    this.inflightTokens = columns.inflightTokens;
    this.matchedBlocks = columns.matched;
  }

  /** Shows the endpoints of a subset hint; undefined = all. */
  restrict(subset: readonly string[] | undefined): this {
    this.slots = subset === undefined ? this.#directory.slots() : this.#directory.resolve(subset);
    return this;
  }

  /** Cells of a column that decisions read: up to the highest used slot, in whole vectors of four. */
  get cells(): number {
    return ((this.#directory.slots().at(-1) ?? -1) + 4) & ~3;
  }

  at(slot: number): PickedEndpoint | undefined {
    return this.#directory.at(slot);
  }

  slotOf(id: string): number | undefined {
    return this.#directory.slotOf(id);
  }

  modelsOf(slot: number): ReadonlyMap<string, ServedModel> | undefined {
    return this.#facts.modelsOf(this.#directory.at(slot)?.endpoint.id ?? '');
  }

  adaptersOf(slot: number): LoadedAdapters | undefined {
    return this.#facts.adaptersOf(this.#directory.at(slot)?.endpoint.id ?? '');
  }

  get factsVersion(): number {
    return this.#facts.version;
  }

  isKnown(slot: number, signal: 'waiting' | 'running' | 'kvUsage'): boolean {
    return (this.#columns.known[slot]! & this.#columns.signals[signal]) !== 0;
  }
}
