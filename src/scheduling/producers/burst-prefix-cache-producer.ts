import { z } from 'zod';
import type { HookRequest } from '../hooks/hook-request.js';
import type { EndpointViews, HookContext, HookPlugin } from '../hooks/hooks.js';
import { PATIENT_BUDGET_MS } from '../hooks/plugin-guard.js';
import { definePlugin } from '../plugin.js';
import { assignBurst, type BurstRequest } from './burst/assignment.js';

const DEFAULT_BLOCKS_MAX = 2048;
const WINDOW_MS_MAX = 10_000;
/** Bound on the requests of one burst when the parameters set none. */
const BATCH_MAX = 100_000;

const countOrAll = (what: string) => z.int().refine((value) => value === -1 || value >= 1, { error: what });

const parameters = () =>
  z.strictObject({
    windowDurationMs: z
      .int()
      .min(1)
      .max(WINDOW_MS_MAX)
      .default(100)
      .describe('How long requests are held, in milliseconds, from the first one of a burst.'),
    maxPerReplica: countOrAll('must be -1 (unlimited) or >= 1')
      .default(-1)
      .describe('Requests of one prompt that go to one endpoint; -1 = all.'),
    blockSizeTokens: z
      .int()
      .min(1)
      .default(64)
      .describe('Accepted for compatibility; the blocks of the prefix index count.'),
    maxPrefixTokensToMatch: z
      .int()
      .min(0)
      .default(0)
      .describe(`Beginning of a prompt that is compared, in tokens; 0 = ${DEFAULT_BLOCKS_MAX} blocks.`),
    minColocateBlocks: z
      .int()
      .min(0)
      .default(0)
      .describe('Blocks that different prompts must share to be put together; 0 = only equal prompts are.'),
    maxBatchSize: countOrAll('must be -1 (unlimited) or >= 1')
      .default(1000)
      .describe(`Requests that are held; what comes beyond is not held and not assigned. -1 = ${BATCH_MAX}.`),
    balanceBy: z.enum(['requests', 'tokens']).default('requests').describe('What is spread evenly over the endpoints.'),
  });

type Parameters = z.output<ReturnType<typeof parameters>>;

/** Requests that are held until their window ends. */
interface Burst {
  readonly requests: BurstRequest[];
  /** Slots that the first request may use. */
  readonly slots: readonly number[];
  readonly ended: Promise<void>;
  readonly end: () => void;
}

class BurstProducer implements HookPlugin {
  readonly #parameters: Parameters;
  readonly #attribute: string;
  #burst: Burst | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(given: Parameters, { name }: HookContext) {
    this.#parameters = given;
    this.#attribute = `burst ${name}`;
  }

  hold(request: HookRequest, endpoints: EndpointViews): Promise<void> | undefined {
    const { maxBatchSize, maxPrefixTokensToMatch, balanceBy } = this.#parameters;
    const blockTokens = request.blockTokens;
    const blocksMax =
      maxPrefixTokensToMatch > 0 ? Math.floor(maxPrefixTokensToMatch / blockTokens) : DEFAULT_BLOCKS_MAX;
    const chain = request.promptChain().slice(0, blocksMax);
    const burst = this.#burst ?? this.#begin(endpoints);
    if (burst.requests.length >= (maxBatchSize === -1 ? BATCH_MAX : maxBatchSize)) return undefined;
    const weight = balanceBy === 'tokens' ? chain.length * blockTokens : 1;
    const held: BurstRequest = { chain, weight, assigned: undefined };
    burst.requests.push(held);
    request.attributes.set(this.#attribute, held);
    return burst.ended;
  }

  #begin(endpoints: EndpointViews): Burst {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const burst = { requests: [], slots: endpoints.slots, ended, end };
    this.#burst = burst;
    this.#timer = setTimeout(() => this.#seal(endpoints), this.#parameters.windowDurationMs);
    return burst;
  }

  /** Assigns the requests of a window at its end, and continues them. */
  #seal(endpoints: EndpointViews): void {
    const burst = this.#burst!;
    this.#burst = undefined;
    const { maxPerReplica, minColocateBlocks } = this.#parameters;
    const open = burst.slots
      .filter((slot) => endpoints.at(slot) !== undefined)
      .map((slot) => ({ slot, running: endpoints.running[slot]! }));
    const maxPerEndpoint = maxPerReplica === -1 ? Number.POSITIVE_INFINITY : maxPerReplica;
    assignBurst(burst.requests, open, { maxPerEndpoint, minSharedBlocks: minColocateBlocks });
    burst.end();
  }

  match(request: HookRequest, _endpoints: EndpointViews, column: Float32Array): void {
    const held = request.attributes.get(this.#attribute) as BurstRequest | undefined;
    if (held?.assigned !== undefined) column[held.assigned] = 1;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#burst?.end();
    this.#burst = undefined;
  }
}

export const burstPrefixCacheProducer = definePlugin({
  type: 'burst-prefix-cache-producer',
  kinds: ['producer'],
  stability: 'Alpha',
  doc:
    'Holds requests for a moment and assigns those that came together: requests with one prompt go to one ' +
    'endpoint, so ' +
    ('that a prompt without a holder is computed once. A prefix-cache-scorer that names it sees a full match there ' +
      'and ') +
    'none elsewhere. Every shard sees only its own requests.',
  parameters,
  produces: ['prefix-match'],
  consumes: () => [{ key: 'prompt-tokens' }],
  hostsMatches: true,
  advise: ({ blockSizeTokens }) =>
    blockSizeTokens === 64 ? [] : ['blockSizeTokens has no effect: the blocks of the prefix index count'],
  budgetMs: PATIENT_BUDGET_MS,
  host: (given, context) => new BurstProducer(given, context),
});
