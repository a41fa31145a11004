import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { LoadRow } from '../../dist/src/replication/messages.js';
import { PEERS_MAX, type PeerUpdate, PeerView, SILENCE_MS } from '../../dist/src/replication/peer-view.js';

const ENDPOINT = 7n;

function row(endpoint: bigint, requests: number, charged = requests): LoadRow {
  return { endpoint, requests, tokens: 10 * requests, prefill: 0, prompt: 0, output: 0, pending: 0, held: 0, charged };
}

function update(sequence: number, parts: Partial<PeerUpdate> = {}): PeerUpdate {
  return {
    kind: 'update',
    replica: 'a',
    epoch: 1,
    sequence,
    sentAtMs: 0,
    seedCheck: 0,
    full: false,
    leaves: false,
    loads: [],
    placements: [],
    ejections: [],
    spendings: [],
    turns: [],
    learned: undefined,
    ...parts,
  };
}

/** What a replica says: every step sets the load of one endpoint, or is a full update. */
const steps = fc.array(fc.record({ endpoint: fc.bigInt(0n, 3n), requests: fc.nat(9), full: fc.boolean() }), {
  minLength: 1,
  maxLength: 30,
});

function said(history: readonly { endpoint: bigint; requests: number; full: boolean }[]) {
  const now = new Map<bigint, LoadRow>();
  const updates = history.map(({ endpoint, requests, full }, i) => {
    now.set(endpoint, row(endpoint, requests));
    return update(i + 1, { full, loads: full ? [...now.values()] : [now.get(endpoint)!] });
  });
  return { updates, now };
}

describe('what a replica knows of a peer', () => {
  it('updates in any order, twice or more often, leave the last load, counted once', () => {
    const shuffled = steps.chain((history) => {
      const { updates, now } = said(history);
      const doubled = fc.shuffledSubarray([...updates, ...updates], { minLength: 2 * updates.length });
      return doubled.map((order) => ({ order, now }));
    });
    fc.assert(
      fc.property(shuffled, ({ order, now }) => {
        const view = new PeerView();
        for (const each of order) view.receive(each, 0);
        for (const [endpoint, { requests }] of now) expect(view.load(endpoint).requests).toBe(requests);
        expect(view.incomplete()).toEqual([]);
      }),
    );
  });

  it('lost updates are mended by the next full one', () => {
    fc.assert(
      fc.property(steps, fc.infiniteStream(fc.boolean()), (history, lost) => {
        const { updates, now } = said(history);
        const view = new PeerView();
        for (const each of updates) if (!lost.next().value) view.receive(each, 0);
        view.receive(update(updates.length + 1, { full: true, loads: [...now.values()] }), 0);
        for (const [endpoint, { requests }] of now) expect(view.load(endpoint).requests).toBe(requests);
      }),
    );
  });

  it('a lost update is a gap, told once, until its index has been taken over', () => {
    const view = new PeerView();
    view.receive(update(1), 0);
    expect(view.receive(update(3), 0).gap).toBe(true);
    expect(view.receive(update(4), 0).gap).toBe(false);
    expect(view.incomplete()).toMatchObject([{ replica: 'a' }]);
    view.completed('a', 1, 3);
    expect(view.incomplete()).toEqual([]);
    expect(view.receive(update(5), 0).gap).toBe(false);
  });

  it('an update that comes late closes its gap', () => {
    const view = new PeerView();
    for (const sequence of [1, 3, 4]) view.receive(update(sequence), 0);
    view.receive(update(2), 0);
    expect(view.incomplete()).toEqual([]);
  });

  it('the load of a silent peer is freed once, within a second, and counts again with its next full update', () => {
    const view = new PeerView();
    view.receive(update(1, { loads: [row(ENDPOINT, 5)] }), 0);
    expect(view.load(ENDPOINT)).toMatchObject({ requests: 5, charged: 5 });
    expect(view.expire(SILENCE_MS)).toEqual([]);
    expect(view.expire(SILENCE_MS + 1)).toEqual(['a']);
    expect(view.expire(SILENCE_MS + 2)).toEqual([]);
    expect(view.load(ENDPOINT).requests).toBe(0);
    expect(view.receive(update(2), 1_000).appeared).toBe(true);
    expect(view.load(ENDPOINT).requests).toBe(0);
    view.takeChanged();
    view.receive(update(3, { full: true, loads: [row(ENDPOINT, 4, 6)] }), 1_000);
    expect(view.takeChanged()).toContain(ENDPOINT);
    expect(view.load(ENDPOINT)).toMatchObject({ requests: 4, charged: 1 });
  });

  it('a replica that leaves frees its load at once', () => {
    const view = new PeerView();
    view.receive(update(1, { loads: [row(ENDPOINT, 5)] }), 0);
    view.receive(update(2, { leaves: true, full: true }), 1);
    expect([view.load(ENDPOINT).requests, view.live]).toEqual([0, 0]);
  });

  it('a restarted replica frees what its earlier process said when that is silent', () => {
    const view = new PeerView();
    view.receive(update(9, { loads: [row(ENDPOINT, 5)] }), 0);
    view.receive(update(1, { epoch: 2, loads: [row(8n, 1)] }), 1);
    expect(view.expire(SILENCE_MS + 1)).toEqual([]);
    expect([view.load(ENDPOINT).requests, view.load(8n).requests]).toEqual([0, 1]);
    expect(view.readings(SILENCE_MS + 1)).toMatchObject([{ replica: 'a', epoch: 2, live: true }]);
  });

  it('a replica that leaves and starts again is the process that started', () => {
    const view = new PeerView();
    view.receive(update(1, { loads: [row(ENDPOINT, 5)] }), 0);
    view.receive(update(2, { leaves: true, full: true }), 1);
    view.receive(update(1, { epoch: 2 }), 2);
    expect(view.readings(2)).toMatchObject([{ epoch: 2, live: true }]);
  });

  it.each([0, 2, 1e15])('a message in the name of another process (%i) hides no live one', (epoch) => {
    const view = new PeerView();
    view.receive(update(1, { loads: [row(ENDPOINT, 5)] }), 0);
    view.receive(update(1e9, { epoch, full: true }), 1);
    view.receive(update(2, { loads: [row(ENDPOINT, 6)] }), 2);
    expect(view.load(ENDPOINT).requests).toBe(6);
    view.receive(update(3), SILENCE_MS);
    expect(view.expire(SILENCE_MS + 2)).toEqual([]);
    expect([view.load(ENDPOINT).requests, view.live]).toEqual([6, 1]);
    expect(view.readings(SILENCE_MS + 2)).toMatchObject([{ epoch: 1, live: true }]);
  });

  it('the place of a replica is that of its name among the live ones, each of which counts once', () => {
    const view = new PeerView();
    expect(view.placeOf('b')).toEqual({ place: 0, replicas: 1 });
    for (const replica of ['c', 'a', 'd']) view.receive(update(1, { replica }), 0);
    view.receive(update(1, { replica: 'a', epoch: 2 }), 0);
    expect(view.placeOf('b')).toEqual({ place: 1, replicas: 4 });
    const { changes } = view;
    for (const replica of ['c', 'd']) view.receive(update(2, { replica }), SILENCE_MS);
    view.expire(SILENCE_MS + 1);
    expect(view.placeOf('b')).toEqual({ place: 0, replicas: 3 });
    expect(view.changes).toBe(changes + 2);
    // Its own process of before does not take a place of its own.
    view.receive(update(1, { replica: 'b', epoch: 0 }), SILENCE_MS + 1);
    expect(view.placeOf('b')).toEqual({ place: 0, replicas: 3 });
  });

  it('the sum of the loads of all peers stays within what the columns hold', () => {
    const view = new PeerView();
    for (const replica of ['a', 'b', 'c']) view.receive(update(1, { replica, loads: [row(ENDPOINT, 2 ** 31 - 1)] }), 0);
    expect(view.load(ENDPOINT)).toMatchObject({ requests: 2 ** 31 - 1, charged: 2 ** 31 - 1 });
  });

  it('requests sent there are counted once between two calls', () => {
    const view = new PeerView();
    view.receive(update(1, { loads: [row(ENDPOINT, 2, 10)] }), 0);
    expect(view.load(ENDPOINT).charged).toBe(10);
    expect(view.load(ENDPOINT).charged).toBe(0);
    view.receive(update(2, { loads: [row(ENDPOINT, 2, 13)] }), 0);
    expect(view.load(ENDPOINT).charged).toBe(3);
  });

  it('tokens that tenants used are told once, however often they are repeated', () => {
    const view = new PeerView();
    const spendings = [{ tenant: 't', tokens: 100 }];
    expect(view.receive(update(1, { spendings }), 0).spent).toEqual([{ tenant: 't', tokens: 100 }]);
    expect(view.receive(update(2, { spendings }), 0).spent).toEqual([]);
  });

  it('tokens that were used before a peer was heard are no news', () => {
    const view = new PeerView();
    const old = { sentAtMs: 1_000_000 };
    expect(view.receive(update(1, { ...old, spendings: [{ tenant: 't', tokens: 100 }] }), 0).spent).toEqual([]);
    const spent = view.receive(update(2, { ...old, spendings: [{ tenant: 't', tokens: 130 }] }), 0).spent;
    expect(spent).toEqual([{ tenant: 't', tokens: 30 }]);
  });

  it('peers beyond the bound are ignored while all others are heard', () => {
    const view = new PeerView();
    for (let i = 0; i < PEERS_MAX; i++) view.receive(update(1, { replica: `r${i}` }), 0);
    expect(view.receive(update(1, { replica: 'one more' }), 0)).toMatchObject({ ignored: true });
  });

  it('a peer beyond the bound takes the place of the one that has been silent for longest', () => {
    const view = new PeerView();
    for (let i = 0; i < PEERS_MAX; i++) view.receive(update(1, { replica: `r${i}` }), i === 5 ? 0 : 10);
    view.receive(update(2, { replica: 'r7', loads: [row(ENDPOINT, 3)] }), SILENCE_MS + 10);
    view.expire(SILENCE_MS + 11);
    expect(view.receive(update(1, { replica: 'one more' }), SILENCE_MS + 11).appeared).toBe(true);
    const names = view.readings(SILENCE_MS + 11).map(({ replica }) => replica);
    expect([names.length, names.includes('r5'), names.includes('one more')]).toEqual([PEERS_MAX, false, true]);
    expect([view.live, view.load(ENDPOINT).requests]).toEqual([2, 3]);
  });

  it('messages that a slow connection delivers late are no sign of life', () => {
    const view = new PeerView();
    view.receive(update(1, { loads: [row(ENDPOINT, 3)] }), 0, 5);
    expect(view.expire(5_000)).toEqual(['a']);
    const { appeared } = view.receive(update(2, { loads: [row(ENDPOINT, 4)] }), 5_000, 4_905);
    expect([appeared, view.live, view.load(ENDPOINT).requests]).toEqual([false, 0, 0]);
    view.receive(update(3, { loads: [row(ENDPOINT, 1)] }), 5_000, 5 + SILENCE_MS);
    expect([view.live, view.load(ENDPOINT).requests]).toEqual([1, 1]);
  });

  it('the load of a late message counts until 0.7 s after its sending', () => {
    const view = new PeerView();
    view.receive(update(1), 0, 5);
    view.receive(update(2, { loads: [row(ENDPOINT, 3)] }), 1_000, 305);
    expect(view.expire(700 + SILENCE_MS)).toEqual([]);
    expect(view.expire(701 + SILENCE_MS)).toEqual(['a']);
  });

  it('a path that has become longer for good is the usual one after 20 s', () => {
    const view = new PeerView();
    view.receive(update(1), 0, 5);
    const lives = Array.from({ length: 30 }, (_, second) => {
      view.receive(update(second + 2, { loads: [row(ENDPOINT, 1)] }), 1_000 * (second + 1), 2_000);
      return view.live;
    });
    expect([lives[0], lives.at(-1)]).toEqual([0, 1]);
  });
});
