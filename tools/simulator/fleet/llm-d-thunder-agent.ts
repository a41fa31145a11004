import type { AdmissionRule, AdmissionRuleContext, NamedTurn, Placed } from './admission-rule.js';

/** Its default lease, and the longest wait of its own measurements. */
const LEASE_MS = 30_000;
const WAIT_MS_MAX = 1_800_000;
const NOWHERE = -1;

interface Held {
  readonly placed: Placed;
  readonly sinceMs: number;
}

interface NamedSession {
  /** Prompt and output of its latest turn. */
  tokens: number;
  prompt: number;
  /** Endpoint that it is bound to, NOWHERE = it was never admitted. */
  slot: number;
  paused: boolean;
  running: boolean;
  /** Milliseconds at which its latest answer ended. */
  endedMs: number;
  held: Held | undefined;
}

/**
 * The rule of llm-d-router's plugin `thunder-agent` (llm-d-router#2964) with its defaults, every session a flow of its
 * own: an endpoint is full when the sessions on it, idle ones too, have as many tokens as its cache. Sessions idle for
 * more than the lease give up their room for a turn that needs it, longest idle first; their next turn waits for room
 * on their own endpoint, and goes before new sessions.
 */
export function llmDThunderAgent(context: AdmissionRuleContext): AdmissionRule {
  return new LlmDThunderAgent(context);
}

class LlmDThunderAgent implements AdmissionRule {
  readonly #context: AdmissionRuleContext;
  readonly #sessions = new Map<number, NamedSession>();
  readonly #held = new Set<NamedSession>();
  #live: ReadonlySet<number> = new Set();
  #looking = false;

  constructor(context: AdmissionRuleContext) {
    this.#context = context;
  }

  ask({ session: id, promptTokens }: NamedTurn, placed: Placed): void {
    const session = this.#sessions.get(id) ?? newSession();
    this.#sessions.set(id, session);
    session.prompt = promptTokens;
    session.held = { placed, sinceMs: this.#context.clock.nowMs };
    this.#held.add(session);
    this.#look();
    if (session.held !== undefined) this.#context.clock.after(WAIT_MS_MAX, () => this.#look());
  }

  leave(id: number): void {
    const session = this.#sessions.get(id);
    if (session === undefined) return;
    session.held = undefined;
    this.#held.delete(session);
  }

  sent(id: number, slot: number): void {
    const session = this.#sessions.get(id);
    if (session === undefined) return;
    session.slot = slot;
    session.paused = false;
    session.running = true;
    session.tokens = Math.max(session.tokens, session.prompt);
  }

  grown(): void {}

  ended(id: number, outputTokens: number): void {
    const session = this.#sessions.get(id);
    if (session === undefined) return;
    session.running = false;
    session.tokens = session.prompt + outputTokens;
    session.endedMs = this.#context.clock.nowMs;
    this.#context.clock.after(LEASE_MS, () => this.#look());
    this.#look();
  }

  sampled(): void {}

  endpointsChanged(live: ReadonlySet<number>): void {
    this.#live = live;
    for (const session of this.#sessions.values()) {
      if (session.slot === NOWHERE || live.has(session.slot)) continue;
      session.slot = NOWHERE;
      session.paused = false;
    }
    this.#look();
  }

  /** Lets held turns go while one fits: admitted sessions, then paused ones, then new ones, smallest first. */
  #look(): void {
    // A turn that goes on calls back into the rule.
    if (this.#looking) return;
    this.#looking = true;
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const { placed } = next.session.held!;
      next.session.held = undefined;
      this.#held.delete(next.session);
      placed(next.slots);
    }
    this.#looking = false;
  }

  #next(): { readonly session: NamedSession; readonly slots: readonly number[] } | undefined {
    const { nowMs } = this.#context.clock;
    const waiting = [...this.#held].sort(
      (a, b) => rank(a) - rank(b) || a.prompt - b.prompt || a.held!.sinceMs - b.held!.sinceMs,
    );
    const late = waiting.find(({ held }) => nowMs - held!.sinceMs >= WAIT_MS_MAX);
    if (late !== undefined) return { session: late, slots: late.slot === NOWHERE ? [...this.#live] : [late.slot] };
    for (const session of waiting) {
      const slots = this.#placesOf(session);
      if (slots.length > 0) return { session, slots };
    }
    return undefined;
  }

  /** Endpoints on which a held turn may go on now; makes room there if that is needed. */
  #placesOf(session: NamedSession): readonly number[] {
    const { slot, prompt } = session;
    if (slot !== NOWHERE && !session.paused) {
      const grown = Math.max(0, prompt - session.tokens);
      this.#makeRoom(slot, grown, session);
      return [slot];
    }
    if (slot !== NOWHERE) return this.#makeRoom(slot, prompt, session) ? [slot] : [];
    const free = [...this.#live].filter((candidate) => this.#room(candidate) >= prompt);
    if (free.length > 0) return free;
    const made = [...this.#live].find((candidate) => this.#makeRoom(candidate, prompt, session));
    return made === undefined ? [] : [made];
  }

  #on(slot: number): NamedSession[] {
    return [...this.#sessions.values()].filter((session) => session.slot === slot && !session.paused);
  }

  #room(slot: number): number {
    return this.#context.capacities[slot]! - this.#on(slot).reduce((sum, { tokens }) => sum + tokens, 0);
  }

  /** Pauses sessions whose lease is over until `need` tokens fit. @returns false, with none paused, if they do not */
  #makeRoom(slot: number, need: number, own: NamedSession): boolean {
    const { nowMs } = this.#context.clock;
    let missing = need - this.#room(slot);
    if (missing <= 0) return true;
    const over = this.#on(slot)
      .filter((session) => session !== own && !session.running && session.held === undefined)
      .filter(({ endedMs }) => nowMs - endedMs >= LEASE_MS)
      .sort((a, b) => a.endedMs - b.endedMs);
    if (over.reduce((sum, { tokens }) => sum + tokens, 0) < missing) return false;
    for (const session of over) {
      if (missing <= 0) break;
      session.paused = true;
      missing -= session.tokens;
    }
    return true;
  }
}

function newSession(): NamedSession {
  return { tokens: 0, prompt: 0, slot: NOWHERE, paused: false, running: false, endedMs: 0, held: undefined };
}

function rank({ slot, paused }: NamedSession): number {
  if (slot === NOWHERE) return 2;
  return paused ? 1 : 0;
}
