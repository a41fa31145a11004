import { describe, expect, it } from 'vitest';
import { peerTag } from '../../dist/src/core/session-news.js';
import {
  decodeMessage,
  encodeMessage,
  type Message,
  type SessionsBody,
  type ToldSession,
} from '../../dist/src/replication/messages.js';
import { replicaAt, START_MS, updateOf } from './replicator-parts.ts';

function sessionOf(anchor: bigint, parts: Partial<ToldSession> = {}): ToldSession {
  return {
    ...{ begins: false, endpoint: 1n, before: 0n, anchor, earlyAnchor: 0n, prefix: 0n, within: 0n },
    ...{ tokens: 100, shared: 0, withinTokens: 0 },
    ...{ named: false, turns: 1, ageMs: 5, waits: false, lapsedAfter: undefined, forgotten: false, peer: 0 },
    ...parts,
  };
}

/** A replica that counts sessions, and its peers, which the test speaks for. */
class Joining {
  readonly parts = replicaAt({ sharesIndex: false });
  #serial = 100;

  constructor(pieces: (readonly ToldSession[])[] = []) {
    this.parts.pool.pieces = pieces;
  }

  /** Lets peers be heard, and time pass. */
  pass(peers: readonly string[], ms = 5): void {
    const { replicator, clock } = this.parts;
    for (let left = ms; left > 0; left -= 5) {
      clock.ms += 5;
      for (const peer of peers) this.#receive(updateOf(peer, ++this.#serial, clock.ms, { full: true }));
      replicator.tick(clock.ms);
    }
  }

  piece(replica: string, part: Partial<SessionsBody>): void {
    const { clock } = this.parts;
    const head = { replica, epoch: START_MS, serial: ++this.#serial, sentAtMs: START_MS + clock.ms, to: 'this one' };
    const body = { kind: 'sessions' as const, seedCheck: 7, last: false, joined: true, sessions: [] };
    this.#receive({ ...head, ...body, ...part });
  }

  request(replica: string): void {
    const { clock } = this.parts;
    const head = { replica, epoch: START_MS, serial: ++this.#serial, sentAtMs: START_MS + clock.ms, to: 'this one' };
    this.#receive({ ...head, kind: 'request', index: false, sessions: true });
  }

  #receive(message: Message): void {
    this.parts.replicator.receive(encodeMessage(message), this.parts.clock.ms);
  }

  /** Takes what was sent since the last call. */
  sent(): Message[] {
    return this.parts.link.sent.splice(0).map((bytes) => decodeMessage(bytes));
  }

  /** Replicas that were asked for their sessions since the last call. */
  asked(): string[] {
    return this.sent().flatMap((each) => (each.kind === 'request' && each.sessions ? [each.to] : []));
  }

  get joined(): boolean {
    return this.parts.replicator.joined;
  }

  get anchors(): readonly bigint[] {
    return this.parts.pool.learnt.map(([, { anchor }]) => anchor);
  }
}

describe('sessions for a replica that joins', () => {
  it('a replica asks the first peer that it hears, and has joined with the last piece', () => {
    const joining = new Joining();
    joining.pass([]);
    expect([joining.asked(), joining.joined]).toEqual([[], false]);
    joining.pass(['a', 'b']);
    expect(joining.asked()).toEqual(['a']);
    joining.piece('a', { sessions: [sessionOf(1n)] });
    expect(joining.joined).toBe(false);
    joining.piece('a', { sessions: [sessionOf(2n)], last: true });
    expect([joining.joined, joining.anchors]).toEqual([true, [1n, 2n]]);
    expect(joining.parts.replicator.counts.sessionsTaken).toBe(2);
    joining.pass(['a', 'b'], 3_000);
    expect(joining.asked()).toEqual([]);
    expect(joining.parts.log.filter((line) => line.includes('were taken over'))).toHaveLength(1);
  });

  it('a replica without peers has joined', () => {
    const joining = new Joining();
    joining.parts.replicator.alone();
    expect(joining.joined).toBe(true);
  });

  it('a replica that counts no sessions asks for none, and asks once it counts them', () => {
    const joining = new Joining();
    joining.parts.pool.pieces = undefined;
    joining.pass(['a'], 50);
    expect([joining.asked(), joining.joined]).toEqual([[], true]);
    joining.parts.pool.pieces = [];
    joining.pass(['a']);
    expect([joining.asked(), joining.joined]).toEqual([['a'], false]);
  });

  it('a replica that is told none, or by one that has not joined itself, asks the next one', () => {
    const joining = new Joining();
    joining.pass(['a', 'b', 'c']);
    joining.piece('a', { last: true });
    joining.pass(['a', 'b', 'c']);
    joining.piece('b', { last: true, joined: false, sessions: [sessionOf(1n)] });
    joining.pass(['a', 'b', 'c']);
    expect([joining.asked(), joining.joined]).toEqual([['a', 'b', 'c'], false]);
    joining.piece('c', { last: true });
    joining.pass(['a', 'b', 'c']);
    expect([joining.joined, joining.anchors]).toEqual([true, [1n]]);
  });

  it('a replica asks the next one after a silence of a second, and says so where none is left', () => {
    const joining = new Joining();
    joining.pass(['a', 'b'], 1_000);
    expect(joining.asked()).toEqual(['a']);
    joining.pass(['a', 'b'], 10);
    expect(joining.asked()).toEqual(['b']);
    joining.piece('b', { sessions: [sessionOf(1n)] });
    // What comes late counts no more.
    joining.piece('a', { sessions: [sessionOf(2n)] });
    joining.pass(['a', 'b'], 1_010);
    expect([joining.joined, joining.anchors]).toEqual([true, [1n]]);
    expect(joining.parts.log.filter((line) => line.startsWith('a replica has not told all its sessions'))).toHaveLength(
      1,
    );
  });

  it('a replica asks 16 others at most', () => {
    const joining = new Joining();
    const peers = Array.from({ length: 20 }, (_, i) => `${i}`);
    joining.pass(peers);
    for (let i = 0; i < 20; i++) {
      joining.piece(`${i}`, { last: true });
      joining.pass(peers);
    }
    expect([joining.asked().length, joining.joined]).toEqual([16, true]);
  });

  it('sessions with hashes of another seed are passed over', () => {
    const joining = new Joining();
    joining.pass(['a']);
    joining.piece('a', { seedCheck: 8, last: true, sessions: [sessionOf(1n)] });
    expect(joining.anchors).toEqual([]);
  });

  it('a turn that ran or waited in an earlier process of this replica is over', () => {
    const joining = new Joining();
    joining.pass(['a']);
    const peer = peerTag('this one');
    const [ran, waited] = [sessionOf(1n, { begins: true, peer }), sessionOf(2n, { waits: true, peer })];
    joining.piece('a', { sessions: [ran, waited, sessionOf(3n, { begins: true, peer: 9 })], last: true });
    expect(joining.parts.pool.learnt.map(([, { begins, waits, peer }]) => [begins, waits, peer])).toEqual([
      [false, false, 0],
      [false, false, 0],
      [true, false, 9],
    ]);
  });
});

describe('sessions that a replica tells one that joins', () => {
  const piecesOf = (messages: readonly Message[]) =>
    messages.flatMap((each) => (each.kind === 'sessions' ? [each] : []));

  it('a piece is sent with each tick, the last one without sessions', () => {
    const telling = new Joining([[sessionOf(1n), sessionOf(2n)], [sessionOf(3n)]]);
    telling.parts.replicator.alone();
    telling.request('late');
    const told = [1, 2, 3, 4].map(() => {
      telling.pass([]);
      return piecesOf(telling.sent()).map(({ to, sessions, last, joined }) => [to, sessions.length, last, joined]);
    });
    expect(told).toEqual([[['late', 2, false, true]], [['late', 1, false, true]], [['late', 0, true, true]], []]);
    expect(telling.parts.replicator.counts.sessionsSent).toBe(3);
  });

  it('a replica that has not joined itself says so', () => {
    const telling = new Joining([[sessionOf(1n)]]);
    telling.request('late');
    telling.pass([], 20);
    expect(piecesOf(telling.sent()).map(({ joined }) => joined)).toEqual([false, false]);
  });

  it('a replica tells four others at one time, and a fifth one at once that it is told none', () => {
    const telling = new Joining([[sessionOf(1n)]]);
    for (const name of ['a', 'b', 'c', 'd', 'e']) telling.request(name);
    expect(piecesOf(telling.sent()).map(({ to, last }) => [to, last])).toEqual([['e', true]]);
    telling.pass([], 10);
    expect(piecesOf(telling.sent()).filter(({ last }) => last)).toHaveLength(4);
  });

  it('a replica that counts no sessions tells none', () => {
    const telling = new Joining([[sessionOf(1n)]]);
    telling.parts.pool.pieces = undefined;
    telling.request('late');
    expect(piecesOf(telling.sent()).map(({ sessions, last }) => [sessions.length, last])).toEqual([[0, true]]);
  });
});
