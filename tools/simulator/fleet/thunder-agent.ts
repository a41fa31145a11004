import type { AdmissionRule, AdmissionRuleContext, MakeAdmissionRule, NamedTurn, Placed } from './admission-rule.js';

/** Interval of its scheduler, tokens that it keeps free for each program, and its longest wait: its defaults. */
const CHECK_MS = 5_000;
const BUFFER_TOKENS = 100;
const WAIT_MS_MAX = 1_800_000;
const NOWHERE = -1;

/** A session in its words: reasoning while a turn is in flight or held, acting between turns. */
interface Program {
  prompt: number;
  /** Prompt and output of the latest turn. */
  tokens: number;
  /** Its endpoint while it is active, NOWHERE while it is paused. */
  slot: number;
  acting: boolean;
  /** Whether it is paused when its turn ends. */
  marked: boolean;
  turns: number;
  /** A held turn. */
  placed: Placed | undefined;
}

/**
 * ThunderAgent's rule (arXiv 2602.13692) as its repository runs it by default: a ledger that counts active programs,
 * acting ones in full; every 5 s paused programs are resumed, largest first onto the endpoint with most room, and
 * programs of endpoints that are too full are paused, smallest acting ones first.
 * @param releases whether clients tell the end of a program
 */
export function thunderAgent(releases: boolean): MakeAdmissionRule {
  return (context) => new ThunderAgent(context, releases);
}

class ThunderAgent implements AdmissionRule {
  readonly #context: AdmissionRuleContext;
  readonly #releases: boolean;
  readonly #programs = new Map<number, Program>();
  /** Paused programs, in the order in which they were paused. */
  readonly #paused = new Set<Program>();
  readonly #used: number[];
  /** Tokens of programs with a turn in flight beyond what is in use, by slot, as of the latest look. */
  readonly #shared: number[];
  #live: ReadonlySet<number> = new Set();

  constructor(context: AdmissionRuleContext, releases: boolean) {
    this.#context = context;
    this.#releases = releases;
    this.#used = context.capacities.map(() => 0);
    this.#shared = context.capacities.map(() => 0);
    this.#tick();
  }

  ask({ session, promptTokens }: NamedTurn, placed: Placed): void {
    const known = this.#programs.get(session);
    const program = known ?? newProgram();
    this.#programs.set(session, program);
    program.turns++;
    program.acting = false;
    program.prompt = promptTokens;
    program.tokens = promptTokens;
    if (known === undefined) program.slot = this.#paused.size === 0 ? this.#emptiestFor(promptTokens) : NOWHERE;
    if (program.slot !== NOWHERE && this.#live.has(program.slot)) placed([program.slot]);
    else this.#hold(program, placed);
  }

  #hold(program: Program, placed: Placed): void {
    program.placed = placed;
    program.slot = NOWHERE;
    this.#paused.add(program);
    this.#context.clock.after(WAIT_MS_MAX, () => {
      if (program.placed === placed) this.#resume(program, this.#fewestPrograms());
    });
  }

  leave(session: number): void {
    const program = this.#programs.get(session);
    if (program === undefined) return;
    program.placed = undefined;
    program.acting = true;
  }

  sent(session: number, slot: number): void {
    const program = this.#programs.get(session);
    if (program !== undefined) program.slot = slot;
  }

  grown(session: number, outputTokens: number): void {
    const program = this.#programs.get(session);
    if (program !== undefined) program.tokens = program.prompt + outputTokens;
  }

  ended(session: number, outputTokens: number, last: boolean): void {
    const program = this.#programs.get(session);
    if (program === undefined) return;
    program.tokens = program.prompt + outputTokens;
    program.acting = true;
    if (last && this.#releases) this.#programs.delete(session);
    else if (program.marked) this.#pause(program);
  }

  sampled(slot: number, usedTokens: number): void {
    this.#used[slot] = usedTokens;
  }

  endpointsChanged(live: ReadonlySet<number>): void {
    this.#live = live;
  }

  #tick(): void {
    this.#context.clock.after(CHECK_MS, () => {
      for (const slot of this.#live) this.#shared[slot] = Math.max(0, this.#reasoning(slot) - this.#used[slot]!);
      this.#resumeGreedily();
      for (const slot of this.#live) this.#pauseUntilSafe(slot);
      this.#tick();
    });
  }

  #on(slot: number): Program[] {
    return [...this.#programs.values()].filter((program) => program.slot === slot);
  }

  #reasoning(slot: number): number {
    return sumOf(this.#on(slot).filter(({ acting }) => !acting));
  }

  /** Programs that are marked leave soon: their tokens no longer count. */
  #room(slot: number): number {
    const programs = this.#on(slot);
    const leaving = sumOf(programs.filter(({ marked }) => marked));
    const needed = sumOf(programs) - this.#shared[slot]! + BUFFER_TOKENS * programs.length - leaving;
    return this.#context.capacities[slot]! - needed;
  }

  /** The endpoint with room whose active programs have the fewest tokens, NOWHERE when none has room. */
  #emptiestFor(tokens: number): number {
    const open = [...this.#live].filter((slot) => this.#room(slot) >= tokens + BUFFER_TOKENS);
    return least(open, (slot) => sumOf(this.#on(slot))) ?? NOWHERE;
  }

  #fewestPrograms(): number {
    return least([...this.#live], (slot) => this.#on(slot).length) ?? 0;
  }

  #pause(program: Program): void {
    program.marked = false;
    program.slot = NOWHERE;
    this.#paused.add(program);
  }

  #pauseUntilSafe(slot: number): void {
    while (this.#room(slot) < 0) {
      const programs = this.#on(slot).sort((a, b) => a.tokens - b.tokens);
      const acting = programs.find((program) => program.acting);
      if (acting !== undefined) {
        this.#pause(acting);
        continue;
      }
      const reasoning = programs.find(({ marked }) => !marked);
      if (reasoning === undefined) return;
      reasoning.marked = true;
    }
  }

  #resume(program: Program, slot: number): void {
    this.#paused.delete(program);
    program.slot = slot;
    const { placed } = program;
    program.placed = undefined;
    placed?.([slot]);
  }

  /** Held turns, then new programs, then acting ones, each by size; of those that fit in sum the largest first. */
  #resumeGreedily(): void {
    const rooms = [...this.#live]
      .map((slot) => ({ slot, room: this.#room(slot) }))
      .filter(({ room }) => room > BUFFER_TOKENS);
    let left = rooms.reduce((sum, { room }) => sum + room, 0);
    const chosen = [...this.#paused]
      .sort((a, b) => rank(a) - rank(b) || a.tokens - b.tokens)
      .filter(({ tokens }) => {
        const fits = tokens + BUFFER_TOKENS <= left;
        if (fits) left -= tokens + BUFFER_TOKENS;
        return fits;
      });
    for (const program of chosen.sort((a, b) => b.tokens - a.tokens)) {
      rooms.sort((a, b) => b.room - a.room);
      const [widest] = rooms;
      if (widest === undefined || program.tokens + BUFFER_TOKENS > widest.room) continue;
      widest.room -= program.tokens + BUFFER_TOKENS;
      this.#resume(program, widest.slot);
    }
  }
}

function newProgram(): Program {
  return { prompt: 0, tokens: 0, slot: NOWHERE, acting: false, marked: false, turns: 0, placed: undefined };
}

function rank({ turns, placed }: Program): number {
  if (turns === 1) return 1;
  return placed === undefined ? 2 : 0;
}

function sumOf(programs: readonly Program[]): number {
  return programs.reduce((sum, { tokens }) => sum + tokens, 0);
}

function least(slots: readonly number[], cost: (slot: number) => number): number | undefined {
  let best: number | undefined;
  for (const slot of slots) if (best === undefined || cost(slot) < cost(best)) best = slot;
  return best;
}
