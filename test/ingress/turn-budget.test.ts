import { describe, expect, it } from 'vitest';
import { type BudgetedWork, TurnBudget } from '../../dist/src/ingress/turn-budget.js';

class Loop {
  clock = 0;
  deferred: (() => void)[] = [];
  readonly budget: TurnBudget;

  constructor(lightMax = 0, waitingMax = 3, shortQueueMs = 20, overloadWindows = 3) {
    this.budget = new TurnBudget({
      now: () => this.clock,
      recent: () => this.clock,
      defer: (run) => this.deferred.push(run),
      sliceMs: 5,
      waitingMax,
      waitMsMax: 100,
      standingWaitMs: 20,
      overloadWaitMs: 16,
      windows: { windowMs: 5, coldWork: 0, suspectWindows: 2, overloadWindows, latestWindows: overloadWindows },
      shortQueue: 4,
      shortQueueMs,
      lightMax,
      readMsMax: 10,
    });
  }

  /** New work, 50 ms old, comes every 10 ms for so long and is not begun; then it is reset. */
  press(ms: number): void {
    const waiting = [];
    for (let i = 0; i < ms; i += 10) {
      this.clock += 10;
      const each = work([], 'pressing');
      if (this.budget.enter(each, this.clock - 50) === 'later') waiting.push(each);
    }
    for (const each of waiting) {
      each.isWaiting = false;
      this.budget.leave();
    }
  }

  /** New work. @param since when it came, now without */
  enter(work: BudgetedWork, since = this.clock): string {
    return this.budget.enter(work, since);
  }

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
  expire: () => {
    begun.push(`${name} expired`);
  },
  isWaiting: true,
});

/** Adds work to the queue. @param ms cost of each */
function queue(loop: Loop, count: number, ms = 1): void {
  loop.enter(work([], 'first'));
  loop.clock += 11;
  for (let i = 0; i < count; i++) loop.enter(work([], 'queued', () => (loop.clock += ms)));
}

/** A loop whose turn budget has measured 300 pieces of work. @param ms cost of each */
function measured(shortQueueMs?: number, ms = 1): Loop {
  const loop = new Loop(0, 1_000, shortQueueMs);
  for (let round = 0; round < 10; round++) {
    queue(loop, 30, ms);
    while (loop.budget.waiting > 0) loop.turn();
    loop.turn();
  }
  return loop;
}

describe('the turn budget', () => {
  it('the turn budget lets work run at once while the slice lasts', () => {
    const loop = new Loop();
    expect(loop.enter(work([], 'a'))).toBe('now');
    loop.clock = 5;
    expect(loop.enter(work([], 'b'))).toBe('now');
    loop.clock = 6;
    expect(loop.enter(work([], 'c'))).toBe('later');
  });

  it('the turn budget runs what waits in the next turns, oldest first, a slice a turn', () => {
    const loop = new Loop();
    const begun: string[] = [];
    loop.enter(work(begun, 'first'));
    loop.clock = 6;
    for (const name of ['a', 'b', 'c']) loop.enter(work(begun, name, () => (loop.clock += 4)));
    loop.turn();
    expect(begun).toEqual(['a', 'b']);
    loop.turn();
    expect([begun, loop.budget.waiting]).toEqual([['a', 'b', 'c'], 0]);
  });

  it('the turn budget keeps the order: nothing overtakes what waits', () => {
    const loop = new Loop();
    loop.enter(work([], 'first'));
    loop.clock = 6;
    loop.enter(work([], 'a'));
    loop.clock = 0;
    expect(loop.enter(work([], 'b'))).toBe('later');
  });

  it('the turn budget refuses work when as much waits as its bound allows', () => {
    const loop = new Loop();
    loop.enter(work([], 'first'));
    loop.clock = 6;
    const answers = ['a', 'b', 'c', 'd'].map((name) => loop.enter(work([], name)));
    expect(answers).toEqual(['later', 'later', 'later', 'refused']);
  });

  it('the turn budget takes what grew old in a stall of the thread, and refuses by age from then on', () => {
    const loop = new Loop();
    loop.clock = 5_000;
    expect([4_000, 300].map((age) => loop.budget.refuses(loop.clock - age))).toEqual([false, false]);
    loop.press(120);
    expect([21, 300].map((age) => loop.budget.refuses(loop.clock - age))).toEqual([true, true]);
  });

  it('the turn budget takes a few pieces of work whatever their age, also while others are refused', () => {
    const loop = new Loop(2);
    loop.clock = 5_000;
    loop.press(200);
    const answers = Array.from({ length: 63 }, () => {
      loop.clock += 1;
      return loop.budget.refuses(loop.clock - 300);
    });
    const taken = answers.filter((refused) => !refused).length;
    expect(taken).toBeGreaterThanOrEqual(4);
    expect(taken).toBeLessThanOrEqual(8);
  });

  it('the turn budget ends work that has waited too long in the place of beginning it', () => {
    const loop = new Loop();
    const begun: string[] = [];
    loop.enter(work(begun, 'first'));
    loop.clock = 6;
    for (const name of ['a', 'b']) loop.enter(work(begun, name, () => (loop.clock += 101)));
    loop.turn();
    loop.turn();
    expect(begun).toEqual(['a', 'b expired']);
  });

  it('the turn budget does not count work that has left before its turn, and does not begin it', () => {
    const loop = new Loop();
    const begun: string[] = [];
    queue(loop, 0);
    const left = ['a', 'b', 'c'].map((name) => work(begun, name));
    for (const each of left) loop.enter(each);
    expect(loop.enter(work(begun, 'fourth'))).toBe('refused');
    for (const each of left) {
      each.isWaiting = false;
      loop.budget.leave();
    }
    expect(loop.budget.waiting).toBe(0);
    expect(loop.enter(work(begun, 'fifth'))).toBe('later');
    loop.turn();
    loop.turn();
    expect(begun).toEqual(['fifth']);
  });

  it('the turn budget keeps the order of what waits when thousands have left between', () => {
    const loop = new Loop(0, 10_000);
    const begun: string[] = [];
    queue(loop, 0);
    for (let i = 0; i < 9_000; i++) {
      const each = work(begun, String(i));
      loop.enter(each);
      if (i % 3_000 === 0) continue;
      each.isWaiting = false;
      loop.budget.leave();
    }
    expect(loop.budget.waiting).toBe(3);
    loop.turn();
    loop.turn();
    expect([begun, loop.budget.waiting]).toEqual([['0', '3000', '6000'], 0]);
  });

  it('the turn budget refuses what would have to wait too long behind the work that waits', () => {
    const loop = measured();
    queue(loop, 120);
    expect(loop.budget.enter(work([], 'next'), loop.clock)).toBe('refused');
  });

  it('the turn budget takes a burst in a new process, whose first pieces of work are slow', () => {
    const loop = new Loop(0, 1_000);
    queue(loop, 200, 20);
    loop.turn();
    loop.turn();
    expect(loop.budget.enter(work([], 'next'), loop.clock)).toBe('later');
  });

  it('the turn budget does not take a stall of one turn for the cost of its work', () => {
    const loop = measured();
    queue(loop, 1, 90);
    queue(loop, 40);
    loop.turn();
    expect(loop.budget.enter(work([], 'next'), loop.clock)).toBe('later');
  });

  it('the turn budget bounds the wait more tightly when there has been one for long', () => {
    const loop = new Loop();
    const waits = () => {
      const taken = [0, 21, 100].map((age) => !loop.budget.refuses(loop.clock - age));
      return taken;
    };
    loop.clock = 1_000;
    expect(waits()).toEqual([true, true, true]);
    for (let i = 0; i < 20; i++) {
      loop.clock += 10;
      loop.budget.refuses(loop.clock - 50);
    }
    expect(waits()).toEqual([true, false, false]);
    for (let i = 0; i < 20; i++) {
      loop.clock += 10;
      loop.budget.refuses(loop.clock);
    }
    expect(waits()).toEqual([true, true, true]);
  });

  it('the turn budget keeps the queue short while the overload lasts, and takes its refusals for a sign that it does', () => {
    const loop = measured(6);
    loop.clock += 1_000;
    loop.press(70);
    loop.enter(work([], 'first'));
    loop.clock += 11;
    const answers = Array.from({ length: 12 }, () => loop.enter(work([], 'queued')));
    // Work of some 6 ms waits: less than the bound on the wait.
    expect([answers[0], answers.at(-1)]).toEqual(['later', 'refused']);
    for (let i = 0; i < 10; i++) {
      loop.clock += 10;
      expect(loop.budget.refuses(loop.clock)).toBe(true);
    }
    loop.clock += 30;
    expect(loop.budget.refuses(loop.clock)).toBe(false);
  });

  it('the turn budget ends work of an overload that has waited longer than that and the longest of its turns', () => {
    const loop = new Loop();
    loop.clock = 1_000;
    loop.press(70);
    loop.turn();
    loop.turn();
    const begun: string[] = [];
    loop.enter(work(begun, 'first'));
    loop.clock += 11;
    const whileMoreCome = (): void => {
      loop.clock += 15;
      loop.budget.refuses(loop.clock - 50);
    };
    for (const name of ['a', 'b', 'c']) loop.enter(work(begun, name, whileMoreCome));
    for (let i = 0; i < 3; i++) loop.turn();
    // A turn of 70 ms came before: work may be as old as the standing wait of 20 ms.
    expect(begun).toEqual(['a', 'b', 'c expired']);
  });

  it('the turn budget begins the newest work first while the queue may be that of an overload', () => {
    const loop = new Loop(0, 100, 20, 1_000);
    const begun: string[] = [];
    for (const name of ['first', 'a', 'b', 'c', 'd', 'e']) {
      loop.clock += 10;
      loop.enter(work(begun, name), loop.clock - 50);
    }
    loop.turn();
    expect(begun).toEqual(['e', 'd', 'c', 'b', 'a']);
  });

  it('the turn budget keeps the queue short when another bound than its own keeps it from growing', () => {
    const loop = new Loop(0, 1_000);
    const budget = loop.budget;
    const answers: string[] = [];
    for (let i = 0; i < 12; i++) {
      loop.clock += 10;
      answers.push(loop.enter(work([], 'no room'), loop.clock - 18));
      if (answers.at(-1) !== 'later') continue;
      budget.leave();
      budget.displaced();
    }
    expect(answers.slice(0, 4)).toEqual(['now', 'later', 'later', 'later']);
    expect(answers.at(-1)).toBe('refused');
  });

  it('the turn budget takes all of a burst, whose queue shrinks when it is over, however long that takes', () => {
    const loop = measured();
    queue(loop, 90);
    const answers: string[] = [];
    while (loop.budget.waiting > 4) {
      loop.turn();
      answers.push(loop.enter(work([], 'next', () => (loop.clock += 1))));
    }
    expect(answers.length).toBeGreaterThan(12);
    expect(answers).not.toContain('refused');
  });

  it('the turn budget has new work wait while sockets are behind: they are read first, and what waits is counted', () => {
    const loop = new Loop();
    loop.budget.behind();
    loop.turn();
    expect(loop.enter(work([], 'a'))).toBe('later');
    loop.turn();
    loop.turn();
    expect(loop.enter(work([], 'b'))).toBe('now');
  });

  it('the turn budget ends an overload when a trial after three seconds shows that nothing would wait for long', () => {
    const loop = measured(1, 0.2);
    loop.clock += 1_000;
    loop.press(70);
    const began = loop.clock - 70;
    queue(loop, 10, 0.2);
    const refused = Array.from({ length: 700 }, () => {
      loop.clock += 5;
      return { after: loop.clock - began, is: loop.budget.refuses(loop.clock) };
    });
    expect(refused.filter(({ after, is }) => after < 3_000 && !is)).toEqual([]);
    expect(refused.filter(({ after, is }) => after > 3_015 && is)).toEqual([]);
  });

  /** Answers to new work behind each of some turns in which the sockets are behind. */
  const refusedBehind = (loop: Loop, turns: number, turnMs: number): boolean[] => {
    const answers: boolean[] = [];
    for (let i = 0; i < turns; i++) {
      loop.budget.behind();
      loop.clock += turnMs;
      loop.turn();
      answers.push(loop.budget.refuses(loop.clock - 18));
    }
    return answers;
  };

  it('the turn budget refuses new work of an overload when sockets were behind for as long as it may wait, until they are not', () => {
    const loop = new Loop();
    loop.clock += 1_000;
    loop.press(70);
    const answers = refusedBehind(loop, 16, 2);
    expect(answers).toEqual([...new Array(15).fill(false), true]);
    loop.turn();
    expect(loop.budget.refuses(loop.clock - 18)).toBe(false);
  });

  it('the turn budget does not take the long turns of a thread that gets little of its core for sockets that are behind', () => {
    const loop = new Loop();
    loop.clock += 1_000;
    loop.press(70);
    expect(refusedBehind(loop, 12, 5)).toEqual(new Array(12).fill(false));
  });

  it('the turn budget takes idle time for calm: the first work, and the first after an hour, may be as old as in a burst', () => {
    const loop = new Loop();
    for (const clock of [1_000, 3_600_000]) {
      loop.clock = clock;
      expect([100, 100].map((age) => loop.budget.refuses(loop.clock - age))).toEqual([false, false]);
    }
  });

  it('the turn budget has sockets with new work read before waiting work goes on, for a bounded time', () => {
    const loop = new Loop();
    const begun: string[] = [];
    loop.enter(work(begun, 'first'));
    loop.clock = 6;
    for (const name of ['a', 'b', 'c']) loop.enter(work(begun, name, () => (loop.clock += 7)));
    loop.turn();
    const read = (ms: number): string[] => {
      loop.budget.behind();
      loop.clock += ms;
      loop.turn();
      return [...begun];
    };
    expect([read(5), read(4), read(2)]).toEqual([['a'], ['a'], ['a', 'b']]);
  });

  it('the turn budget gives new work more time in a long turn, but not more than twice its slice', () => {
    const loop = new Loop();
    loop.enter(work([], 'first'));
    loop.clock = 80;
    loop.turn();
    expect(loop.budget.lagMs).toBe(80);
    expect(loop.enter(work([], 'a'))).toBe('now');
    loop.clock = 80 + 10;
    expect(loop.enter(work([], 'b'))).toBe('now');
    loop.clock = 80 + 11;
    expect(loop.enter(work([], 'c'))).toBe('later');
  });

  it('the turn budget asks for no turn while it is idle', () => {
    const loop = new Loop();
    loop.enter(work([], 'a'));
    loop.turn();
    expect(loop.deferred).toEqual([]);
  });
});
