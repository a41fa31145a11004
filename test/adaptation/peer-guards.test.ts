import { describe, expect, it } from 'vitest';
import { Guard, type Transition } from '../../dist/src/adaptation/guard.js';
import type { Evidence } from '../../dist/src/adaptation/guard-rules.js';
import { type GuardNews, PeerGuards } from '../../dist/src/adaptation/peer-guards.js';
import { goodEvidence, row, usual } from './samples.ts';

const TICK_MS = 500;

class Replica {
  readonly peers: PeerGuards;
  readonly guard: Guard;
  readonly transitions: Transition[] = [];
  evidence: Partial<Evidence> = {};
  /** Cost with learned costs, as a factor on that with the configured weights. */
  factor = 0.85;
  /** Cost of all requests, as a factor. */
  crowd = 1;

  constructor(name: string, seed = 11) {
    this.peers = new PeerGuards(name);
    this.guard = new Guard('auto', usual.guard, row(seed), false, this.peers);
  }

  get path(): readonly string[] {
    return this.transitions.map(({ to }) => to);
  }
}

/** Guards that hear each other in every tick, each with five requests in it. */
class Group {
  nowMs = 0;
  readonly #random = row(7);

  live(replicas: readonly Replica[], minutes: number, look: () => void = () => undefined): void {
    for (const end = this.nowMs + minutes * 60_000; this.nowMs < end; this.nowMs += TICK_MS) {
      for (const one of replicas) {
        const { transition } = one.guard.tick(this.nowMs, () => ({ ...goodEvidence, ...one.evidence }));
        if (transition !== undefined) one.transitions.push(transition);
        for (const other of replicas) other.peers.hear(one.guard.news(this.nowMs), this.nowMs);
        for (let i = 0; i < 5; i++) this.#request(one);
      }
      look();
    }
  }

  #request({ guard, factor, crowd }: Replica): void {
    const cost = crowd * (guard.arm === 'learned' ? factor : 1) * Math.exp(this.#random() - 0.5);
    guard.note(guard.epoch, this.nowMs, { cost, reference: 1, promptTokens: 1000 });
  }
}

describe('guards of several replicas', () => {
  it('one arm decides at all replicas, that of the first by name', () => {
    const replicas = [new Replica('a', 1), new Replica('b', 2), new Replica('c', 3)];
    let [ticks, apart] = [0, 0];
    new Group().live(replicas, 60, () => {
      ticks++;
      apart += Number(replicas.some(({ guard }) => guard.arm !== replicas[0]!.guard.arm));
    });
    expect(replicas.map(({ guard }) => guard.state)).toEqual(['active', 'active', 'active']);
    expect(apart / ticks).toBeLessThan(0.02);
  });

  it('guards that do not hear each other decide in different epochs', () => {
    const replicas = [new Replica('a', 1), new Replica('b', 2)];
    const groups = [new Group(), new Group()];
    let [ticks, apart] = [0, 0];
    for (let i = 0; i < 3_600; i++) {
      replicas.forEach((replica, which) => {
        groups[which]!.live([replica], TICK_MS / 60_000);
      });
      ticks++;
      apart += Number(replicas[0]!.guard.arm !== replicas[1]!.guard.arm);
    }
    expect(apart / ticks).toBeGreaterThan(0.02);
  });

  it('a crowd that comes to all replicas makes none stop, as the first one calls the configured weights', () => {
    const group = new Group();
    const replicas = [new Replica('a', 1), new Replica('b', 2), new Replica('c', 3)];
    group.live(replicas, 60);
    let [doubts, apart] = [0, 0];
    for (const each of replicas) each.crowd = 3;
    group.live(replicas, 10, () => {
      doubts += Number(replicas.every(({ guard }) => guard.arm === 'static'));
      apart += Number(replicas.some(({ guard }) => guard.arm !== replicas[0]!.guard.arm));
    });
    expect(doubts).toBeGreaterThan(0);
    expect(apart).toBeLessThan(20);
    for (const { path } of replicas) expect(path).toEqual(['canary', 'active']);
  });

  it('a replica that alone sees learned costs become dear stops all, when the first one has not looked into it', () => {
    const group = new Group();
    const replicas = [new Replica('a', 1), new Replica('b', 2)];
    group.live(replicas, 60);
    replicas[1]!.factor = 4;
    group.live(replicas, 3);
    for (const { path } of replicas) expect(path).toEqual(['canary', 'active', 'fallback']);
    const { reason } = replicas[1]!.transitions.at(-1)!;
    expect(reason).toMatch(/^requests cost \d\.\d times as much as with the configured weights just before$/);
  });

  it('a replica that joins an active group needs no canary of its own', () => {
    const group = new Group();
    const first = new Replica('a', 1);
    group.live([first], 60);
    expect(first.guard.state).toBe('active');
    const second = new Replica('b', 2);
    group.live([first, second], 0.1);
    expect(second.path).toEqual(['canary', 'active']);
    expect(second.transitions[1]!.reason).toContain('replica a has found');
  });

  it('a replica that joins waits until its own predictions hold', () => {
    const group = new Group();
    const [first, second] = [new Replica('a', 1), new Replica('b', 2)];
    group.live([first], 60);
    second.evidence = { samples: 10 };
    group.live([first, second], 10);
    expect([second.guard.state, second.guard.arm]).toEqual(['shadow', 'static']);
  });

  it('a stop at one replica is made by all, once, with the same pause', () => {
    const group = new Group();
    const replicas = [new Replica('a', 1), new Replica('b', 2), new Replica('c', 3)];
    group.live(replicas, 60);
    // Only one replica sees that its model is unreliable.
    replicas[1]!.evidence = { correlation: 0 };
    group.live(replicas, 0.1);
    for (const { guard } of replicas)
      expect([guard.state, guard.arm, guard.fallbacks]).toEqual(['fallback', 'static', 1]);
    expect(replicas[0]!.transitions.at(-1)!.reason).toContain('replica b found: predicted and observed times');
    const pauses = replicas.map(({ guard }) => guard.news(group.nowMs).pauseMs);
    expect(Math.max(...pauses) - Math.min(...pauses)).toBeLessThanOrEqual(TICK_MS);
    replicas[1]!.evidence = {};
    group.live(replicas, 30);
    expect(replicas.map(({ path }) => path.filter((to) => to === 'fallback').length)).toEqual([1, 1, 1]);
    expect(replicas.map(({ guard }) => guard.state === 'canary' || guard.state === 'active')).toEqual([
      true,
      true,
      true,
    ]);
  });

  it('a replica that joins during the pause does not try learned costs before its end', () => {
    const group = new Group();
    const [first, second] = [new Replica('a', 1), new Replica('b', 2)];
    group.live([first], 60);
    first.evidence = { correlation: 0 };
    group.live([first, second], 0.1);
    group.live([second], 4);
    expect([second.guard.state, second.path]).toEqual(['shadow', []]);
    group.live([second], 2);
    expect(second.path[0]).toBe('canary');
  });

  it('a guard keeps step with no replica that is silent', () => {
    const peers = new PeerGuards('b');
    const news: GuardNews = {
      replica: 'a',
      state: 'active',
      arm: 'learned',
      epoch: 3,
      gap: { mean: -0.1, halfWidth: 0.02 },
      epochs: 9,
      stop: undefined,
      pauseMs: 0,
    };
    peers.hear(news, 0);
    expect([peers.lead(3_000)?.replica, peers.proof(3_000)?.epochs]).toEqual(['a', 9]);
    expect([peers.lead(4_000), peers.proof(4_000)]).toEqual([undefined, undefined]);
  });
});
