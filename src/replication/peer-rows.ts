import { CORE } from '../core/core-names.js';
import { EndpointSums, type Row } from './endpoint-sums.js';
import type { LoadRow } from './messages.js';

/**
 * Bound on the rows of all peers together, of some 450 bytes each: 64 replicas that have load on 4,096 endpoints each.
 */
export const ROWS_MAX = 262_144;
/** Bound on the rows of a peer. */
const PEER_ROWS_MAX = CORE.ENDPOINTS_MAX;

/** Loads that one peer has told, in the order in which endpoints were told first. */
export interface PeerRows {
  readonly byEndpoint: Map<bigint, Row>;
  /** Whether the peer is heard: the rows of the others give way first. */
  isHeard: boolean;
}

/**
 * Loads of all peers by endpoint. At the bound the rows of silent peers give way, the one that has been silent for
 * longest first; they count no more in any case. Where all are heard it is a row of the peer that has most.
 */
export class AllRows {
  readonly sums = new EndpointSums();
  readonly #peers = new Set<PeerRows>();
  /** Peers that are not heard and have rows, in the order in which they became so. */
  readonly #silent = new Set<PeerRows>();
  readonly #max: number;
  #count = 0;
  /** Rows that have given way while their peers were heard. */
  forgotten = 0;

  /** @param max bound on the rows */
  constructor(max = ROWS_MAX) {
    this.#max = max;
  }

  open(): PeerRows {
    const peer: PeerRows = { byEndpoint: new Map(), isHeard: false };
    this.#peers.add(peer);
    return peer;
  }

  close(peer: PeerRows): void {
    this.clear(peer);
    this.#peers.delete(peer);
  }

  /** Drops all rows of a peer. */
  clear(peer: PeerRows): void {
    const { byEndpoint } = peer;
    this.#silent.delete(peer);
    for (const [endpoint, row] of byEndpoint) this.sums.drop(endpoint, row);
    this.#count -= byEndpoint.size;
    byEndpoint.clear();
  }

  /** Notes whether a peer is heard. */
  setHeard(peer: PeerRows, isHeard: boolean): void {
    peer.isHeard = isHeard;
    if (isHeard) this.#silent.delete(peer);
    else if (peer.byEndpoint.size > 0) this.#silent.add(peer);
  }

  /** The row of an endpoint, a new one if there is none; undefined = the peer has as many as it may have. */
  rowOf(peer: PeerRows, load: LoadRow): Row | undefined {
    const { byEndpoint } = peer;
    const known = byEndpoint.get(load.endpoint);
    if (known !== undefined) return known;
    if (byEndpoint.size >= PEER_ROWS_MAX) return undefined;
    if (this.#count >= this.#max) this.#makeRoom(peer);
    const row = this.sums.open(load);
    byEndpoint.set(load.endpoint, row);
    this.#count++;
    if (!peer.isHeard) this.#silent.add(peer);
    return row;
  }

  /** Drops the rows of a peer that were told before an update. */
  dropBefore(peer: PeerRows, sequence: number): void {
    for (const [endpoint, row] of peer.byEndpoint) if (row.sequence < sequence) this.#drop(peer, endpoint, row);
  }

  #makeRoom(peer: PeerRows): void {
    for (const silent of this.#silent) {
      if (silent !== peer) this.clear(silent);
      if (this.#count < this.#max) return;
    }
    // A peer with more than most have is not compared with all of them for each of its rows.
    const largest = peer.byEndpoint.size > this.#count / this.#peers.size ? peer : this.#largest();
    const [endpoint, row] = largest.byEndpoint.entries().next().value!;
    this.#drop(largest, endpoint, row);
    this.forgotten++;
  }

  #largest(): PeerRows {
    let largest: PeerRows | undefined;
    for (const peer of this.#peers) {
      if (peer.byEndpoint.size > (largest?.byEndpoint.size ?? -1)) largest = peer;
    }
    return largest!;
  }

  #drop({ byEndpoint }: PeerRows, endpoint: bigint, row: Row): void {
    this.sums.drop(endpoint, row);
    byEndpoint.delete(endpoint);
    this.#count--;
  }
}
