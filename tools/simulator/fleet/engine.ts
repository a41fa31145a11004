import { KvBlocks } from './kv-blocks.js';
import type { TierSettings } from './kv-tiers.js';
import type { StepTime, StepWork } from './step-time.js';

/** Size and limits of one engine. */
export interface EngineLimits {
  /** Tokens of one KV block. */
  readonly blockTokens: number;
  /** KV blocks. */
  readonly blocks: number;
  /** Most tokens in one step. */
  readonly maxBatchedTokens: number;
  /** Most sequences that run at once. */
  readonly maxSequences: number;
  /** Most prompt tokens of one sequence in a step. */
  readonly longPrefillTokens: number;
  /** Tiers below the GPU, nearest first; absent = none. */
  readonly tiers?: readonly TierSettings[];
}

/** Milliseconds after which an engine that only waits for its tiers looks whether there is more to do. */
const LOAD_SLICE_MS = 10;

/** Work of one request on an engine. */
export interface EngineRequest {
  readonly promptTokens: number;
  /** At least 1. */
  readonly outputTokens: number;
  /** Contents of the full blocks of prompt and output, first to last. */
  readonly chain: Int32Array;
}

/** A request inside an engine. */
export class Sequence<Request extends EngineRequest = EngineRequest> {
  readonly request: Request;
  /** Tokens whose KV entries stand in the cache. */
  computed = 0;
  generated = 0;
  /** Prompt tokens that the first schedule found in the cache; -1 = not scheduled yet. */
  cachedTokens = -1;
  /** Tokens of these that a tier below the GPU returns, and the milliseconds that are left until it has. */
  loadedTokens = 0;
  loadMs = 0;
  /** Tokens that the current step computes. */
  scheduled = 0;
  readonly blocks: Int32Array;
  held = 0;
  /** Blocks whose contents the cache knows. */
  filled = 0;
  preemptions = 0;

  constructor(request: Request, blockTokens: number) {
    this.request = request;
    this.blocks = new Int32Array(Math.ceil((request.promptTokens + request.outputTokens) / blockTokens));
  }
}

/** Hears the steps of the sequences. All calls come from `endStep`, in the order of the batch. */
export interface EngineListener<Request extends EngineRequest> {
  /** Called for every generated token, the first and the last one included. */
  token(sequence: Sequence<Request>): void;
  finished(sequence: Sequence<Request>): void;
}

/**
 * One engine, step by step, with the scheduling of vLLM v1: running sequences first and in their order, prompts in
 * pieces under a common budget of tokens, the last running sequence is preempted when blocks run out and begins again,
 * waiting sequences join in their order while budget, places and blocks last. It has no clock: `beginStep` returns the
 * duration of a step, `endStep` ends it.
 */
export class Engine<Request extends EngineRequest = EngineRequest> {
  readonly limits: EngineLimits;
  readonly kv: KvBlocks;
  /** Factor on the speed of every step. */
  speed = 1;
  preemptions = 0;
  steps = 0;
  readonly #stepTime: StepTime;
  readonly #waiting: Sequence<Request>[] = [];
  readonly #running: Sequence<Request>[] = [];
  /** Sequences that wait for a tier, in the order in which it serves them. */
  readonly #loading: Sequence<Request>[] = [];
  /** Milliseconds of the step that is under way, without noise. */
  #stepMs = 0;
  readonly #work: StepWork = {
    tokens: 0,
    prefillTokens: 0,
    prefillPairs: 0,
    decodes: 0,
    decodeContext: 0,
    rows: 0,
  };

  /** @param contents one more than the largest content id of any request */
  constructor(limits: EngineLimits, stepTime: StepTime, contents: number) {
    this.limits = limits;
    this.#stepTime = stepTime;
    this.kv = new KvBlocks(limits.blocks, contents, limits.tiers);
  }

  /** Waiting sequences, as vLLM counts them: with those that wait for a tier. */
  get waiting(): number {
    return this.#waiting.length + this.#loading.length;
  }

  get running(): number {
    return this.#running.length;
  }

  /** @returns undefined when the request can never fit into the KV cache */
  submit(request: Request): Sequence<Request> | undefined {
    const sequence = new Sequence(request, this.limits.blockTokens);
    if (sequence.blocks.length > this.limits.blocks) return undefined;
    this.#waiting.push(sequence);
    return sequence;
  }

  /** Removes a sequence in any state; a step under way continues without it. Not from a listener. */
  abort(sequence: Sequence<Request>): void {
    for (const row of [this.#waiting, this.#loading, this.#running]) {
      const at = row.indexOf(sequence);
      if (at >= 0) row.splice(at, 1);
    }
    this.#release(sequence);
  }

  /** Drops all sequences and the cache. @returns the sequences that were lost */
  crash(): readonly Sequence<Request>[] {
    const lost = [...this.#running.splice(0), ...this.#loading.splice(0), ...this.#waiting.splice(0)];
    for (const sequence of lost) this.#release(sequence);
    this.kv.clear();
    return lost;
  }

  /** Schedules a step. @returns its milliseconds, 0 = no step was needed */
  beginStep(): number {
    const work = this.#work;
    work.tokens = work.prefillTokens = work.prefillPairs = work.decodes = work.decodeContext = work.rows = 0;
    const before = this.preemptions;
    const left = this.#continueRunning(this.limits.maxBatchedTokens);
    if (this.preemptions === before) this.#admitWaiting(left);
    this.#stepMs = work.tokens === 0 ? this.#idleMs() : this.#stepTime(work) / this.speed;
    if (work.tokens > 0) this.steps++;
    return this.#stepMs;
  }

  /** Milliseconds of a step that computes nothing, 0 = none is needed. */
  #idleMs(): number {
    const [first] = this.#loading;
    return first === undefined ? 0 : Math.min(LOAD_SLICE_MS, first.loadMs);
  }

  /** @returns what is left of the budget */
  #continueRunning(budget: number): number {
    const running = this.#running;
    let left = budget;
    for (let i = 0; i < running.length; i++) {
      const sequence = running[i]!;
      const tokens = Math.min(this.#missing(sequence), left, this.limits.longPrefillTokens);
      sequence.scheduled = 0;
      if (tokens === 0) continue;
      if (!this.#makeRoom(sequence, tokens)) break;
      this.#schedule(sequence, tokens);
      left -= tokens;
    }
    return left;
  }

  /** Tokens whose KV entries are not computed yet. */
  #missing(sequence: Sequence<Request>): number {
    return sequence.request.promptTokens + sequence.generated - sequence.computed;
  }

  /**
   * Makes room for `tokens` more tokens, if need be with blocks of the last running sequences.
   * @returns false when it was itself the last
   */
  #makeRoom(sequence: Sequence<Request>, tokens: number): boolean {
    const wanted = Math.ceil((sequence.computed + tokens) / this.limits.blockTokens) - sequence.held;
    while (this.kv.free < wanted) {
      const victim = this.#running.pop()!;
      this.#preempt(victim);
      if (victim === sequence) return false;
    }
    for (let i = 0; i < wanted; i++) sequence.blocks[sequence.held++] = this.kv.take();
    return true;
  }

  #preempt(sequence: Sequence<Request>): void {
    this.#release(sequence);
    sequence.preemptions++;
    this.preemptions++;
    this.#waiting.unshift(sequence);
  }

  /** Blocks go back last first, so that the end of a prompt is forgotten before its beginning. */
  #release(sequence: Sequence<Request>): void {
    while (sequence.held > 0) this.kv.release(sequence.blocks[--sequence.held]!);
    sequence.computed = 0;
    sequence.scheduled = 0;
    sequence.filled = 0;
  }

  #admitWaiting(budget: number): void {
    let left = budget;
    while (left > 0 && this.#waiting.length > 0 && this.#places > 0) {
      const sequence = this.#waiting[0]!;
      if (this.#tryLoad(sequence)) continue;
      const tokens = this.#tryAdmit(sequence, left);
      if (tokens === 0) return;
      this.#waiting.shift();
      this.#running.push(sequence);
      this.#schedule(sequence, tokens);
      left -= tokens;
    }
  }

  /** Sequences that may still join those that run. */
  get #places(): number {
    return this.limits.maxSequences - this.#running.length - this.#loading.length;
  }

  /**
   * Lets tiers return what they have of the prompt: its blocks are taken, and it runs when they are there.
   * @returns false when they have nothing of it, or there is no room
   */
  #tryLoad(sequence: Sequence<Request>): boolean {
    const { blockTokens, tiers = [] } = this.limits;
    if (tiers.length === 0) return false;
    const { promptTokens, chain } = sequence.request;
    const most = Math.floor((promptTokens + sequence.generated - 1) / blockTokens);
    const run = this.kv.reachableRun(chain, most);
    const missing = Array.from({ length: run }, (_, i) => i).filter((i) => !this.kv.holds(chain[i]!));
    if (missing.length === 0 || missing.length + this.kv.unusedOf(chain, run) > this.kv.free) return false;
    sequence.loadMs = missing.reduce((sum, i) => sum + this.kv.loadMs(chain[i]!), 0);
    // Those that are cached first: a free block that is taken could be one of them.
    for (let i = 0; i < run; i++) if (this.kv.holds(chain[i]!)) sequence.blocks[i] = this.kv.share(chain[i]!);
    for (const i of missing) sequence.blocks[i] = this.kv.take();
    sequence.held = run;
    if (sequence.cachedTokens < 0) {
      sequence.cachedTokens = Math.min(run * blockTokens, promptTokens);
      sequence.loadedTokens = missing.length * blockTokens;
    }
    this.#waiting.shift();
    this.#loading.push(sequence);
    return true;
  }

  /** Tiers serve one sequence after the other while a step of `ms` goes on. */
  #load(ms: number): void {
    let left = ms;
    for (let first = this.#loading[0]; first !== undefined; first = this.#loading[0]) {
      first.loadMs -= left;
      // A rest that rounding leaves is none.
      if (first.loadMs > 1e-9) return;
      left = -first.loadMs;
      this.#loading.shift();
      first.computed = first.held * this.limits.blockTokens;
      this.#fill(first, first.computed);
      this.#running.push(first);
    }
  }

  /** Pin what is cached of the prompt and take blocks for the next piece. @returns tokens of that piece, 0 = no room */
  #tryAdmit(sequence: Sequence<Request>, budget: number): number {
    const { blockTokens, longPrefillTokens } = this.limits;
    const { promptTokens, chain } = sequence.request;
    const total = promptTokens + sequence.generated;
    // The last token is always computed: its output is wanted.
    const hit = this.kv.cachedRun(chain, Math.floor((total - 1) / blockTokens));
    const tokens = Math.min(total - hit * blockTokens, budget, longPrefillTokens);
    const fresh = Math.ceil((hit * blockTokens + tokens) / blockTokens) - hit;
    if (fresh + this.kv.unusedOf(chain, hit) > this.kv.free) return 0;
    for (let i = 0; i < hit; i++) sequence.blocks[i] = this.kv.share(chain[i]!);
    for (let i = hit; i < hit + fresh; i++) sequence.blocks[i] = this.kv.take();
    sequence.held = hit + fresh;
    sequence.filled = hit;
    sequence.computed = hit * blockTokens;
    if (sequence.cachedTokens < 0) sequence.cachedTokens = Math.min(sequence.computed, promptTokens);
    return tokens;
  }

  #schedule(sequence: Sequence<Request>, tokens: number): void {
    const work = this.#work;
    const context = sequence.computed;
    sequence.scheduled = tokens;
    work.tokens += tokens;
    if (tokens === 1 && sequence.generated > 0 && this.#missing(sequence) === 1) {
      work.decodes++;
      work.decodeContext += context;
      work.rows++;
    } else {
      work.prefillTokens += tokens;
      work.prefillPairs += tokens * (context + tokens / 2);
      if (tokens === this.#missing(sequence)) work.rows++;
    }
    this.#fill(sequence, context + tokens);
  }

  /** Blocks that the step fills can be shared from the moment it is scheduled, as in vLLM. */
  #fill(sequence: Sequence<Request>, tokens: number): void {
    const { chain } = sequence.request;
    const full = Math.min(Math.floor(tokens / this.limits.blockTokens), chain.length);
    for (; sequence.filled < full; sequence.filled++) {
      const at = sequence.filled;
      this.kv.fill(sequence.blocks[at]!, chain[at]!, at === 0 ? -1 : chain[at - 1]!);
    }
  }

  /** Ends the step: tokens come out, sequences end. */
  endStep(listener: EngineListener<Request>): void {
    const running = this.#running;
    let kept = 0;
    const done: Sequence<Request>[] = [];
    for (const sequence of running) {
      sequence.computed += sequence.scheduled;
      const produced = sequence.scheduled > 0 && this.#missing(sequence) === 0;
      sequence.scheduled = 0;
      if (produced) sequence.generated++;
      if (produced && sequence.generated === sequence.request.outputTokens) done.push(sequence);
      else running[kept++] = sequence;
      if (produced) listener.token(sequence);
    }
    running.length = kept;
    for (const sequence of done) {
      this.#release(sequence);
      listener.finished(sequence);
    }
    this.#load(this.#stepMs);
  }
}
