import type { BlockLoss, ToldLoss } from '../core/cache-loss.js';
import type { PrefixIndex } from '../core/prefix-index.js';
import type { BlockExtras, TokenChain } from '../core/token-chain.js';
import type { KvBatch, KvEvent, Tier } from './event.js';
import type { DropReason, EventCounts } from './event-counts.js';
import { U64Table } from './u64-table.js';

type Stored = Extract<KvEvent, { kind: 'stored' }>;
type Removed = Extract<KvEvent, { kind: 'removed' }>;

/** Sign of a restart: the engine's process has ended, or has a later start time than before. */
export type RestartSign = 'ended' | 'started';

/** Services shared by the blocks of all endpoints. Control thread. */
export interface BlockServices {
  readonly index: PrefixIndex;
  readonly chain: TokenChain;
  /** Tokens of one block of the index. */
  readonly blockTokens: number;
  /** Blocks of the engine that one endpoint may have. */
  readonly blocksMost: number;
  readonly counts: EventCounts;
}

/** One bit for each place where a block may lie. */
const TIER_BITS: Readonly<Record<Tier, number>> = { gpu: 1, cpu: 2, other: 4 };
/** Caches whose blocks hold everything before them, so that a prefix can be taken from them (llm-d-router's list). */
const PREFIX_KINDS: ReadonlySet<string> = new Set(['full_attention', 'mla_attention', 'sink_full_attention']);
/** References of one chain hash that are counted; what has more stays until its endpoint is cleared. */
const REFERENCES_MAX = 65_000;
const GROUPS_MAX = 64;

/**
 * The blocks of one endpoint, as its engine tells them. The index knows a block by our chain hash, which is made anew
 * from the tokens that the event brings; the engine's hash is only a name under which the block is removed, or named as
 * the parent of others. A block counts as held while it lies anywhere: on the GPU, in the host's memory, on a disk.
 *
 * Every method may throw IndexBusyError; the same call may then be made again and ends as if it had been made once.
 */
export class EngineBlocks {
  readonly #slot: number;
  readonly #services: BlockServices;
  /** Blocks of the index in one block of the engine; 0 = no block has come yet. */
  #width = 0;
  /** By the engine's hash: where the block lies (mark), and our chain hashes for it. */
  #links = new U64Table(1, 0);
  /** By chain hash: how many blocks of the engine stand for it (mark). */
  readonly #held: U64Table;
  /** Groups of the cache from which no prefix can be taken. */
  readonly #skippedGroups = new Set<number>();
  #appliedMs: number | undefined;
  /** Whether the blocks of a process that has ended are gone, of which the start of the next one has not been told. */
  #isRestartKnown = false;
  /** Whether what was sent to the endpoint counts as held, because the engine has told nothing. */
  #isPlaced = false;
  readonly #told: () => void;

  /** @param told called when the engine tells of its blocks after `judgeByPlacements` */
  constructor(slot: number, services: BlockServices, told: () => void = () => {}) {
    this.#slot = slot;
    this.#services = services;
    this.#told = told;
    this.#held = new U64Table(0, Number.MAX_SAFE_INTEGER);
  }

  /** Blocks of the engine that are known. */
  get size(): number {
    return this.#links.size;
  }

  /** Time of the last events, by `performance.now`; undefined = none have come. */
  get appliedMs(): number | undefined {
    return this.#appliedMs;
  }

  /** Returns whether the engine has reported the block of this chain hash as held. */
  holds(chainHash: bigint): boolean {
    return this.#held.find(chainHash) >= 0;
  }

  /** @param model model of the engine; undefined = unknown, so only blocks of adapters can be stored */
  apply({ events, unknown }: KvBatch, model: string | undefined): void {
    if (this.#isPlaced) this.#forgetPlacements();
    if (unknown > 0) this.#services.counts.drop('unknown event', unknown);
    for (const event of events) {
      if (event.kind === 'stored') this.#store(event, model);
      else if (event.kind === 'removed') this.#remove(event);
      else this.clear('cache-cleared');
    }
    this.#appliedMs = performance.now();
  }

  /** From now on what is sent to the endpoint counts as held by it, until the engine tells of its blocks. */
  judgeByPlacements(): void {
    this.#isPlaced = true;
  }

  /** Whether what is sent to the endpoint counts as held by it. */
  get isPlaced(): boolean {
    return this.#isPlaced;
  }

  /** What the engine did not tell of may be gone. */
  #forgetPlacements(): void {
    this.#told();
    this.clear('unconfirmed');
    this.#isPlaced = false;
  }

  /** The engine holds nothing that is known. */
  clear(lost: ToldLoss): void {
    this.#services.index.clearEndpoint(this.#slot, lost);
    this.#links.clear();
    this.#held.clear();
    this.#services.counts.clears++;
    this.#isRestartKnown ||= lost === 'engine-restarted';
  }

  /** Removes the blocks of a process that has ended, unless its events have shown that before. */
  restarted(sign: RestartSign): void {
    const isNews = sign === 'ended' || !this.#isRestartKnown;
    if (isNews) {
      this.clear('engine-restarted');
      this.#appliedMs = undefined;
    }
    if (sign === 'started') this.#isRestartKnown = false;
  }

  #store(event: Stored, model: string | undefined): void {
    // A block that moves to another tier comes without its tokens.
    if (event.tokens.length === 0 && this.#isPrefixGroup(event)) this.#moveTo(event);
    else {
      const reason = this.#unusable(event, model);
      if (reason === undefined) this.#storeBlocks(event, model);
      else this.#services.counts.drop(reason, event.hashes.length);
    }
  }

  #unusable(event: Stored, model: string | undefined): DropReason | undefined {
    const { hashes, tokens, blockTokens, adapter, parent } = event;
    if (!this.#isPrefixGroup(event)) return 'cache kind';
    if (tokens.length !== hashes.length * blockTokens) return 'tokens';
    if (!this.#fits(blockTokens)) return 'block size';
    if (typeof adapter === 'object') return 'unnamed adapter';
    if (adapter === undefined && model === undefined) return 'unnamed model';
    return parent !== undefined && this.#lastHashOf(parent) === undefined ? 'unknown parent' : undefined;
  }

  #storeBlocks(event: Stored, model: string | undefined): void {
    const { chain, index, counts, blockTokens } = this.#services;
    const parent = event.parent === undefined ? undefined : this.#lastHashOf(event.parent);
    const root = typeof event.adapter === 'string' ? event.adapter : model!;
    if (parent === undefined) chain.begin(root, event.extras[0]?.salt);
    else chain.resume(parent);
    const blocks = chain.add(event.tokens, blockTokens, this.#extras(event));
    const whole = Math.floor(blocks / this.#width);
    const hashes = Array.from({ length: whole * this.#width }, (_, i) => chain.hash(i));
    index.store(this.#slot, parent, whole * this.#width);
    for (const [number, engineHash] of event.hashes.slice(0, whole).entries()) {
      if (!this.#link(engineHash, hashes, number, event.tier)) {
        this.#refuse(hashes.slice(number * this.#width), event.hashes.length - number);
        return;
      }
      counts.storedBlocks++;
    }
  }

  /** Removes a block without a link from the index, as no event could remove it later. */
  #refuse(hashes: readonly bigint[], blocks: number): void {
    this.#services.counts.drop('no room', blocks);
    this.#drop(
      hashes.filter((hash) => this.#held.find(hash) < 0),
      'unconfirmed',
    );
  }

  /** Remembers what an engine's block stands for. @returns false when there is no room */
  #link(engineHash: bigint, hashes: readonly bigint[], number: number, tier: Tier): boolean {
    const known = this.#links.find(engineHash);
    if (known >= 0) {
      this.#links.setMark(known, this.#links.mark(known) | TIER_BITS[tier]);
      return true;
    }
    const place = this.#links.add(engineHash);
    if (place < 0) return false;
    this.#links.setMark(place, TIER_BITS[tier]);
    for (let i = 0; i < this.#width; i++) {
      const hash = hashes[number * this.#width + i]!;
      this.#links.setValue(place, i, hash);
      const held = this.#held.find(hash);
      if (held < 0) this.#held.setMark(this.#held.add(hash), 1);
      else this.#held.setMark(held, Math.min(this.#held.mark(held) + 1, REFERENCES_MAX));
    }
    return true;
  }

  #moveTo({ hashes, tier }: Stored): void {
    for (const hash of hashes) {
      const place = this.#links.find(hash);
      if (place < 0) this.#services.counts.drop('tokens');
      else this.#links.setMark(place, this.#links.mark(place) | TIER_BITS[tier]);
    }
  }

  #remove({ hashes, tier, group }: Removed): void {
    if (group !== undefined && this.#skippedGroups.has(group)) return;
    const gone: bigint[] = [];
    const released: bigint[] = [];
    for (const hash of new Set(hashes)) {
      const place = this.#links.find(hash);
      if (place < 0) continue;
      if ((this.#links.mark(place) & ~TIER_BITS[tier]) !== 0) continue;
      released.push(hash);
      for (let i = 0; i < this.#width; i++) gone.push(this.#links.value(place, i));
    }
    this.#drop(this.#unreferenced(gone), 'evicted-told');
    // Only now, since the index may have been busy.
    for (const hash of hashes) this.#leaveTier(hash, tier);
    for (const hash of released) this.#unlink(hash);
    this.#services.counts.removedBlocks += released.length;
  }

  #leaveTier(hash: bigint, tier: Tier): void {
    const place = this.#links.find(hash);
    if (place >= 0) this.#links.setMark(place, this.#links.mark(place) & ~TIER_BITS[tier]);
  }

  /** Of chain hashes that lose one reference for each time they are named, those that lose their last one. */
  #unreferenced(hashes: readonly bigint[]): readonly bigint[] {
    const lost = new Map<bigint, number>();
    for (const hash of hashes) lost.set(hash, (lost.get(hash) ?? 0) + 1);
    return [...lost].filter(([hash, count]) => this.#held.mark(this.#held.find(hash)) <= count).map(([hash]) => hash);
  }

  #unlink(engineHash: bigint): void {
    const place = this.#links.find(engineHash);
    for (let i = 0; i < this.#width; i++) {
      const held = this.#held.find(this.#links.value(place, i));
      const references = this.#held.mark(held) - 1;
      if (references > 0) this.#held.setMark(held, references);
      else this.#held.delete(held);
    }
    this.#links.delete(place);
  }

  /** Takes blocks out of the index, as many at a time as one call takes. */
  #drop(hashes: readonly bigint[], lost: BlockLoss): void {
    const { index } = this.#services;
    for (let at = 0; at < hashes.length; at += index.longest) {
      const piece = BigUint64Array.from(hashes.slice(at, at + index.longest));
      index.writeHashes(piece);
      index.remove(this.#slot, piece.length, lost);
    }
  }

  /** Takes blocks out of the index that were only believed to come, unless the engine has told of them since. */
  dropUnconfirmed(hashes: BigUint64Array): number {
    const unconfirmed = [...hashes].filter((hash) => !this.holds(hash));
    this.#drop(unconfirmed, 'unconfirmed');
    return unconfirmed.length;
  }

  #lastHashOf(engineHash: bigint): bigint | undefined {
    const place = this.#links.find(engineHash);
    return place < 0 ? undefined : this.#links.value(place, this.#width - 1);
  }

  /** The first block decides how many blocks of the index one of the engine is. */
  #fits(engineTokens: number): boolean {
    const width = engineTokens / this.#services.blockTokens;
    if (!Number.isInteger(width)) return false;
    if (this.#links.size === 0 && this.#width !== width) {
      this.#width = width;
      this.#links = new U64Table(width, this.#services.blocksMost);
    }
    return this.#width === width;
  }

  #extras({ extras }: Stored): BlockExtras {
    const byBlock = new Map<number, readonly string[]>();
    for (const [block, { names }] of extras.entries()) {
      if (names.length === 0) continue;
      for (let i = 0; i < this.#width; i++) byBlock.set(block * this.#width + i, names);
    }
    return byBlock;
  }

  #isPrefixGroup({ group, groupKind }: Stored): boolean {
    if (group === undefined || groupKind === undefined || PREFIX_KINDS.has(groupKind)) return true;
    if (this.#skippedGroups.size < GROUPS_MAX) this.#skippedGroups.add(group);
    return false;
  }
}
