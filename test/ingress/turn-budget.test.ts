import { describe, expect, it } from 'vitest';
import { TurnBudget } from '../../dist/ingress/turn-budget.js';

class Loop {
  clock = 0;
  deferred: (() => void)[] = [];
  readonly gate = new TurnBudget({
    now: () => this.clock,
    defer: (run) => this.deferred.push(run),
    sliceMs: 5,
    maxWaiting: 3,
    maxWaitMs: 100,
  });

  /** The next turn of the event loop. */
  turn(): void {
    const due = this.deferred;
    this.deferred = [];
    for (const run of due) run();
  }
}

const work = (begun: string[], name: string, cost: () => void = () => undefined) => ({
  begin: () => {
    begun.push(name);
    cost();
  },
});

describe('the gate of new work', () => {
  it('the turn budget lets work run at once while the slice lasts', () => {
    const loop = new Loop();
    expect(loop.gate.enter(work([], 'a'))).toBe('now');
    loop.clock = 5;
    expect(loop.gate.enter(work([], 'b'))).toBe('now');
    loop.clock = 6;
    expect(loop.gate.enter(work([], 'c'))).toBe('later');
  });

  it('the turn budget runs what waits in the next turns, oldest first, a slice a turn', () => {
    const loop = new Loop();
    const begun: string[] = [];
    loop.gate.enter(work(begun, 'first'));
    loop.clock = 6;
    for (const name of ['a', 'b', 'c']) loop.gate.enter(work(begun, name, () => (loop.clock += 4)));
    loop.turn();
    expect(begun).toEqual(['a', 'b']);
    loop.turn();
    expect([begun, loop.gate.waiting]).toEqual([['a', 'b', 'c'], 0]);
  });

  it('the turn budget keeps the order: nothing overtakes what waits', () => {
    const loop = new Loop();
    loop.gate.enter(work([], 'first'));
    loop.clock = 6;
    loop.gate.enter(work([], 'a'));
    loop.clock = 0;
    expect(loop.gate.enter(work([], 'b'))).toBe('later');
  });

  it('the turn budget refuses when as much waits as may', () => {
    const loop = new Loop();
    loop.gate.enter(work([], 'first'));
    loop.clock = 6;
    const answers = ['a', 'b', 'c', 'd'].map((name) => loop.gate.enter(work([], name)));
    expect(answers).toEqual(['later', 'later', 'later', 'refused']);
  });

  it('the turn budget refuses while the oldest has waited too long', () => {
    const loop = new Loop();
    loop.gate.enter(work([], 'first'));
    loop.clock = 6;
    loop.gate.enter(work([], 'a'));
    loop.clock = 107;
    expect(loop.gate.enter(work([], 'b'))).toBe('refused');
  });

  it('the turn budget gives new work half of a long turn, so that it cannot starve', () => {
    const loop = new Loop();
    loop.gate.enter(work([], 'first'));
    loop.clock = 80;
    loop.turn();
    expect(loop.gate.lagMs).toBe(80);
    expect(loop.gate.enter(work([], 'a'))).toBe('now');
    loop.clock = 80 + 40;
    expect(loop.gate.enter(work([], 'b'))).toBe('now');
    loop.clock = 80 + 41;
    expect(loop.gate.enter(work([], 'c'))).toBe('later');
  });

  it('the turn budget asks for no turn while it is idle', () => {
    const loop = new Loop();
    loop.gate.enter(work([], 'a'));
    loop.turn();
    expect(loop.deferred).toEqual([]);
  });
});
