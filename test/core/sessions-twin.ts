/** A session between turns or in one, as the twin keeps it. */
interface TwinSession {
  readonly id: number;
  state: 'running' | 'idle' | 'lapsed';
  home: number;
  tokens: number;
  shared: number;
  prefix: bigint;
}

/** What was used on an endpoint between turns, oldest first. */
type Use = { readonly kind: 'session'; readonly id: number } | { readonly kind: 'other'; tokens: number };

/**
 * Sessions on endpoints as docs/internals would say it: every endpoint has a row of what was used there, in order; what
 * is in use is all from the oldest protected session on, and what runs. Everything is summed anew at each question.
 */
export class SessionsTwin {
  readonly sessions = new Map<number, TwinSession>();
  readonly #rows: Use[][];
  /** Of each endpoint: shorter prefixes that the counted ones begin with, by these. */
  readonly #within: Map<bigint, bigint>[];
  readonly #tokensOf: (prefix: bigint) => number;

  /** @param tokensOf tokens of a prefix */
  constructor(endpoints: number, tokensOf: (prefix: bigint) => number) {
    this.#rows = Array.from({ length: endpoints }, () => []);
    this.#within = Array.from({ length: endpoints }, () => new Map());
    this.#tokensOf = tokensOf;
  }

  begin(id: number, home: number, tokens: number, shared: number, prefix: bigint): void {
    const before = this.sessions.get(id);
    if (before !== undefined && before.state !== 'running') this.#pullOut(before, home);
    this.sessions.delete(id);
    this.prune();
    this.sessions.set(id, { id, state: 'running', home, tokens: Math.max(tokens, shared), shared, prefix });
  }

  /** What a session shares begins with a shorter prefix, if sessions count that one. */
  nest(id: number, within: bigint): void {
    const { home, prefix, shared } = this.sessions.get(id)!;
    if (home >= 0 && shared !== 0 && this.#counted(home).has(within)) this.#link(home, prefix, within);
  }

  /** A session that counts turns out to share more of its beginning, which begins with what it shared so far. */
  share(id: number, shared: number, prefix: bigint): void {
    const session = this.sessions.get(id)!;
    if (session.home < 0 || this.stateOf(id) === 'lapsed' || shared <= session.shared || shared > session.tokens)
      return;
    const within = session.prefix;
    const nests = session.shared !== 0;
    session.shared = shared;
    session.prefix = prefix;
    if (nests) this.#link(session.home, prefix, within);
  }

  #link(home: number, prefix: bigint, within: bigint): void {
    const links = this.#within[home]!;
    const before = links.get(prefix);
    const tokens = this.#tokensOf(within);
    const isLonger = tokens > (before === undefined ? 0 : this.#tokensOf(before));
    if (tokens < this.#tokensOf(prefix) && isLonger) links.set(prefix, within);
  }

  /** Prefixes that no session counts any more begin with nothing. */
  prune(): void {
    for (const [slot, links] of this.#within.entries()) {
      const counted = this.#counted(slot);
      for (const prefix of links.keys()) if (!counted.has(prefix)) links.delete(prefix);
    }
  }

  /** After a repair it is not known which prefix begins with which. */
  repair(): void {
    for (const links of this.#within) links.clear();
  }

  grow(id: number, tokens: number): void {
    const session = this.sessions.get(id)!;
    if (session.state === 'running') session.tokens = Math.max(session.tokens, tokens);
  }

  end(id: number): void {
    const session = this.sessions.get(id)!;
    if (session.state !== 'running') return;
    session.state = session.home < 0 ? 'lapsed' : 'idle';
    if (session.home >= 0) this.#rows[session.home]!.push({ kind: 'session', id });
  }

  lapse(id: number): void {
    const session = this.sessions.get(id)!;
    if (session.state === 'idle') session.state = 'lapsed';
  }

  unlisted(slot: number, tokens: number): void {
    this.#rows[slot]!.push({ kind: 'other', tokens });
  }

  leave(slot: number): void {
    this.#rows[slot] = [];
    for (const session of this.sessions.values()) {
      if (session.home !== slot) continue;
      if (session.state === 'running') session.home = -1;
      else session.state = 'lapsed';
    }
  }

  used(slot: number): number {
    const others = this.#protectedRow(slot).reduce((sum, use) => sum + (use.kind === 'other' ? use.tokens : 0), 0);
    const own = this.#inUse(slot).reduce((sum, { tokens, shared }) => sum + tokens - shared, 0);
    const links = this.#within[slot]!;
    const prefixes = [...this.#counted(slot)].map((prefix) => {
      const within = links.get(prefix);
      return this.#tokensOf(prefix) - (within === undefined ? 0 : this.#tokensOf(within));
    });
    return own + others + prefixes.reduce((sum, tokens) => sum + tokens, 0);
  }

  /** Sessions that run on an endpoint, and those from its oldest protected one on. */
  #inUse(slot: number): readonly TwinSession[] {
    const running = [...this.sessions.values()].filter(({ state, home }) => state === 'running' && home === slot);
    const listed = this.#protectedRow(slot).flatMap((use) => (use.kind === 'session' ? [use.id] : []));
    return [...running, ...listed.map((id) => this.sessions.get(id)!)];
  }

  /** Prefixes of these sessions, and those that they begin with. */
  #counted(slot: number): ReadonlySet<bigint> {
    const counted = new Set(this.#inUse(slot).flatMap(({ prefix, shared }) => (shared === 0 ? [] : [prefix])));
    for (const prefix of counted) {
      const within = this.#within[slot]!.get(prefix);
      if (within !== undefined) counted.add(within);
    }
    return counted;
  }

  forget(slot: number, capacity: number): number {
    let count = 0;
    while (this.used(slot) > capacity) {
      const oldest = this.#protectedRow(slot)[0];
      if (oldest?.kind !== 'session') break;
      this.lapse(oldest.id);
      count++;
    }
    return count;
  }

  /** State as the core names it. */
  stateOf(id: number): 'running' | 'idle' | 'listed' | 'lapsed' {
    const { state, home } = this.sessions.get(id)!;
    if (state !== 'lapsed' || home < 0) return state;
    const isListed = this.#protectedRow(home).some((use) => use.kind === 'session' && use.id === id);
    return isListed ? 'listed' : 'lapsed';
  }

  #protectedRow(slot: number): readonly Use[] {
    const row = this.#rows[slot]!;
    const first = row.findIndex((use) => use.kind === 'session' && this.sessions.get(use.id)!.state === 'idle');
    return first < 0 ? [] : row.slice(first);
  }

  /** A turn begins: its tokens are in use where it runs; elsewhere what it held alone stays as no session's. */
  #pullOut({ id, home, tokens, shared }: TwinSession, to: number): void {
    if (home < 0) return;
    const row = this.#rows[home]!;
    const at = row.findIndex((use) => use.kind === 'session' && use.id === id);
    if (at < 0) return;
    if (home === to) row.splice(at, 1);
    else row[at] = { kind: 'other', tokens: tokens - shared };
  }
}
