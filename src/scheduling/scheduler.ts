import type { Decider, Decision, DecisionRequest } from '../core/decider.js';
import type { Measures } from '../core/label.js';
import type { PromptTokens } from '../core/token-chain.js';
import type { EndpointDirectory } from './endpoint-directory.js';
import type {
  AnswerMeasures,
  Charge,
  LatencyPrediction,
  PickedEndpoint,
  Placement,
  PrefixSettings,
  Rejection,
  ScheduleInput,
  Scheduler,
} from './types.js';
import { NOTHING_WANTED, wantedTimes } from './wanted-times.js';

/** How many hashes of a prompt have been written for the next decision. */
interface WrittenChain {
  readonly blocks: number;
  readonly tail: boolean;
}

/** The chain hashes of a scanned prompt, written for the next decision. */
export interface PromptChain {
  chain(id: number, model: string): WrittenChain;
}

/** The chain hashes of a prompt whose tokens are known, written for the next decision. */
export interface PromptTokenChain {
  chain(tokens: PromptTokens, model: string, salt: string | undefined, blockTokens: number): WrittenChain;
}

export interface SchedulerOptions {
  readonly decider: Decider;
  readonly directory: EndpointDirectory;
  readonly prompts: PromptChain;
  /** Absent = what a tokeniser found counts, but the bytes are hashed. */
  readonly tokens?: PromptTokenChain | undefined;
  readonly prefix: PrefixSettings | undefined;
  readonly estimateOutput: { readonly ratio: number; readonly maxTokens: number | undefined } | undefined;
  /** Request headers whose values the programs look at, in lower case. */
  readonly requestKeys?: readonly string[];
  /** Model names that are no LoRA adapters. */
  readonly baseModels?: ReadonlySet<string>;
  /** Tokens of one block. */
  readonly blockTokens: number;
  readonly emitScores: boolean;
  readonly nowMs: () => number;
  /** A charge could not be released because a dead thread holds the lock: try `again` soon. */
  readonly later: (again: () => boolean) => void;
  /** Read what requests want from their headers: something predicts latency. */
  readonly predicts?: boolean | undefined;
  /** An endpoint was ejected. */
  readonly ejected: (endpoint: PickedEndpoint) => void;
}

/** Bytes that stand for one token, as the incumbent's estimate (token-producer, estimate mode). */
const bytesPerToken = 4;

const noEndpoints: Rejection = {
  kind: 'rejected',
  code: 'ServiceUnavailable',
  message: 'failed to find endpoint candidates for serving the request',
  reason: 'rejected-no-endpoints',
};
/** The filters left nothing; status, text and reason as the incumbent answers them. */
const filteredOut: Rejection = {
  kind: 'rejected',
  code: 'ResourceExhausted',
  message: 'no endpoints available for the given request',
  reason: 'rejected-saturated',
};
/** An admitter of the program said no; text as the incumbent's, status as all admitters here. */
const denied: Rejection = {
  kind: 'rejected',
  code: 'ResourceExhausted',
  message: 'request cannot be admitted: no valid endpoint available to serve the request',
  reason: undefined,
};
const busy: Rejection = {
  kind: 'rejected',
  code: 'ServiceUnavailable',
  message: 'the picker is repairing its state: try again',
  reason: undefined,
  retryAfterSeconds: 1,
};

/** The scheduler of a shard: one call into the core per request. */
export class CoreScheduler implements Scheduler {
  readonly #options: SchedulerOptions;

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  schedule(input: ScheduleInput): Placement | Rejection {
    const { decider, directory } = this.#options;
    const request = this.#request(input);
    const decision = decider.decide(request);
    if (decision.status === 'filtered') return filteredOut;
    if (decision.status === 'no-candidates') return noEndpoints;
    if (decision.status === 'denied') return denied;
    if (decision.status !== 'decided') return busy;
    const endpoints: PickedEndpoint[] = [];
    for (const slot of decision.slots) {
      const entry = directory.at(slot);
      if (entry !== undefined) endpoints.push(entry);
    }
    const primary = directory.at(decision.slots[0]!);
    const charge = new LedgerCharge(
      this.#options,
      primary?.slot ?? -1,
      primary?.generation ?? 0,
      decision.ticket,
      decision.ticketGeneration,
      request.blockTokens,
      request.nowMs,
    );
    if (endpoints.length === 0) {
      charge.release();
      return noEndpoints;
    }
    return {
      kind: 'placed',
      endpoints,
      charge,
      matchedBlocks: decision.matchedBlocks,
      totalBlocks: decision.totalBlocks,
      matchedTokens: Math.min(decision.matchedBlocks * request.blockTokens, request.promptTokens),
      prediction: this.#options.predicts ? predictionOf(decision, request) : undefined,
      scores: this.#options.emitScores ? this.#scores(decision.slots) : undefined,
    };
  }

  #request(input: ScheduleInput): DecisionRequest {
    const { estimateOutput, directory } = this.#options;
    const promptTokens = input.tokens?.ids.length ?? Math.ceil(input.promptBytes / bytesPerToken);
    const { blocks, tail } = this.#chain(input);
    let outputTokens = 0;
    if (estimateOutput !== undefined) {
      outputTokens = Math.min(
        Math.round(promptTokens * estimateOutput.ratio),
        input.maxOutputTokens ?? Number.MAX_SAFE_INTEGER,
        estimateOutput.maxTokens ?? Number.MAX_SAFE_INTEGER,
      );
    }
    const wanted = this.#options.predicts ? wantedTimes(input.headers) : NOTHING_WANTED;
    return {
      profile: 0,
      wantedTtftMs: wanted.ttftMs,
      wantedTpotMs: wanted.tpotMs,
      blocks,
      tail,
      blockTokens: this.#options.blockTokens,
      promptTokens,
      outputTokens,
      priority: input.priority,
      adapter: input.targetModel,
      nowMs: this.#options.nowMs(),
      subset: input.subset === undefined ? undefined : directory.resolve(input.subset),
      charged: true,
      explained: false,
      keys: this.#options.requestKeys?.map((header) => input.headers.get(header)),
      baseModel: this.#options.baseModels?.has(input.targetModel),
    };
  }

  /** Write the prompt's hashes for the decision: of its tokens where they are known, else of its bytes. */
  #chain(input: ScheduleInput): WrittenChain {
    const { prompts, tokens, prefix, blockTokens } = this.#options;
    if (input.scan < 0 || prefix === undefined) return { blocks: 0, tail: false };
    const chain =
      input.tokens === undefined || tokens === undefined
        ? prompts.chain(input.scan, input.targetModel)
        : tokens.chain(input.tokens, input.targetModel, input.cacheSalt, blockTokens);
    return {
      blocks: Math.min(chain.blocks, prefix.maxBlocks),
      tail: chain.tail && chain.blocks < prefix.maxBlocks,
    };
  }

  /** Scores of the candidates that the filters left; the picks were candidates too. */
  #scores(picks: readonly number[]): ReadonlyMap<string, number> {
    const { decider, directory } = this.#options;
    const scores = new Map<string, number>();
    for (const { slot, address } of directory.entries()) {
      if (decider.isCandidate(slot) || picks.includes(slot)) scores.set(address, decider.scoreOf(slot));
    }
    return scores;
  }
}

/** What was predicted for the first pick, and what the request wants. */
function predictionOf(decision: Decision, { wantedTtftMs = 0, wantedTpotMs = 0 }: DecisionRequest): LatencyPrediction {
  const { predictedTtftMs, predictedTpotMs } = decision;
  return {
    ttftMs: Number.isNaN(predictedTtftMs) ? undefined : predictedTtftMs,
    tpotMs: Number.isNaN(predictedTpotMs) ? undefined : predictedTpotMs,
    wantedTtftMs,
    wantedTpotMs,
  };
}

/** What one request holds in the ledger. */
class LedgerCharge implements Charge {
  readonly #options: SchedulerOptions;
  readonly #slot: number;
  readonly #slotGeneration: number;
  readonly #ticketGeneration: number;
  readonly #blockTokens: number;
  readonly #decidedAtMs: number;
  #firstOutputAtMs: number | undefined;
  #outputEvents = 0;
  #answer: AnswerMeasures | undefined;
  #ticket: number;
  #grownBlocks = 0;
  #prefilled = false;
  #reported = false;

  constructor(
    options: SchedulerOptions,
    slot: number,
    slotGeneration: number,
    ticket: number,
    ticketGeneration: number,
    blockTokens: number,
    decidedAtMs: number,
  ) {
    this.#options = options;
    this.#slot = slot;
    this.#slotGeneration = slotGeneration;
    this.#ticket = ticket;
    this.#ticketGeneration = ticketGeneration;
    this.#blockTokens = blockTokens;
    this.#decidedAtMs = decidedAtMs;
  }

  prefillDone(): void {
    if (this.#prefilled || this.#ticket === 0) return;
    this.#prefilled = true;
    const { decider, estimateOutput, nowMs } = this.#options;
    this.#firstOutputAtMs = nowMs();
    // With output counted, the estimate stays until the end (inflight-load-producer).
    decider.prefillDone(this.#ticket, this.#ticketGeneration, estimateOutput !== undefined);
  }

  grow(tokens: number): void {
    this.#outputEvents = tokens;
    const blocks = Math.floor(tokens / this.#blockTokens);
    if (blocks <= this.#grownBlocks || this.#ticket === 0) return;
    this.#grownBlocks = blocks;
    this.#options.decider.grow(this.#ticket, this.#ticketGeneration, blocks);
  }

  answered(answer: AnswerMeasures): void {
    this.#answer ??= answer;
  }

  release(): void {
    const ticket = this.#ticket;
    if (ticket === 0) return;
    this.#options.decider.label(ticket, this.#ticketGeneration, this.#measures());
    this.#ticket = 0;
    const generation = this.#ticketGeneration;
    const { decider, later } = this.#options;
    if (!decider.release(ticket, generation)) later(() => decider.release(ticket, generation));
  }

  /** What the label says. An answer in one piece tells nothing of its first token; a stream's events stand for tokens. */
  #measures(): Measures {
    const now = this.#options.nowMs();
    const answer = this.#answer;
    const first = answer?.streamed === false ? undefined : this.#firstOutputAtMs;
    const outputTokens = answer?.outputTokens ?? (this.#outputEvents > 0 ? this.#outputEvents : undefined);
    const steps = (outputTokens ?? 0) - 1;
    return {
      outcome: answer?.outcome ?? 'aborted',
      firstOutputMs: first === undefined ? undefined : first - this.#decidedAtMs,
      perTokenMs: first === undefined || steps < 1 ? undefined : (now - first) / steps,
      durationMs: now - this.#decidedAtMs,
      outputTokens,
      promptTokens: answer?.promptTokens,
      cachedTokens: answer?.cachedTokens,
    };
  }

  outcome(result: 'success' | 'failure'): void {
    if (this.#reported || this.#slot < 0) return;
    this.#reported = true;
    const { decider, nowMs, directory, ejected } = this.#options;
    const out = decider.noteOutcome(this.#slot, this.#slotGeneration, result === 'failure', nowMs());
    const endpoint = out ? directory.at(this.#slot) : undefined;
    if (endpoint !== undefined) ejected(endpoint);
  }
}
