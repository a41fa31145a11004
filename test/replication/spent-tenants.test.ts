import { describe, expect, it } from 'vitest';
import type { Update } from '../../dist/src/replication/messages.js';
import { PeerView, SILENCE_MS } from '../../dist/src/replication/peer-view.js';
import { SpentTenants, TENANTS_MAX } from '../../dist/src/replication/spent-tenants.js';
import { updateOf } from './replicator-parts.ts';

const spending = (tenant: string, tokens = 1) => ({ tenant, tokens });
const many = (count: number, of: string) => Array.from({ length: count }, (_, i) => spending(`${of}${i}`));

describe('what tenants have used at peers', () => {
  it('tenants are bounded over all peers together: 256 peers that invent some hold as many as one', () => {
    const spent = new SpentTenants(1_000);
    const peers = Array.from({ length: 256 }, () => spent.open(true));
    for (const [i, peer] of peers.entries()) spent.take(peer, many(500, `p${i} `));
    expect(peers.reduce((sum, { tokens }) => sum + tokens.size, 0)).toBe(1_000);
    expect(spent.forgotten).toBe(256 * 500 - 1_000);
  });

  it('tenants of the peer with most give way, the one told least lately first', () => {
    const spent = new SpentTenants(10);
    const [good, stranger] = [spent.open(true), spent.open(true)];
    spent.take(stranger, many(8, 's'));
    spent.take(stranger, [spending('s0', 2)]);
    spent.take(good, many(4, 'g'));
    expect([...good.tokens.keys()]).toEqual(['g0', 'g1', 'g2', 'g3']);
    expect([...stranger.tokens.keys()]).toEqual(['s3', 's4', 's5', 's6', 's7', 's0']);
  });

  it('a tenant that had given way is told without news, and its next tokens are news again', () => {
    const spent = new SpentTenants(2);
    const peer = spent.open(true);
    expect(spent.take(peer, [spending('a', 100)])).toEqual([spending('a', 100)]);
    spent.take(peer, many(2, 'other'));
    expect(spent.take(peer, [spending('a', 120)])).toEqual([]);
    expect(spent.take(peer, [spending('a', 150)])).toEqual([spending('a', 30)]);
  });

  it('the tenants of a peer that is forgotten make room', () => {
    const spent = new SpentTenants(4);
    const view = new PeerView(spent);
    const told = (replica: string, epoch: number, tenants: string, nowMs: number) =>
      view.receive(updateOf(replica, 1, nowMs, { epoch, spendings: many(2, tenants) }) as Update, nowMs);
    told('a', 1, 'x', 0);
    told('b', 1, 'y', 0);
    view.expire(SILENCE_MS + 1);
    // Another process of the replica: the silent one is forgotten first.
    told('a', 2, 'z', SILENCE_MS + 2);
    expect(spent.forgotten).toBe(0);
  });

  it('the bound of a replica is 100,000 tenants', () => {
    const spent = new SpentTenants();
    const [one, other] = [spent.open(true), spent.open(true)];
    spent.take(one, many(TENANTS_MAX, 'a'));
    spent.take(other, many(10, 'b'));
    expect([one.tokens.size + other.tokens.size, spent.forgotten]).toEqual([100_000, 10]);
  });
});
