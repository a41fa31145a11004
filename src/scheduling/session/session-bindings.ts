/** Where a session went. Times are milliseconds of the pool clock. */
export interface SessionBinding {
  /** Endpoint id, `namespace/name`. */
  readonly endpoint: string;
  readonly boundAt: number;
  usedAt: number;
}

export interface SessionBindingsOptions {
  /** Sessions that are kept; the one that was used least recently leaves first. */
  readonly capacity: number;
  /** How long a binding lives after its last use. */
  readonly ttlMs: number;
  /** How often what has outlived its time is removed. */
  readonly sweepMs: number;
}

/** Longer session ids would fill the memory at the wish of a client; they are told apart by this much of them. */
const ID_CHARACTERS_MAX = 256;

/** Which endpoint each session is bound to: bounded, least recently used first out. */
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

  /** Bind a session, or bind it anew. */
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

  /** A bound session was used. */
  touch(session: string, nowMs: number): void {
    const binding = this.find(session, nowMs);
    if (binding === undefined) return;
    binding.usedAt = nowMs;
    this.bind(session, binding, nowMs);
  }

  #isOver(binding: SessionBinding, nowMs: number): boolean {
    return nowMs - binding.usedAt > this.#options.ttlMs;
  }

  /** What is over stands first: bindings are in order of their last use. */
  #sweep(nowMs: number): void {
    if (nowMs < this.#nextSweep) return;
    this.#nextSweep = nowMs + this.#options.sweepMs;
    for (const [session, binding] of this.#bySession) {
      if (!this.#isOver(binding, nowMs)) return;
      this.#bySession.delete(session);
    }
  }
}
