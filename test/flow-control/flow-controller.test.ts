import { describe, expect, it } from 'vitest';
import { CapacityGate } from '../../dist/src/core/capacity-gate.js';
import type { EndpointSignals } from '../../dist/src/core/index.js';
import { FlowController } from '../../dist/src/flow-control/flow-controller.js';
import { QueueMachine } from '../../dist/src/flow-control/queue-machine.js';
import { makeGate } from '../core/gate-pool.ts';
import { settings } from './settings.ts';

/** Milliseconds of the pool clock at the start, and between two readings of it in a round. */
const START_MS = 1_000_000;

/** A gate that counts the looks for unused bands. */
class CountingGate extends CapacityGate {
  looks = 0;

  override forgetBands(idleMs: number, nowMs: number): number {
    this.looks++;
    return super.forgetBands(idleMs, nowMs);
  }
}

/** Queues that note which running requests end. */
class NotingQueues extends QueueMachine {
  readonly ended: number[] = [];

  override end(handle: number, outputTokens: number, nowMs: number): void {
    this.ended.push(handle);
    super.end(handle, outputTokens, nowMs);
  }
}

/** A flow controller in front of one endpoint with room for one request, on a clock and timers of its own. */
function oneAtATime(signals: EndpointSignals = { waiting: 0 }) {
  const pool = makeGate({ mode: 'requests', maxRequests: 1, maxTokens: 1 }, [signals]);
  const gate = new CountingGate(pool.control);
  const clock = { now: START_MS, stepMs: 0, due: () => {} };
  const queues = new NotingQueues(settings(), START_MS);
  const timers: number[] = [];
  const rounds: number[] = [];
  const holds: number[] = [];
  const controller = new FlowController({
    gate,
    queues,
    shards: [1],
    saturation: () => 1,
    nowMs: () => (clock.now += clock.stepMs),
    wallMs: () => clock.now,
    counts: {
      dispatched: (seconds) => rounds.push(seconds),
      arrived: () => {},
      refused: () => {},
      held: (seconds) => holds.push(seconds),
    },
    evictions: { tell: () => {}, issued: () => {}, ended: () => {} },
    blockTokens: 64,
    timers: {
      after: (run, ms) => {
        timers.push(ms);
        clock.due = run;
        return () => {};
      },
      soon: () => {},
    },
  });
  const shard = pool.shard(1);
  const running = shard.ask();
  const release = ({ ticket, ticketGeneration }: { ticket: number; ticketGeneration: number }) =>
    shard.decider.release(ticket, ticketGeneration);
  return { controller, gate, queues, clock, timers, rounds, holds, shard, running, release };
}

describe('the flow controller', () => {
  it('the flow controller tells a request that asks for it how many are before it', () => {
    const { controller, shard, running, release } = oneAtATime();
    const places: (number | undefined)[] = [];
    const look = () =>
      shard.waitSlots.takeReturns((_slot, result, { ahead }) => {
        places.push(ahead);
        if (result.kind === 'dispatched') release(result);
      });
    for (const wantsPosition of [true, false, true]) shard.ask({}, { sinceMs: START_MS, wantsPosition });
    controller.wake();
    release(running);
    for (let i = 0; i < 3; i++) {
      controller.wake();
      look();
    }
    expect(places).toEqual([0, undefined, 2]);
  });

  it('a place that is freed while bands are tried goes to the highest one that waits', () => {
    const { controller, gate, shard, running, release } = oneAtATime();
    const [low, high] = [-10, 10].map((priority) => shard.ask({ priority }, { sinceMs: START_MS }));
    const tried: number[] = [];
    const dispatched: number[] = [];
    const dispatch = gate.dispatch.bind(gate);
    gate.dispatch = (thread, slot, only, nowMs) => {
      const { priority } = gate.read(thread, slot);
      tried.push(priority);
      const answer = dispatch(thread, slot, only, nowMs);
      if (answer === 'done') dispatched.push(priority);
      // A shard frees the place as soon as the highest band has found none.
      if (tried.length === 1) release(running);
      return answer;
    };
    expect([low, high].map((each) => each!.ticket)).toEqual([0, 0]);
    controller.wake();
    controller.wake();
    expect([tried[0], dispatched]).toEqual([10, [10]]);
  });

  it('the flow controller tries held turns when it wakes, and no more often than every 20 ms', () => {
    const { controller, gate, clock, shard } = oneAtATime();
    shard.ask({}, { sinceMs: START_MS });
    controller.wake();
    let tries = 0;
    gate.dispatch = () => {
      tries++;
      return 'held';
    };
    const after = [1, 1, 19, 1, 40].map((passed) => {
      clock.now += passed;
      controller.wake();
      return tries;
    });
    // The first wake-up tries it as any request, and finds that it is held.
    expect(after).toEqual([2, 2, 3, 3, 4]);
  });

  it('the flow controller of one replica of four tries held turns in its part of a round, and wakes for it', () => {
    const { controller, gate, clock, timers, shard } = oneAtATime();
    controller.setPlace({ place: 3, replicas: 4 });
    shard.ask({}, { sinceMs: START_MS });
    const tried: number[] = [];
    gate.dispatch = () => {
      tried.push(clock.now - START_MS);
      return 'held';
    };
    controller.wake();
    // The first wake-up tries it as any request, and finds that it is held.
    expect(tried.splice(0)).toEqual([0]);
    for (clock.now = START_MS + 1; clock.now < START_MS + 200; clock.now++) controller.wake();
    expect(tried).toEqual([87, 187]);
    clock.now = START_MS + 230;
    clock.due();
    expect(timers.at(-1)).toBe(50);
    clock.now = START_MS + 280;
    clock.due();
    expect(timers.at(-1)).toBe(7);
    controller.setPlace({ place: 0, replicas: 1 });
    expect(tried.at(-1)).toBe(280);
  });

  it('the flow controller counts for how long a turn was held, and shows those that are', () => {
    const cache = { waiting: 0, running: 0, kvUsage: 0, blockTokens: 64, blockCount: 100 };
    const { controller, gate, clock, holds, shard, running, release } = oneAtATime(cache);
    release(running);
    expect(gate.sessions.configure({ mode: 'on', smallPrompt: 0.02, stretch: 0, maxWaitMs: Infinity })).toBe(true);
    const first = shard.ask({ blocks: 91, promptTokens: 5_824, nowMs: clock.now });
    release(first);
    shard.ask({ blocks: 40, promptTokens: 2_560, nowMs: clock.now }, { sinceMs: clock.now, flow: 'agents' });
    clock.now += 1_000;
    controller.wake();
    const turn = { priority: 0, flow: 'agents', promptTokens: 2_560, needTokens: 2_560, waitedMs: 1_000, known: false };
    expect(controller.heldTurns).toEqual([turn]);
    clock.now += 3_000_000;
    gate.sessions.tick(clock.now);
    controller.wake();
    expect(controller.heldTurns).toEqual([]);
    expect(holds).toEqual([3_001]);
    expect(controller.events[0]).toMatchObject({ outcome: 'Dispatched', held: true });
  });

  it('the flow controller counts the seconds that a round of dispatches takes', () => {
    const { controller, clock, rounds, shard } = oneAtATime();
    shard.ask({}, { sinceMs: START_MS });
    clock.stepMs = 1;
    controller.wake();
    expect(rounds).toHaveLength(1);
    expect(rounds[0]).toBeGreaterThan(0);
    expect(rounds[0]).toBeLessThan(0.1);
  });

  it('the flow controller sets no second timer for a time that has one', () => {
    const { controller, timers, shard } = oneAtATime();
    shard.ask({}, { sinceMs: START_MS });
    for (let i = 0; i < 5; i++) controller.wake();
    expect(timers).toHaveLength(1);
  });

  it('the flow controller looks for unused bands once a minute', () => {
    const { controller, clock, gate } = oneAtATime();
    for (let i = 0; i < 5; i++) controller.wake();
    expect(gate.looks).toBe(1);
    clock.now += 59_999;
    controller.wake();
    expect(gate.looks).toBe(1);
    clock.now += 1;
    controller.wake();
    expect(gate.looks).toBe(2);
  });

  it('the flow controller does not count a request that waits again among those that run', () => {
    const { controller, queues, shard, running, release } = oneAtATime();
    shard.ask({}, { sinceMs: START_MS });
    controller.wake();
    release(running);
    controller.wake();
    const { result } = shard.returns()[0]!;
    if (result.kind !== 'dispatched') throw new Error(`the request was ${result.kind}`);
    release(result);
    shard.decide();
    shard.ask({}, { sinceMs: START_MS, handle: result.handle });
    controller.wake();
    controller.shardDied(1);
    expect(queues.ended).toEqual([]);
    expect(queues.waiting).toBe(0);
  });
});
