/** Life of one request, in fair milliseconds. */
export interface Life {
  readonly picker: string;
  /** Address of its endpoint; undefined = not yet decided. */
  endpoint: string | undefined;
  /** Undefined = it runs. */
  endedMs: number | undefined;
}

/**
 * Every request of a run with its picker, endpoint and end, as the clients know them. Forgets requests that ended long
 * ago.
 */
export class RequestBook {
  readonly #keptMs: number;
  readonly #now: () => number;
  readonly #lives = new Set<Life>();
  begun = 0;

  /** @param keptMs time after the end of a request for which it is remembered */
  constructor(now: () => number, keptMs: number) {
    this.#now = now;
    this.#keptMs = keptMs;
  }

  /** Notes a request before it is sent. */
  begin(picker: string): Life {
    const life: Life = { picker, endpoint: undefined, endedMs: undefined };
    this.#lives.add(life);
    this.begun++;
    return life;
  }

  /** Notes the end of a request after its picker is known to have seen it. */
  end(life: Life): void {
    life.endedMs ??= this.#now();
  }

  /** Notes that a picker is dead, and its requests with it. */
  endAll(picker: string): void {
    for (const life of this.#lives) if (life.picker === picker) this.end(life);
  }

  forget(): void {
    const oldest = this.#now() - this.#keptMs;
    for (const life of this.#lives) if (life.endedMs !== undefined && life.endedMs < oldest) this.#lives.delete(life);
  }

  /**
   * Requests of all pickers but `observer` on an endpoint that ran at `sinceMs` or later: the most that it may know of.
   */
  most(observer: string, endpoint: string, sinceMs: number): number {
    return this.#count(
      (life) =>
        life.picker !== observer &&
        (life.endpoint ?? endpoint) === endpoint &&
        (life.endedMs === undefined || life.endedMs >= sinceMs),
    );
  }

  /** Requests that run now on an endpoint. @param who which pickers */
  running(endpoint: string, who: (picker: string) => boolean): number {
    return this.#count((life) => life.endpoint === endpoint && life.endedMs === undefined && who(life.picker));
  }

  /** Requests that run and wait for their endpoint. */
  get undecided(): number {
    return this.#count((life) => life.endpoint === undefined && life.endedMs === undefined);
  }

  #count(which: (life: Life) => boolean): number {
    let count = 0;
    for (const life of this.#lives) count += Number(which(life));
    return count;
  }
}
