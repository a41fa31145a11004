import type { BlockPlace } from '../contract/block-place.js';
import type { BlockLoss, ToldLoss } from '../core/cache-loss.js';
import type { PrefixIndex } from '../core/prefix-index.js';
import type { BlockExtras, TokenChain } from '../core/token-chain.js';
import { BlockOwners } from './block-owners.js';
import { type BlockEnd, EngineLinks } from './engine-links.js';
import type { KvBatch, KvEvent } from './event.js';
import type { DropReason, EventCounts } from './event-counts.js';
import { HeldBlocks, nearestOf, PLACES } from './held-blocks.js';

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
  /** Called when an endpoint's engine has blocks of a size that was not followed before. */
  readonly sized?: (engineTokens: number) => void;
}

/** Caches whose blocks hold everything before them, so that a prefix can be taken from them (llm-d-router's list). */
const PREFIX_KINDS: ReadonlySet<string> = new Set(['full_attention', 'mla_attention', 'sink_full_attention']);
const GROUPS_MAX = 64;
/** Sizes of an engine's blocks that are followed at a time: its groups may have one each. */
const SIZES_MAX = 4;
/** Names of parts that are no text, of blocks whose last tokens begin the next block of the index. */
const NAMED_MAX = 65_536;

/**
 * The blocks of one endpoint, as its engine tells them. The index knows a block by our chain hash, which is made anew
 * from the tokens that the event brings; the engine's hash is only a name under which the block is removed, or named as
 * the parent of others. A block counts as held while it lies anywhere, at the nearest of its places: on the GPU, in the
 * host's memory, on a disk, elsewhere.
 *
 * The engine's blocks may have any size. A block of the index is held as long as the engine's block in which it ends:
 * engines give up the ends of chains first.
 *
 * Every method may throw IndexBusyError; the same call may then be repeated without a double effect.
 */
export class EngineBlocks {
  readonly #slot: number;
  readonly #services: BlockServices;
  /** What the engine's blocks stand for, by their size in tokens. */
  readonly #links = new Map<number, EngineLinks>();
  readonly #held = new HeldBlocks();
  /** By the engine's hash: names of what is no text in a block that ends inside a block of the index. */
  readonly #named = new Map<bigint, readonly string[]>();
  /** Blocks of the engine at each of PLACES; one may lie at several. */
  readonly #placed = PLACES.map(() => 0);
  readonly #owners = PLACES.map(() => new BlockOwners());
  /** Groups of the cache from which no prefix can be taken. */
  readonly #skippedGroups = new Set<number>();
  #appliedMs: number | undefined;
  /** Whether the blocks of an ended process are gone, and the start of the next one is not told so far. */
  #isRestartKnown = false;
  /** Whether what was sent to the endpoint counts as held, because the engine sends no events. */
  #isPlaced = false;
  readonly #told: () => void;

  /** @param told called when the engine tells of its blocks after `judgeByPlacements` */
  constructor(slot: number, services: BlockServices, told: () => void = () => {}) {
    this.#slot = slot;
    this.#services = services;
    this.#told = told;
  }

  /** Blocks of the engine that are known. */
  get size(): number {
    let size = 0;
    for (const links of this.#links.values()) size += links.size;
    return size;
  }

  /** Blocks of the engine at each place; one may lie at several. */
  get placed(): ReadonlyMap<BlockPlace, number> {
    return new Map(PLACES.map((place, i) => [place, this.#placed[i]!]));
  }

  /** Time of the last events, by `performance.now`; undefined = none so far. */
  get appliedMs(): number | undefined {
    return this.#appliedMs;
  }

  /** Returns whether the engine has reported the block of this chain hash as held. */
  holds(chainHash: bigint): boolean {
    return this.#held.places(chainHash) !== 0;
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

  /** Counts what is sent to the endpoint as held by it, until the engine sends events of its blocks. */
  judgeByPlacements(): void {
    this.#isPlaced = true;
  }

  /** Whether what is sent to the endpoint counts as held by it. */
  get isPlaced(): boolean {
    return this.#isPlaced;
  }

  /** Forgets the blocks that the engine did not tell of, since they may be gone. */
  #forgetPlacements(): void {
    this.#told();
    this.clear('unconfirmed');
    this.#isPlaced = false;
  }

  /** Forgets all blocks of the engine. */
  clear(lost: ToldLoss): void {
    this.#services.index.clearEndpoint(this.#slot, lost);
    this.#links.clear();
    this.#held.clear();
    this.#named.clear();
    this.#placed.fill(0);
    for (const owners of this.#owners) owners.clear();
    this.#services.counts.clears++;
    this.#isRestartKnown ||= lost === 'engine-restarted';
  }

  /** Removes the blocks of an ended process, unless its events have shown the end before. */
  restarted(sign: RestartSign): void {
    const isNews = sign === 'ended' || !this.#isRestartKnown;
    if (isNews) {
      this.clear('engine-restarted');
      this.#appliedMs = undefined;
    }
    if (sign === 'started') this.#isRestartKnown = false;
  }

  #store(event: Stored, model: string | undefined): void {
    // A block that comes to another tier comes without its tokens.
    if (event.tokens.length === 0 && this.#isPrefixGroup(event)) this.#copyTo(event);
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
    if (this.#linksOf(blockTokens) === undefined) return 'block size';
    if (typeof adapter === 'object') return 'unnamed adapter';
    if (adapter === undefined && model === undefined) return 'unnamed model';
    return parent !== undefined && this.#before(parent) === undefined ? 'unknown parent' : undefined;
  }

  #storeBlocks(event: Stored, model: string | undefined): void {
    const { chain, index, counts, blockTokens } = this.#services;
    const before = event.parent === undefined ? undefined : this.#before(event.parent)!;
    const root = typeof event.adapter === 'string' ? event.adapter : model!;
    if (before === undefined) chain.begin(root, event.extras[0]?.salt);
    else chain.resume(before.base);
    const base = before?.base ?? chain.end();
    const tokens = before === undefined || before.over === 0 ? event.tokens : joined(before.tokens, event.tokens);
    const over = before?.over ?? 0;
    const whole = chain.add(tokens, blockTokens, this.#extras(event, before));
    const hashes = [...chain.hashes(0, whole)];
    const isRoot = before?.isRoot ?? true;
    index.store(this.#slot, isRoot ? undefined : base, whole, event.tier);
    const reach = hashes.length < Math.floor(tokens.length / blockTokens) ? whole * blockTokens : tokens.length;
    for (const [number, engineHash] of event.hashes.entries()) {
      const from = over + number * event.blockTokens;
      if (from + event.blockTokens > reach) break;
      if (!this.#link(event, number, { hashes, base, isRoot, over })) {
        this.#refuse(hashes.slice(Math.floor(from / blockTokens)), event.hashes.length - number);
        return;
      }
      this.#nameEnd(event, number, engineHash);
      counts.storedBlocks++;
    }
    this.#settle(hashes, event.tier);
  }

  /** Removes blocks without a link from the index, as no event could remove them later. */
  #refuse(hashes: readonly bigint[], blocks: number): void {
    this.#services.counts.drop('no room', blocks);
    this.#drop(
      hashes.filter((hash) => !this.holds(hash)),
      'unconfirmed',
    );
  }

  /** Remembers what an engine's block stands for. @returns false when there is no room */
  #link(event: Stored, number: number, chained: Chained): boolean {
    const { blockTokens } = this.#services;
    const links = this.#linksOf(event.blockTokens)!;
    const engineHash = event.hashes[number]!;
    let at = links.find(engineHash);
    if (at < 0) {
      const from = chained.over + number * event.blockTokens;
      const to = from + event.blockTokens;
      const whole = Math.floor(to / blockTokens);
      at = links.add(engineHash, {
        base: whole === 0 ? chained.base : chained.hashes[whole - 1]!,
        isRoot: whole === 0 && chained.isRoot,
        over: to - whole * blockTokens,
        parent: number === 0 ? event.parent : event.hashes[number - 1],
        hashes: chained.hashes.slice(Math.floor(from / blockTokens), whole),
        tokens: event.tokens.subarray(number * event.blockTokens, (number + 1) * event.blockTokens),
      });
      if (at < 0) return false;
    }
    const place = PLACES.indexOf(event.tier);
    this.#noteOwner(engineHash, place, event.owner);
    this.#addTier(links, at, place);
    return true;
  }

  /** Notes the secondary tier that has an engine's block at a place, before the block counts as lying there. */
  #noteOwner(engineHash: bigint, place: number, owner: string | undefined): void {
    if (owner !== undefined) this.#owners[place]!.store(engineHash, owner, this.#liesAt(engineHash, place));
  }

  #addTier(links: EngineLinks, at: number, place: number): void {
    const bits = links.tiers(at);
    if ((bits & (1 << place)) !== 0) return;
    links.setTiers(at, bits | (1 << place));
    this.#placed[place]!++;
    for (const hash of links.hashes(at)) this.#held.add(hash, place);
  }

  /** Names of parts that are no text, which the next block of the index has too. */
  #nameEnd({ extras }: Stored, number: number, engineHash: bigint): void {
    const names = extras[number]?.names;
    if (names === undefined || names.length === 0 || this.#named.size >= NAMED_MAX) return;
    const found = this.#find(engineHash);
    if (found !== undefined && found.links.end(found.at).over !== 0) this.#named.set(engineHash, names);
  }

  /** The index has the blocks at `tier` now: those that have a nearer place go back there. */
  #settle(hashes: readonly bigint[], tier: BlockPlace): void {
    if (tier === 'gpu') return;
    for (const place of PLACES.slice(0, PLACES.indexOf(tier))) {
      this.#move(
        hashes.filter((hash) => nearestOf(this.#held.places(hash)) === place),
        place,
      );
    }
  }

  #copyTo({ hashes, tier, owner }: Stored): void {
    const place = PLACES.indexOf(tier);
    const copied: bigint[] = [];
    for (const hash of hashes) {
      const found = this.#find(hash);
      if (found === undefined) this.#services.counts.drop('tokens');
      else {
        this.#noteOwner(hash, place, owner);
        this.#addTier(found.links, found.at, place);
        copied.push(...found.links.hashes(found.at));
      }
    }
    this.#move(
      copied.filter((hash) => nearestOf(this.#held.places(hash)) === tier),
      tier,
    );
  }

  #remove({ hashes, tier, owner, group }: Removed): void {
    if (group !== undefined && this.#skippedGroups.has(group)) return;
    const place = PLACES.indexOf(tier);
    const leaving = [...new Set(hashes)].filter(
      (hash) => this.#liesAt(hash, place) && (owner === undefined || !this.#owners[place]!.remove(hash, owner)),
    );
    const lost = new Map<bigint, number>();
    for (const engineHash of leaving) {
      const { links, at } = this.#find(engineHash)!;
      for (const hash of links.hashes(at)) lost.set(hash, (lost.get(hash) ?? 0) + 1);
    }
    const left = [...lost].map(([hash, count]) => [hash, this.#held.placesWithout(hash, place, count)] as const);
    this.#drop(
      left.filter(([, places]) => places === 0).map(([hash]) => hash),
      'evicted-told',
    );
    for (const farther of PLACES.slice(place + 1)) {
      this.#move(
        left.filter(([, places]) => nearestOf(places) === farther).map(([hash]) => hash),
        farther,
      );
    }
    // Only now, since the index may have been busy.
    for (const hash of leaving) this.#leaveTier(hash, place);
  }

  #liesAt(engineHash: bigint, place: number): boolean {
    const found = this.#find(engineHash);
    return found !== undefined && (found.links.tiers(found.at) & (1 << place)) !== 0;
  }

  #leaveTier(engineHash: bigint, place: number): void {
    const { links, at } = this.#find(engineHash)!;
    for (const hash of links.hashes(at)) this.#held.remove(hash, place);
    this.#placed[place]!--;
    this.#owners[place]!.forget(engineHash);
    const bits = links.tiers(at) & ~(1 << place);
    links.setTiers(at, bits);
    if (bits !== 0) return;
    links.delete(at);
    this.#named.delete(engineHash);
    this.#services.counts.removedBlocks++;
  }

  /** Takes blocks out of the index. */
  #drop(hashes: readonly bigint[], lost: BlockLoss): void {
    this.#inPieces(hashes, (blocks) => this.#services.index.remove(this.#slot, blocks, lost));
  }

  /** Blocks of the index have another nearest place. */
  #move(hashes: readonly bigint[], place: BlockPlace): void {
    this.#inPieces(hashes, (blocks) => this.#services.index.move(this.#slot, blocks, place));
  }

  /** As many hashes at a time as one call takes. */
  #inPieces(hashes: readonly bigint[], change: (blocks: number) => void): void {
    const { index } = this.#services;
    for (let at = 0; at < hashes.length; at += index.longest) {
      const piece = BigUint64Array.from(hashes.slice(at, at + index.longest));
      index.writeHashes(piece);
      change(piece.length);
    }
  }

  /**
   * Takes blocks out of the index that were only believed to come, unless the engine has told of them since. Those that
   * it has below the GPU are there again.
   */
  dropUnconfirmed(hashes: BigUint64Array): number {
    const places = [...hashes].map((hash) => [hash, nearestOf(this.#held.places(hash))] as const);
    const unconfirmed = places.filter(([, place]) => place === undefined).map(([hash]) => hash);
    this.#drop(unconfirmed, 'unconfirmed');
    for (const lower of PLACES.slice(1)) {
      this.#move(
        places.filter(([, place]) => place === lower).map(([hash]) => hash),
        lower,
      );
    }
    return unconfirmed.length;
  }

  #find(engineHash: bigint): Found | undefined {
    for (const links of this.#links.values()) {
      const at = links.find(engineHash);
      if (at >= 0) return { links, at };
    }
    return undefined;
  }

  /** Where the blocks behind one go on; undefined = it is not known, or tokens before its end are not. */
  #before(engineHash: bigint): Before | undefined {
    const found = this.#find(engineHash);
    if (found === undefined) return undefined;
    const end = found.links.end(found.at);
    const tokens = new Uint32Array(end.over);
    const names = new Set<string>();
    let missing = end.over;
    let before: bigint | undefined = engineHash;
    while (missing > 0) {
      const each: Found | undefined = before === undefined ? undefined : this.#find(before);
      if (before === undefined || each === undefined) return undefined;
      const last = each.links.lastTokens(each.at);
      const taken = Math.min(missing, last.length);
      tokens.set(last.subarray(last.length - taken), missing - taken);
      for (const name of this.#named.get(before) ?? []) names.add(name);
      missing -= taken;
      before = each.links.parent(each.at);
    }
    return { ...end, tokens, names: [...names] };
  }

  /** What blocks of a size stand for; undefined = the engine has too many sizes. */
  #linksOf(engineTokens: number): EngineLinks | undefined {
    const known = this.#links.get(engineTokens);
    if (known !== undefined) return known;
    for (const [tokens, links] of this.#links) if (links.size === 0) this.#links.delete(tokens);
    if (this.#links.size >= SIZES_MAX) return undefined;
    const { blockTokens, blocksMost, sized } = this.#services;
    sized?.(engineTokens);
    const links = new EngineLinks(engineTokens, blockTokens, blocksMost);
    this.#links.set(engineTokens, links);
    return links;
  }

  /** Names of parts that are no text, by the blocks of the index that overlap the engine's blocks with them. */
  #extras({ extras, blockTokens: engineTokens }: Stored, before: Before | undefined): BlockExtras {
    const { blockTokens } = this.#services;
    const over = before?.over ?? 0;
    const byBlock = new Map<number, readonly string[]>();
    const add = (block: number, names: readonly string[]) =>
      byBlock.set(block, [...new Set([...(byBlock.get(block) ?? []), ...names])]);
    if (before !== undefined && before.names.length > 0) add(0, before.names);
    for (const [number, { names }] of extras.entries()) {
      if (names.length === 0) continue;
      const from = over + number * engineTokens;
      const last = Math.floor((from + engineTokens - 1) / blockTokens);
      for (let block = Math.floor(from / blockTokens); block <= last; block++) add(block, names);
    }
    return byBlock;
  }

  #isPrefixGroup({ group, groupKind }: Stored): boolean {
    if (group === undefined || groupKind === undefined || PREFIX_KINDS.has(groupKind)) return true;
    if (this.#skippedGroups.size < GROUPS_MAX) this.#skippedGroups.add(group);
    return false;
  }
}

/** Chain hashes of the blocks of an event, with the end of the block before it. */
interface Chained extends BlockEnd {
  readonly hashes: readonly bigint[];
}

/** Place of a block of the engine. */
interface Found {
  readonly links: EngineLinks;
  readonly at: number;
}

/** End of a block, with what the next block of the index begins with. */
interface Before extends BlockEnd {
  /** The last `over` tokens. */
  readonly tokens: Uint32Array;
  readonly names: readonly string[];
}

function joined(first: Uint32Array, second: Uint32Array): Uint32Array {
  const tokens = new Uint32Array(first.length + second.length);
  tokens.set(first);
  tokens.set(second, first.length);
  return tokens;
}
