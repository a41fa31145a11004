import type { ApiClient } from './api-client.js';
import { type Kind, kindPath, type OptionalKind, resourceName, type ServedKind, ServedKinds } from './kinds.js';
import { Reflector, type ReflectorCounts, type ReflectorOptions, type ReflectorState } from './reflector.js';
import { SelectedObjects, SharedReflector } from './shared-reflector.js';

/** Objects of one kind that are followed. */
export interface Watch<Value> {
  readonly kind: Kind;
  readonly state: ReflectorState;
  /** Whether there has been a complete first state, or the cluster does not have the kind. */
  readonly synced: boolean;
  /** Present obstacle in words; empty while it watches. */
  readonly problem: string;
  /** Time since the server was last heard, in milliseconds. */
  readonly silentMs: number;
  /** Objects that are left out because they cannot be read. */
  readonly rejected: number;
  readonly size: number;
  values(): Value[];
  start(): void;
  stop(): void;
}

export type WatchOptions<Value> = Omit<ReflectorOptions<Value>, 'client' | 'counts'>;

/** Watches of one kind, in all namespaces. */
export interface WatchedKind {
  readonly kind: Kind;
  readonly counts: ReflectorCounts;
}

/** A look at the served kinds that is repeated until it is stopped. */
export interface ServedWatch {
  start(): void;
  stop(): void;
}

interface ServedListener {
  readonly changed: (optional: OptionalKind, served: ServedKind) => void;
  readonly report: (problem: string) => void;
}

/**
 * The watches of a process at one API server. Shared, all followers of a kind in a namespace have one watch of all its
 * objects, and each gets those that it selects. Otherwise each has a watch of its own, whose objects the API server
 * selects.
 */
export class Watches {
  readonly #client: ApiClient;
  readonly #shared: boolean;
  readonly #reflectors = new Map<string, SharedReflector<unknown>>();
  readonly #kinds = new Map<string, WatchedKind>();
  readonly #listeners = new Set<ServedListener>();
  readonly #servedKinds = new Map<OptionalKind, ServedKind>();
  #served: ServedKinds | undefined;

  constructor(client: ApiClient, shared: boolean) {
    this.#client = client;
    this.#shared = shared;
  }

  /** Counts of all watches so far, by kind. */
  get kinds(): WatchedKind[] {
    return [...this.#kinds.values()];
  }

  /** Objects of a kind in a namespace, not followed yet. All followers of a kind read it the same way. */
  follow<Value>(options: WatchOptions<Value>): Watch<Value> {
    const counts = this.#countsOf(options.kind);
    if (!this.#shared) return new Reflector<Value>({ ...options, client: this.#client, counts });
    return new SelectedObjects<Value>(options, () => this.#reflector(options, counts));
  }

  /**
   * Which optional kinds the cluster serves: one series of probes for all listeners.
   * @param changed as of `ServedKinds`
   */
  served(changed: ServedListener['changed'], report: ServedListener['report']): ServedWatch {
    if (!this.#shared) {
      const served = new ServedKinds(this.#client, changed, report);
      return { start: () => void served.start(), stop: () => served.stop() };
    }
    const listener: ServedListener = { changed, report };
    return { start: () => this.#listen(listener), stop: () => this.#leave(listener) };
  }

  #countsOf(kind: Kind): ReflectorCounts {
    const key = `${resourceName(kind)}/${kind.version}`;
    let known = this.#kinds.get(key);
    if (known === undefined) {
      known = { kind, counts: { relists: new Map(), reconnects: new Map(), running: 0 } };
      this.#kinds.set(key, known);
    }
    return known.counts;
  }

  #reflector<Value>(options: WatchOptions<Value>, counts: ReflectorCounts): SharedReflector<Value> {
    const key = kindPath(options.kind, options.namespace);
    const known = this.#reflectors.get(key) as SharedReflector<Value> | undefined;
    if (known !== undefined) return known;
    const made = new SharedReflector<Value>({ ...options, client: this.#client, counts }, () => {
      this.#reflectors.delete(key);
    });
    this.#reflectors.set(key, made as SharedReflector<unknown>);
    return made;
  }

  #listen(listener: ServedListener): void {
    this.#listeners.add(listener);
    if (this.#served === undefined) {
      this.#served = new ServedKinds(
        this.#client,
        (optional, served) => {
          this.#servedKinds.set(optional, served);
          for (const { changed } of [...this.#listeners]) changed(optional, served);
        },
        (problem) => {
          for (const { report } of [...this.#listeners]) report(problem);
        },
      );
      void this.#served.start();
      return;
    }
    // As late as an answer of the server would be: the listener may not have ended its own start.
    queueMicrotask(() => {
      if (!this.#listeners.has(listener)) return;
      for (const [optional, served] of this.#servedKinds) listener.changed(optional, served);
    });
  }

  #leave(listener: ServedListener): void {
    if (!this.#listeners.delete(listener) || this.#listeners.size > 0) return;
    this.#served?.stop();
    this.#served = undefined;
    this.#servedKinds.clear();
  }
}
