import { endpointAddress } from '../contract/endpoint.js';
import type { EndpointColumns } from '../core/hook-columns.js';
import type { PromptTokens } from '../core/token-chain.js';
import { ChargedRuns, type RunOptions, type RunRequest } from './charged-runs.js';
import type { GatedScheduler, PickedEndpoint, Placement, Rejection, ScheduleInput, Waiting } from './decision.js';
import type { EndpointOutlook, RequestOutlook } from './latency-outlook.js';
import { noPick } from './no-pick.js';
import { estimatedOutput } from './output-estimate.js';
import { prefers } from './preferences.js';
import type { ProfileHandler, StagesUsed } from './profile-handler.js';
import { TOKEN_BYTES } from './prompt-sizes.js';
import type { RequestHeaders } from './request-headers.js';
import type { ServedPredictions } from './served-predictions.js';
import { sessionNameOf } from './session/session-id.js';
import type { TokenRatios } from './token-ratios.js';
import { wantedTimes } from './wanted-times.js';

/** Number of hashes of a prompt that have been written for the next decision. */
interface WrittenChain {
  readonly blocks: number;
  readonly tail: boolean;
}

/** Writes the chain hashes of a scanned prompt for the next decision. */
export interface PromptChain {
  chain(id: number, model: string): WrittenChain;
  /** Notes the beginning of the prompt's text beside the chain of its tokens, which has at least one block. */
  noteBeginning(id: number): void;
}

/** Writes the chain hashes of a prompt with known tokens for the next decision. */
export interface PromptTokenChain {
  chain(tokens: PromptTokens, model: string, salt: string | undefined, blockTokens: number): WrittenChain;
}

export interface SchedulerOptions extends RunOptions {
  readonly handler: ProfileHandler;
  readonly prompts: PromptChain;
  /** Absent = token counts of a tokeniser are used, but the bytes are hashed. */
  readonly tokens?: PromptTokenChain | undefined;
  /** Request headers whose values the programs read, in lower case. */
  readonly requestKeys?: readonly string[];
  /** Model names that are no LoRA adapters. */
  readonly baseModels?: ReadonlySet<string>;
  /** Tokens of one block. */
  readonly blockTokens: number;
  /** How many tokens models have in a block of text; absent = as many as the estimate counts. */
  readonly ratios?: TokenRatios | undefined;
  /** Set when prediction servers are asked: destination of their answers, and source of their input. */
  readonly served?: { readonly predictions: ServedPredictions; readonly columns: EndpointColumns } | undefined;
  /** Reports the stages of a request with a profile handler. */
  readonly staged?: ((stages: StagesUsed, targetModel: string) => void) | undefined;
}

/** The scheduler of a shard: the profile handler runs profiles, each by one call into the core. */
export class CoreScheduler implements GatedScheduler {
  readonly #options: SchedulerOptions;

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  schedule(input: ScheduleInput): Placement | Rejection | Waiting {
    this.#options.served?.predictions.write(input.predictions);
    const runs = new ChargedRuns(this.#options, input, this.#request(input));
    let outcome: Placement | Rejection | undefined;
    try {
      outcome = this.#handled(runs);
    } finally {
      // After a rejection or an exception.
      if (outcome?.kind !== 'placed') runs.abandon();
      runs.releaseDispatch();
    }
    return runs.waiting ? WAITING : outcome;
  }

  #handled(runs: ChargedRuns): Placement | Rejection {
    const { input } = runs;
    const handled = this.#options.handler.handle(runs);
    if (handled.kind === 'rejected') return handled;
    // A stage without which the handler would go on has found no room: the whole request waits.
    if (runs.waiting) return noPick('waiting');
    const { primary, port, headers, stages } = handled;
    if (stages !== undefined) this.#options.staged?.(stages, input.targetModel);
    if (primary.matchedBlocks === 0 && prefers(input.headers, 'if-available')) return notCached;
    const { endpoints, matchedBlocks, totalBlocks, matchedTokens } = primary;
    return {
      kind: 'placed',
      endpoints: port === undefined ? endpoints : endpoints.map((endpoint) => atPort(endpoint, port)),
      picks: runs.picked,
      charge: runs.place(primary),
      headers: headers ?? NO_HEADERS,
      matchedBlocks,
      totalBlocks,
      matchedTokens,
      promptTokens: runs.promptTokens,
      prediction: runs.predictionOf(primary),
      scores: runs.scoresOf(primary),
      retention: runs.retention,
    };
  }

  /** Input of the prediction servers for a request; undefined when none are asked. Writes its hashes, as `schedule`. */
  outlook(input: ScheduleInput): RequestOutlook | undefined {
    const { decider, directory, served } = this.#options;
    if (served === undefined) return undefined;
    const { blocks, tail } = this.#chain(input);
    decider.matchAhead(blocks, tail);
    const total = blocks + (tail ? 1 : 0);
    const { known, signals, waiting, kvUsage, inflight, prefillTokens } = served.columns;
    const slots = input.subset === undefined ? directory.slots() : directory.resolve(input.subset);
    const endpoints = slots.flatMap((slot): EndpointOutlook[] => {
      const entry = directory.at(slot);
      if (entry === undefined) return [];
      return [
        {
          slot,
          endpoint: entry.endpoint,
          waiting: (known[slot]! & signals.waiting) === 0 ? undefined : waiting[slot]!,
          kvUsage: (known[slot]! & signals.kvUsage) === 0 ? undefined : kvUsage[slot]!,
          inflight: inflight[slot]!,
          prefillTokens: prefillTokens[slot]!,
          held: total === 0 ? 0 : decider.matchedOf(slot) / total,
        },
      ];
    });
    return { promptTokens: this.#size(input).promptTokens, endpoints };
  }

  #request(input: ScheduleInput): RunRequest {
    const { directory, settings } = this.#options;
    const { estimateOutput, objectiveTimes } = settings.current;
    const { requestKeys = NO_KEYS } = this.#options;
    const { promptTokens, blockTokens } = this.#size(input);
    const { blocks, tail } = this.#chain(input);
    const outputTokens = estimateOutput === undefined ? 0 : estimatedOutput(estimateOutput, promptTokens, input);
    const wanted = wantedTimes(input.headers, objectiveTimes);
    return {
      profile: 0,
      wantedTtftMs: wanted.ttftMs,
      wantedTpotMs: wanted.tpotMs,
      blocks,
      tail,
      blockTokens,
      promptTokens,
      outputTokens,
      priority: input.priority,
      adapter: input.targetModel,
      nowMs: this.#options.nowMs(),
      subset: input.subset === undefined ? undefined : directory.resolve(input.subset),
      charged: true,
      explained: false,
      keys: requestKeys.length === 0 ? undefined : requestKeys.map((header) => input.headers.get(header)),
      baseModel: this.#options.baseModels?.has(input.targetModel),
      // Every stage asks for room: the request waits until all of them have it.
      gate: input.gate,
      unstored: true,
      session: this.#session(input),
      sessionEnds: endsSession(input.headers),
      further: false,
      earlier: undefined,
    };
  }

  /** Name that the headers give the request's session. */
  #session({ hookRequest }: ScheduleInput): string | undefined {
    const attribute = this.#options.settings.current.sessionAttribute;
    return hookRequest === undefined || attribute === undefined
      ? undefined
      : sessionNameOf(hookRequest.attributes, attribute);
  }

  /** Tokens of the prompt and of each of its blocks; those of a text are estimated. */
  #size({
    tokens,
    tokenIds,
    promptBytes,
    targetModel,
  }: ScheduleInput): Pick<RunRequest, 'promptTokens' | 'blockTokens'> {
    const { blockTokens, ratios } = this.#options;
    if (tokens !== undefined) return { promptTokens: tokens.ids.length, blockTokens };
    if (tokenIds === true || ratios === undefined)
      return { promptTokens: Math.ceil(promptBytes / TOKEN_BYTES), blockTokens };
    return {
      promptTokens: ratios.promptTokens(targetModel, promptBytes),
      blockTokens: ratios.blockTokens(targetModel),
    };
  }

  /** Writes the prompt's hashes for the decision: of its tokens when they are known, else of its bytes. */
  #chain(input: ScheduleInput): WrittenChain {
    const { prompts, tokens, settings, blockTokens } = this.#options;
    const { prefix } = settings.current;
    if (input.scan < 0 || prefix === undefined) return { blocks: 0, tail: false };
    const ofTokens = input.tokens !== undefined && tokens !== undefined;
    const chain = ofTokens
      ? tokens.chain(input.tokens, input.targetModel, input.cacheSalt, blockTokens)
      : prompts.chain(input.scan, input.targetModel);
    if (ofTokens && chain.blocks > 0) prompts.noteBeginning(input.scan);
    return {
      blocks: Math.min(chain.blocks, prefix.maxBlocks),
      // Engines report whole blocks only.
      tail: chain.tail && chain.blocks < prefix.maxBlocks && !prefix.knownBy?.startsWith('events'),
    };
  }
}

/** Whether a client says that its session ends with this request, as for Pointsman or for Dynamo. */
function endsSession(headers: RequestHeaders): boolean {
  return headers.get('x-pointsman-session-end') === '1' || headers.get('x-dynamo-session-final') === 'true';
}

const WAITING: Waiting = { kind: 'waiting' };

const NO_KEYS: readonly string[] = [];

const NO_HEADERS: ReadonlyMap<string, string | undefined> = new Map();

/** The request's endpoint with another port for the proxy. */
function atPort(picked: PickedEndpoint, port: number): PickedEndpoint {
  return { ...picked, address: endpointAddress({ address: picked.endpoint.address, port }) };
}

/**
 * Rejection of a request that asked to be served from the cache only (RFC 7240 preference, read as by llm-d-router).
 */
const notCached: Rejection = {
  kind: 'rejected',
  code: 'PreconditionFailed',
  message: 'no decode worker has the requested KV cache',
  reason: undefined,
};
