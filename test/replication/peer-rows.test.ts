import { describe, expect, it } from 'vitest';
import type { LoadRow } from '../../dist/src/replication/messages.js';
import { AllRows, type PeerRows } from '../../dist/src/replication/peer-rows.js';

const load = (endpoint: number): LoadRow => {
  const none = { tokens: 0, prefill: 0, prompt: 0, output: 0, pending: 0, held: 0, charged: 0 };
  return { endpoint: BigInt(endpoint), requests: 1, ...none };
};

/** Rows of some peers in a table of ten. */
class Table {
  readonly rows = new AllRows(10);
  readonly #next = new Map<PeerRows, number>();

  peer(): PeerRows {
    const peer = this.rows.open();
    this.rows.setHeard(peer, true);
    return peer;
  }

  /** The peer tells of load on so many further endpoints. */
  tell(peer: PeerRows, count: number): void {
    const from = this.#next.get(peer) ?? 0;
    for (let i = from; i < from + count; i++) {
      const row = this.rows.rowOf(peer, load(i))!;
      this.rows.sums.set(row, load(i), peer.isHeard);
    }
    this.#next.set(peer, from + count);
  }

  sum(endpoint: number): number {
    return this.rows.sums.take(BigInt(endpoint)).requests;
  }
}

const endpointsOf = ({ byEndpoint }: PeerRows): number[] => [...byEndpoint.keys()].map(Number);

describe('loads of all peers', () => {
  it('the loads of 256 peers that invent some are no more than those of one may be', () => {
    const table = new Table();
    const peers = Array.from({ length: 256 }, () => table.peer());
    for (const peer of peers) table.tell(peer, 20);
    expect(peers.reduce((sum, { byEndpoint }) => sum + byEndpoint.size, 0)).toBe(10);
    expect(table.rows.forgotten).toBe(256 * 20 - 10);
  });

  it('the loads of the peer that has been silent for longest give way first, and are not counted', () => {
    const table = new Table();
    const [one, two, good] = [table.peer(), table.peer(), table.peer()];
    table.tell(one, 4);
    table.tell(two, 4);
    table.rows.setHeard(two, false);
    table.rows.setHeard(one, false);
    table.tell(good, 3);
    expect([one, two, good].map(({ byEndpoint }) => byEndpoint.size)).toEqual([4, 0, 3]);
    expect(table.rows.forgotten).toBe(0);
  });

  it('a load of the peer with most gives way where all are heard, the one told first, and leaves its sum', () => {
    const table = new Table();
    const [good, stranger] = [table.peer(), table.peer()];
    table.tell(stranger, 9);
    table.tell(good, 3);
    expect(endpointsOf(good)).toEqual([0, 1, 2]);
    expect(endpointsOf(stranger)).toEqual([2, 3, 4, 5, 6, 7, 8]);
    expect([0, 1, 2, 3].map((endpoint) => table.sum(endpoint))).toEqual([1, 1, 2, 1]);
    expect(table.rows.forgotten).toBe(2);
  });

  it('the loads that a peer takes back, and those of a peer that is forgotten, make room', () => {
    const table = new Table();
    const [one, other] = [table.peer(), table.peer()];
    table.tell(one, 10);
    table.rows.dropBefore(one, 1);
    table.tell(one, 5);
    table.rows.close(one);
    table.tell(other, 10);
    expect(other.byEndpoint.size).toBe(10);
    expect(table.rows.forgotten).toBe(0);
  });

  it('the bound of a replica is 262,144 loads', () => {
    const rows = new AllRows();
    const peers = Array.from({ length: 26 }, () => rows.open());
    for (const peer of peers) {
      rows.setHeard(peer, true);
      for (let i = 0; i < 10_240; i++) rows.rowOf(peer, load(i));
    }
    expect(peers.reduce((sum, { byEndpoint }) => sum + byEndpoint.size, 0)).toBe(262_144);
  });
});
