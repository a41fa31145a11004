import type { Spending } from './messages.js';

/** Bound on the tenants of all peers together: each takes some 150 bytes, and more with a long name. */
export const TENANTS_MAX = 100_000;

/** What the tenants of one peer have used there. */
export interface PeerTenants {
  /** Tokens since the start of the peer, in the order in which they were told last. */
  readonly tokens: Map<string, number>;
  /** Whether all tokens of an unknown tenant are new: the peer is known since its start, and none was forgotten. */
  isWhole: boolean;
}

/**
 * Tokens that tenants have used at each peer. At the bound the tenant that was told least lately gives way, of the peer
 * that has most: what is told of it next is no news but where its count begins again.
 */
export class SpentTenants {
  readonly #peers = new Set<PeerTenants>();
  readonly #max: number;
  #count = 0;
  /** Tenants that have given way. */
  forgotten = 0;

  /** @param max bound on the tenants */
  constructor(max = TENANTS_MAX) {
    this.#max = max;
  }

  /** @param isWhole whether the peer is known since its start */
  open(isWhole: boolean): PeerTenants {
    const peer: PeerTenants = { tokens: new Map(), isWhole };
    this.#peers.add(peer);
    return peer;
  }

  close(peer: PeerTenants): void {
    if (this.#peers.delete(peer)) this.#count -= peer.tokens.size;
  }

  /** New tokens of each tenant. The sums of a peer only grow, so a late update adds nothing. */
  take(peer: PeerTenants, spendings: readonly Spending[]): Spending[] {
    const news: Spending[] = [];
    for (const { tenant, tokens } of spendings) {
      const known = peer.tokens.get(tenant);
      const before = known ?? 0;
      if (!(tokens > before)) continue;
      const isNews = known !== undefined || peer.isWhole;
      if (known === undefined) this.#makeRoom(peer);
      else peer.tokens.delete(tenant);
      peer.tokens.set(tenant, tokens);
      if (isNews) news.push({ tenant, tokens: tokens - before });
    }
    return news;
  }

  /** Takes a place for a tenant of a peer. */
  #makeRoom(peer: PeerTenants): void {
    if (this.#count < this.#max) {
      this.#count++;
      return;
    }
    // A peer with more than most have is not compared with all of them for each of its tenants.
    const largest = peer.tokens.size > this.#count / this.#peers.size ? peer : this.#largest();
    const [oldest] = largest.tokens.keys();
    largest.tokens.delete(oldest!);
    largest.isWhole = false;
    this.forgotten++;
  }

  #largest(): PeerTenants {
    let largest: PeerTenants | undefined;
    for (const peer of this.#peers) if (peer.tokens.size > (largest?.tokens.size ?? -1)) largest = peer;
    return largest!;
  }
}
