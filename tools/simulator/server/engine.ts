import { seededRandom } from '../../../src/runtime/seeded-random.js';
import { HARDWARE } from '../fleet/hardware.js';
import { fittedStepTime, type StepConstants, type StepTime } from '../fleet/step-time.js';
import { BlockCache } from './block-cache.js';
import { BLOCK_BYTES, BLOCK_TOKENS, blockHash, chainHashes, chainRoot, TOKEN_BYTES } from './block-hash.js';

/** Properties of a simulated engine: its hardware, its memory, its scheduler's limits. */
export interface EngineOptions {
  /** Step time, as in the simulated fleet. */
  readonly constants: StepConstants;
  /** Factor by which the engine is faster. */
  readonly speedup: number;
  /** Relative noise of a step's time, uniform in ±noise, drawn from the seeded generator. */
  readonly noise: number;
  /** KV memory in blocks of 16 tokens. */
  readonly blocks: number;
  /** Sequences in the running batch (vLLM: max_num_seqs). */
  readonly maxRunning: number;
  /** Requests that may wait; more are refused. */
  readonly maxWaiting: number;
  /** Tokens computed in one step (vLLM: max_num_batched_tokens). */
  readonly maxStepTokens: number;
  readonly seed: number;
}

/** An engine of this name in HARDWARE, with vLLM's serving defaults. */
export function engineOf(hardware: string): EngineOptions {
  const { constants, kvTokens, maxBatchedTokens } = HARDWARE[hardware]!;
  return {
    constants,
    speedup: 1,
    noise: 0.03,
    blocks: Math.floor(kvTokens / BLOCK_TOKENS),
    maxRunning: 256,
    maxWaiting: 4_096,
    maxStepTokens: maxBatchedTokens,
    seed: 1,
  };
}

/** An 8B model on an H100. */
export const DEFAULT_ENGINE: EngineOptions = engineOf('llama-8b-h100');

export type FinishReason = 'stop' | 'length';

/** Work of one request on an engine. */
export interface SequenceRequest {
  readonly model: string;
  readonly prompt: Uint8Array;
  /** Requests with different salts share no cached block. */
  readonly salt: string;
  readonly outputTokens: number;
  readonly finishReason: FinishReason;
}

/** Hears the steps of a sequence; called from `Engine.complete`. */
export interface SequenceListener {
  token(text: string, sequence: Sequence): void;
  finished(sequence: Sequence): void;
}

/** One request inside the engine. Times are milliseconds of the engine's clock. */
export interface Sequence {
  readonly request: SequenceRequest;
  readonly listener: SequenceListener;
  readonly promptTokens: number;
  readonly arrivedAt: number;
  startedAt: number;
  firstTokenAt: number;
  lastTokenAt: number;
  /** Prompt tokens that were cached when the sequence started. */
  cachedTokens: number;
  generatedTokens: number;
  state: 'waiting' | 'running' | 'finished' | 'aborted';
}

/** The engine's own book-keeping of a sequence. */
interface Slot extends Sequence {
  /** The prompt, then the output as it is generated. */
  readonly text: Buffer;
  readonly totalBlocks: number;
  computedTokens: number;
  /** Hashes of the prompt's whole blocks before the start; of all filled blocks once it runs. */
  promptHashes: number[];
  filled: number[];
  chain: number;
}

interface Part {
  readonly slot: Slot;
  readonly tokens: number;
}

/** One step under way: tokens by sequence, and its duration. */
export interface Step {
  readonly milliseconds: number;
  readonly prefillTokens: number;
  readonly decodeSequences: number;
  readonly parts: readonly Part[];
}

/** Totals since the start; tokens unless said otherwise. */
export interface EngineTotals {
  prompt: number;
  generated: number;
  prefixQueries: number;
  prefixHits: number;
  finishedByStop: number;
  finishedByLength: number;
  aborted: number;
}

/** Four-byte words: one token each, so that the simulated tokenizer cuts the answer as the engine generated it. */
const VOCABULARY = [
  ' and',
  ' the',
  ' for',
  ' you',
  ' can',
  ' not',
  ' all',
  ' one',
  ' has',
  ' was',
  ' but',
  ' out',
  ' new',
  ' way',
  ' see',
  ' two',
];

/**
 * A continuous-batching engine without a clock of its own: `schedule` forms the next step and says how long it takes,
 * `complete` applies it. First come, first served; running sequences go on before waiting ones start. Prompts are
 * computed in chunks under the step's token budget. A sequence starts only when all blocks that it can ever need are
 * free (so there is no preemption), and until then those behind it wait.
 */
export class Engine {
  readonly cache: BlockCache;
  readonly totals: EngineTotals = {
    prompt: 0,
    generated: 0,
    prefixQueries: 0,
    prefixHits: 0,
    finishedByStop: 0,
    finishedByLength: 0,
    aborted: 0,
  };
  /** Factor on the time of every step from now on, as of a throttled GPU. */
  slowdown = 1;
  readonly #options: EngineOptions;
  readonly #stepTime: StepTime;
  readonly #random: () => number;
  #waiting: Slot[] = [];
  #leftWaiting = 0;
  /** Called when a step has been formed, or none was left to form. */
  formed: () => void = () => {};
  #running: Slot[] = [];

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#stepTime = fittedStepTime(options.constants);
    this.#random = seededRandom(options.seed);
    this.cache = new BlockCache(options.blocks);
  }

  get waiting(): readonly Sequence[] {
    return this.#waiting;
  }

  /** Sequences that the last step left waiting, without later ones, as in vLLM's gauge. */
  get leftWaiting(): number {
    return Math.min(this.#leftWaiting, this.#waiting.length);
  }

  get running(): readonly Sequence[] {
    return this.#running;
  }

  /** Returns whether the queue is full. */
  get full(): boolean {
    return this.#waiting.length >= this.#options.maxWaiting;
  }

  /** Returns whether the request fits into the empty memory. */
  fits(promptBytes: number, outputTokens: number): boolean {
    return blocksOf(promptBytes, outputTokens) <= this.#options.blocks;
  }

  /** Queue a request at `now`. The caller has asked `full` and `fits`. */
  submit(request: SequenceRequest, listener: SequenceListener, now: number): Sequence {
    const text = Buffer.alloc(request.prompt.length + request.outputTokens * TOKEN_BYTES);
    text.set(request.prompt);
    const slot: Slot = {
      request,
      listener,
      promptTokens: Math.max(1, Math.ceil(request.prompt.length / TOKEN_BYTES)),
      arrivedAt: now,
      startedAt: 0,
      firstTokenAt: 0,
      lastTokenAt: 0,
      cachedTokens: 0,
      generatedTokens: 0,
      state: 'waiting',
      text,
      totalBlocks: blocksOf(request.prompt.length, request.outputTokens),
      computedTokens: 0,
      promptHashes: chainHashes(request.salt, request.prompt),
      filled: [],
      chain: 0,
    };
    this.#waiting.push(slot);
    return slot;
  }

  /** Drops the sequence of a client that has left, and frees its blocks. Harmless when it has ended. */
  abort(sequence: Sequence): void {
    if (sequence.state === 'waiting') this.#waiting = this.#waiting.filter((slot) => slot !== sequence);
    else if (sequence.state === 'running') this.#leave(sequence as Slot);
    else return;
    sequence.state = 'aborted';
    this.totals.aborted++;
  }

  /** Form the next step at `now`; undefined when there is nothing to do. */
  schedule(now: number): Step | undefined {
    let budget = this.#options.maxStepTokens;
    const parts: Part[] = [];
    const work = { tokens: 0, prefillTokens: 0, prefillPairs: 0, decodes: 0, decodeContext: 0, rows: 0 };
    const give = (slot: Slot) => {
      const missing = slot.promptTokens - slot.computedTokens;
      const tokens = Math.min(missing > 0 ? missing : 1, budget);
      if (tokens === 0) return;
      budget -= tokens;
      work.tokens += tokens;
      if (missing > 0) {
        work.prefillTokens += tokens;
        work.prefillPairs += tokens * (slot.computedTokens + tokens / 2);
      } else {
        work.decodes++;
        work.decodeContext += slot.computedTokens;
      }
      if (tokens >= missing) work.rows++;
      parts.push({ slot, tokens });
    };
    for (const slot of this.#running) give(slot);
    while (budget > 0 && this.#start(now)) give(this.#running.at(-1)!);
    this.#leftWaiting = this.#waiting.length;
    this.formed();
    if (parts.length === 0) return undefined;
    const { speedup, noise } = this.#options;
    const exact = (this.#stepTime(work) / speedup) * this.slowdown;
    return {
      milliseconds: exact * (1 + noise * (2 * this.#random() - 1)),
      prefillTokens: work.prefillTokens,
      decodeSequences: work.decodes,
      parts,
    };
  }

  /** Applies a step that ended at `now`: fills blocks, emits tokens, finishes sequences. */
  complete(step: Step, now: number): void {
    for (const { slot, tokens } of step.parts) {
      if (slot.state !== 'running') continue;
      slot.computedTokens += tokens;
      this.#fillBlocks(slot);
      if (slot.computedTokens >= slot.promptTokens) this.#emit(slot, now);
    }
  }

  /** Moves the first waiting sequence into the batch; false when it must wait or none waits. */
  #start(now: number): boolean {
    const slot = this.#waiting[0];
    if (slot === undefined || this.#running.length >= this.#options.maxRunning) return false;
    // At least one prompt token is always computed: the first output token needs its logits.
    const usable = Math.floor((slot.promptTokens - 1) / BLOCK_TOKENS);
    const matched = Math.min(this.cache.match(slot.promptHashes), usable);
    if (!this.cache.take(slot.promptHashes, matched, slot.totalBlocks)) return false;
    this.#waiting.shift();
    slot.state = 'running';
    slot.startedAt = now;
    slot.filled = slot.promptHashes.slice(0, matched);
    slot.chain = matched > 0 ? slot.promptHashes[matched - 1]! : chainRoot(slot.request.salt);
    slot.cachedTokens = matched * BLOCK_TOKENS;
    slot.computedTokens = slot.cachedTokens;
    this.#running.push(slot);
    this.totals.prompt += slot.promptTokens;
    this.totals.prefixQueries += slot.promptTokens;
    this.totals.prefixHits += slot.cachedTokens;
    return true;
  }

  #fillBlocks(slot: Slot): void {
    const known = slot.request.prompt.length + slot.generatedTokens * TOKEN_BYTES;
    const bytes = Math.min(slot.computedTokens * TOKEN_BYTES, known);
    const whole = Math.min(Math.floor(bytes / BLOCK_BYTES), slot.totalBlocks);
    while (slot.filled.length < whole) {
      slot.chain = blockHash(slot.chain, slot.text, slot.filled.length * BLOCK_BYTES);
      this.cache.fill(slot.chain);
      slot.filled.push(slot.chain);
    }
  }

  #emit(slot: Slot, now: number): void {
    const token = VOCABULARY[Math.floor(this.#random() * VOCABULARY.length)]!;
    slot.text.write(token, slot.request.prompt.length + slot.generatedTokens * TOKEN_BYTES, 'latin1');
    slot.generatedTokens++;
    slot.lastTokenAt = now;
    if (slot.generatedTokens === 1) slot.firstTokenAt = now;
    this.totals.generated++;
    const last = slot.generatedTokens === slot.request.outputTokens;
    if (last) {
      this.#leave(slot);
      slot.state = 'finished';
      if (slot.request.finishReason === 'stop') this.totals.finishedByStop++;
      else this.totals.finishedByLength++;
    }
    slot.listener.token(token, slot);
    if (last) slot.listener.finished(slot);
  }

  #leave(slot: Slot): void {
    this.#running = this.#running.filter((other) => other !== slot);
    this.cache.release(slot.filled, slot.totalBlocks - slot.filled.length);
  }
}

function blocksOf(promptBytes: number, outputTokens: number): number {
  return Math.max(1, Math.ceil((promptBytes + outputTokens * TOKEN_BYTES) / BLOCK_BYTES));
}
