import type { BlockPlace, TierPrices } from '../contract/block-place.js';
import { endpointAddress, type SlotAssignment, type SlotUpdate } from '../contract/endpoint.js';
import type { PrefixIndex } from '../core/prefix-index.js';
import { IndexBusyError } from '../core/prefix-index.js';
import type { TokenChain } from '../core/token-chain.js';
import { counted } from '../runtime/counted.js';
import { LOCK_RETRY_MS, LockRetry } from '../runtime/lock-retry.js';
import { PacedReport } from '../runtime/paced-report.js';
import { BoundSocket, type Publisher } from './bound-socket.js';
import { EngineBlocks, type RestartSign } from './engine-blocks.js';
import { type DropReason, EventCounts } from './event-counts.js';
import { rankOf } from './event-sources.js';
import { EventStream } from './event-stream.js';
import { ReplayTurns } from './replay.js';
import { Speculations } from './speculations.js';
import { Subscription, type SubscriptionState } from './subscription.js';
import { TurnSlice } from './turn-slice.js';

/** Configured settings of KV events. */
export interface EventFeedSettings {
  /** Tokens of one block of the index. */
  readonly blockTokens: number;
  /** Address that engines connect to; undefined = none. */
  readonly bind: string | undefined;
  /** Ports on which every endpoint publishes; undefined = they are not asked. */
  readonly connect: { readonly port: number; readonly replayPort: number | undefined } | undefined;
  readonly topicFilter: string;
  /** Model that the engines serve, for topics that do not name it. */
  readonly model: string | undefined;
  /** Time for which a dispatched block counts as held without an event; undefined = none. */
  readonly speculativeTtlMs: number | undefined;
  /** Cost of loading a block from each tier, beside computing it. */
  readonly tierPrices: TierPrices;
}

export interface EventFeedOptions {
  readonly settings: EventFeedSettings;
  /** Returns whether an endpoint publishes events. */
  readonly publishes: (endpoint: SlotAssignment['endpoint']) => boolean;
  readonly index: PrefixIndex;
  readonly chain: TokenChain;
  /** Blocks of the engine that one endpoint may have. */
  readonly blocksMost: number;
  /** Whether what is sent to an endpoint counts as held by it in every program. */
  readonly placed: (slot: number, isPlaced: boolean) => void;
  readonly report: (problem: string) => void;
}

/** `untold`: the endpoint serves requests and has told no event; what is sent there counts as held by it. */
export type FeedState = SubscriptionState | 'untold';

/** State of the events of one endpoint. */
export interface FeedReading {
  readonly slot: number;
  readonly state: FeedState;
  /** Blocks of the engine that it is known to hold. */
  readonly blocks: number;
  /** Of these, those at each place; one may lie at several. */
  readonly placed: ReadonlyMap<BlockPlace, number>;
}

interface Watched {
  readonly assignment: SlotAssignment;
  readonly blocks: EngineBlocks;
  readonly subscription: Subscription | undefined;
}

/** What was not used, and what can be done about it, by the number of messages or events. */
const DROP_REPORTS: Readonly<Partial<Record<DropReason, (count: number) => string>>> = {
  malformed: (count) =>
    `dropped ${counted(count, 'message')} that cannot be read: see who publishes to the picker, and whether the ` +
    'version of the engines is one that docs/kv-events.md reads',
  'block size': (count) =>
    `left out ${counted(count, 'event')} of an engine that has blocks of more sizes than are followed: they match no ` +
    'prompt',
  'unnamed model': (count) =>
    `left out ${counted(count, 'event')} without a model: set kvEventsConfig.modelName, or topics kv@…@<model>`,
  'unnamed adapter': (count) =>
    `left out ${counted(count, 'event')} without a LoRA adapter's name: engines name it from vLLM 0.12 on (lora_name)`,
  'no room': (count) => `found no room for the blocks of ${counted(count, 'event')}: raise --index-blocks`,
};

/**
 * Keeps the prefix index at what the engines say they hold. On the control thread, the only writer besides decisions.
 */
export class EventFeed {
  readonly #options: EventFeedOptions;
  readonly counts = new EventCounts((reason) => this.#dropped.get(reason)?.note(undefined));
  readonly #dropped = new Map(
    Object.entries(DROP_REPORTS).map(([reason, text]) => [
      reason,
      new PacedReport<undefined>((_, count) => this.#options.report(text(count))),
    ]),
  );
  readonly #watched = new Map<number, Watched>();
  /** Endpoints by their names in topics; undefined = the name is ambiguous. */
  readonly #names = new Map<string, Watched | undefined>();
  readonly #slice = new TurnSlice();
  readonly #turns = new ReplayTurns();
  readonly #bound: BoundSocket | undefined;
  readonly #speculations: Speculations | undefined;
  readonly #problems = new Map<string, string>();
  /** Sizes of engines' blocks that were named in the log. */
  readonly #sizes = new Set<number>();
  /** Expired blocks that a dead thread's lock keeps in the index. */
  readonly #expiries = new LockRetry({ pauseMsMax: LOCK_RETRY_MS });

  constructor(options: EventFeedOptions) {
    this.#options = options;
    const { bind, speculativeTtlMs, topicFilter, model, tierPrices } = options.settings;
    options.index.setPrices(tierPrices);
    if (speculativeTtlMs !== undefined) {
      const expired = this.#expire.bind(this);
      this.#speculations = new Speculations(speculativeTtlMs, () => performance.now(), expired);
    }
    if (bind === undefined) return;
    this.#bound = new BoundSocket({
      address: bind,
      topicFilter,
      model,
      publisher: (endpoint) => this.#publisher(endpoint),
      counts: this.counts,
      slice: this.#slice,
      report: (problem) => this.#report(bind, problem),
    });
  }

  /** @throws when the configured address cannot be bound */
  async start(): Promise<void> {
    await this.#bound?.open();
  }

  /** Address of the bound socket, with the port that was chosen; null when there is none. */
  get address(): string | null {
    return this.#bound?.address ?? null;
  }

  /** Follows these endpoints and no others. Blocks of a removed endpoint have left the index together with its slot. */
  setEndpoints(assignments: readonly SlotAssignment[]): void {
    const current = new Set(assignments.map(({ slot }) => slot));
    const watched = [...this.#watched.values()].map(({ assignment }) => assignment);
    this.changeEndpoints({ set: assignments, removed: watched.filter(({ slot }) => !current.has(slot)) });
  }

  /** Follows new endpoints and no longer follows removed ones. */
  changeEndpoints({ set, removed }: SlotUpdate): void {
    for (const assignment of removed) this.#leave(assignment);
    for (const assignment of set) {
      const before = this.#watched.get(assignment.slot)?.assignment;
      const isFollowed = this.#isFollowed(assignment);
      if (before !== undefined && (before.generation !== assignment.generation || !isFollowed)) this.#leave(before);
      if (isFollowed && !this.#watched.has(assignment.slot)) this.#watch(assignment);
    }
    this.#nameEndpoints();
  }

  #leave({ slot, generation }: SlotAssignment): void {
    const watched = this.#watched.get(slot);
    if (watched?.assignment.generation !== generation) return;
    watched.subscription?.close();
    this.#bound?.forget(slot);
    if (watched.blocks.isPlaced) this.#options.placed(slot, false);
    this.#watched.delete(slot);
    this.#problems.delete(watched.assignment.endpoint.id);
  }

  #isFollowed({ endpoint }: SlotAssignment): boolean {
    return this.#options.publishes(endpoint);
  }

  #watch(assignment: SlotAssignment): void {
    const { index, chain, blocksMost, settings } = this.#options;
    const { blockTokens } = settings;
    const sized = (engineTokens: number) => this.#adviseSize(assignment.endpoint.id, engineTokens);
    const services = { index, chain, blockTokens, blocksMost, counts: this.counts, sized };
    const blocks = new EngineBlocks(assignment.slot, services, () => this.#tells(assignment));
    this.#watched.set(assignment.slot, { assignment, blocks, subscription: this.#subscribe(assignment, blocks) });
  }

  /** Blocks that share no boundaries with those of the index cost memory, and matches up to one block. */
  #adviseSize(endpoint: string, engineTokens: number): void {
    const { blockTokens } = this.#options.settings;
    if (engineTokens % blockTokens === 0 || this.#sizes.has(engineTokens) || this.#sizes.size >= SIZES_MAX) return;
    this.#sizes.add(engineTokens);
    const divisor = commonDivisor(engineTokens, blockTokens);
    const cost = 'a match ends at the last whole one of them';
    const remedy = `tokenProcessorConfig.blockSizeTokens: ${divisor} would fit both`;
    this.#options.report(
      `${endpoint}: its blocks have ${engineTokens} tokens and those of the index ${blockTokens}: ${cost}` +
        (divisor < DIVISOR_MIN ? '' : `; ${remedy}`),
    );
  }

  #subscribe({ endpoint }: SlotAssignment, blocks: EngineBlocks): Subscription | undefined {
    const { connect, topicFilter, model } = this.#options.settings;
    if (connect === undefined) return undefined;
    const rank = rankOf(endpoint.name);
    const at = (port: number) => `tcp://${endpointAddress({ address: endpoint.address, port: port + rank })}`;
    return new Subscription({
      address: at(connect.port),
      replayAddress: connect.replayPort === undefined ? undefined : at(connect.replayPort),
      topicFilter,
      model,
      stream: new EventStream(blocks, this.counts),
      counts: this.counts,
      slice: this.#slice,
      turns: this.#turns,
      report: (problem) => this.#report(endpoint.id, problem),
    });
  }

  /** Endpoints without an event since their subscription, or since the end of their process. */
  silent(): readonly SlotAssignment[] {
    const silent = [...this.#watched.values()].filter(
      ({ blocks }) => blocks.appliedMs === undefined && !blocks.isPlaced,
    );
    return silent.map(({ assignment }) => assignment);
  }

  /** Counts what is sent to an endpoint as held by it, until its engine sends events of its blocks. */
  judgeByPlacements({ slot, generation }: SlotAssignment): void {
    const watched = this.#watched.get(slot);
    if (watched?.assignment.generation !== generation) return;
    watched.blocks.judgeByPlacements();
    this.#options.placed(slot, true);
  }

  #tells({ slot, endpoint }: SlotAssignment): void {
    this.#options.placed(slot, false);
    this.#options.report(`${endpoint.id}: its engine tells of its blocks now`);
  }

  /** A topic names an endpoint by `ip:port`, by its name, or by an IP that no other endpoint has. */
  #publisher(named: string): Publisher | undefined {
    const found = this.#names.get(named);
    if (found === undefined) return undefined;
    const { slot, generation } = found.assignment;
    return { slot, generation, blocks: found.blocks };
  }

  #nameEndpoints(): void {
    this.#names.clear();
    for (const watched of this.#watched.values()) {
      const { endpoint } = watched.assignment;
      for (const name of [endpointAddress(endpoint), endpoint.name, endpoint.address]) {
        this.#names.set(name, this.#names.has(name) ? undefined : watched);
      }
    }
  }

  /** Drops at once what an engine held whose process has ended, or was replaced. */
  restarted(slot: number, generation: number, sign: RestartSign): void {
    this.#expiries.run(() => {
      const watched = this.#watched.get(slot);
      if (watched?.assignment.generation !== generation) return true;
      try {
        watched.blocks.restarted(sign);
      } catch (error) {
        if (error instanceof IndexBusyError) return false;
        throw error;
      }
      if (sign === 'started') return true;
      watched.subscription?.restarted();
      this.#bound?.forget(slot);
      return true;
    });
  }

  /** Notes blocks that an endpoint will hold soon, since their prompt was sent there. */
  speculated(slot: number, generation: number, hashes: BigUint64Array): void {
    if (this.#speculations === undefined) return;
    this.counts.speculated += hashes.length;
    this.#speculations.add(slot, generation, hashes);
  }

  #expire(slot: number, generation: number, hashes: BigUint64Array): void {
    this.#expiries.run(() => {
      const watched = this.#watched.get(slot);
      // A removed endpoint holds no blocks any more.
      if (watched?.assignment.generation !== generation || watched.blocks.isPlaced) return true;
      try {
        this.counts.expired += watched.blocks.dropUnconfirmed(hashes);
        return true;
      } catch (error) {
        if (error instanceof IndexBusyError) return false;
        throw error;
      }
    });
  }

  readings(): readonly FeedReading[] {
    return [...this.#watched.values()].map(({ assignment, blocks, subscription }) => ({
      slot: assignment.slot,
      state: blocks.isPlaced
        ? 'untold'
        : (subscription?.state ?? (blocks.appliedMs === undefined ? 'waiting' : 'live')),
      blocks: blocks.size,
      placed: blocks.placed,
    }));
  }

  /** Milliseconds since the last events of each endpoint that has sent any. */
  ages(): readonly { readonly slot: number; readonly ageMs: number }[] {
    const now = performance.now();
    return [...this.#watched.values()].flatMap(({ assignment, blocks: { appliedMs } }) =>
      appliedMs === undefined ? [] : [{ slot: assignment.slot, ageMs: now - appliedMs }],
    );
  }

  /** Reports a problem of an endpoint once. */
  #report(source: string, problem: string): void {
    if (this.#problems.get(source) === problem) return;
    this.#problems.set(source, problem);
    this.#options.report(`${source}: ${problem}`);
  }

  close(): void {
    for (const { subscription } of this.#watched.values()) subscription?.close();
    this.#watched.clear();
    this.#bound?.close();
    this.#speculations?.close();
  }
}

/** Smallest block of the index that is worth its hashes. */
const DIVISOR_MIN = 8;
/** Sizes of engines' blocks that are named in the log. */
const SIZES_MAX = 16;

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b);
}
