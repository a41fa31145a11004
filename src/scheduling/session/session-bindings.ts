/** The endpoint of a session. Times are milliseconds of the pool clock. */
export interface SessionBinding {
  /** Endpoint id, `namespace/name`. */
  readonly endpoint: string;
  readonly boundAt: number;
  usedAt: number;
}

export interface SessionBindingsOptions {
  /** Bound on the sessions; the least recently used one is dropped first. */
  readonly capacity: number;
  /** Time in milliseconds after the last use for which a binding stays. */
  readonly ttlMs: number;
  /** Interval in milliseconds between two removals of expired bindings. */
  readonly sweepMs: number;
}

/** Bound on a session id in characters, because clients choose it. Longer ids are distinguished by their beginning. */
const ID_CHARACTERS_MAX = 256;

/** Endpoint bindings of sessions: bounded, the least recently used first out. */
export class SessionBindings {
  readonly #options: SessionBindingsOptions;
  /** In order of last use. */
  readonly #bySession = new Map<string, SessionBinding>();
  #nextSweep = 0;

  constructor(options: SessionBindingsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#bySession.size;
  }

  /** The live binding of a session. */
  find(session: string, nowMs: number): SessionBinding | undefined {
    const binding = this.#bySession.get(session.slice(0, ID_CHARACTERS_MAX));
    return binding === undefined || this.#isOver(binding, nowMs) ? undefined : binding;
  }

  /** Binds a session, or replaces its binding. */
  bind(session: string, binding: SessionBinding, nowMs: number): void {
    this.#sweep(nowMs);
    const key = session.slice(0, ID_CHARACTERS_MAX);
    this.#bySession.delete(key);
    if (this.#bySession.size >= this.#options.capacity) {
      const oldest = this.#bySession.keys().next();
      if (!oldest.done) this.#bySession.delete(oldest.value);
    }
    this.#bySession.set(key, binding);
  }

  /** Records a use of a bound session. */
  touch(session: string, nowMs: number): void {
    const binding = this.find(session, nowMs);
    if (binding === undefined) return;
    binding.usedAt = nowMs;
    this.bind(session, binding, nowMs);
  }

  #isOver(binding: SessionBinding, nowMs: number): boolean {
    return nowMs - binding.usedAt > this.#options.ttlMs;
  }

  /** Bindings are in order of their last use, so expired ones are at the front. */
  #sweep(nowMs: number): void {
    if (nowMs < this.#nextSweep) return;
    this.#nextSweep = nowMs + this.#options.sweepMs;
    for (const [session, binding] of this.#bySession) {
      if (!this.#isOver(binding, nowMs)) return;
      this.#bySession.delete(session);
    }
  }
}
