import { describe, expect, it } from 'vitest';
import type { Evicted } from '../../dist/src/core/capacity-gate.js';
import { type Evictable, EvictableRequests } from '../../dist/src/flow-control/evictable-requests.js';
import { Evictions } from '../../dist/src/flow-control/evictions.js';

/** A gate that chooses what it is told to choose, for heads that wait in slots of their own numbers. */
function rounds(choices: Record<number, Evicted[]>) {
  const held = new Set<number>(Object.values(choices).flatMap((each) => each.map(({ ticket }) => ticket)));
  const log: string[] = [];
  const asked: number[] = [];
  const heads = Object.keys(choices).map(Number);
  const evictions = new Evictions({
    gate: {
      evictRequest: (_thread, slot) => {
        asked.push(slot);
        return choices[slot]?.shift();
      },
      isHeld: ({ ticket }) => held.has(ticket),
      evictionLost: ({ ticket }) => log.push(`lost ${ticket}`) > 0,
    },
    queues: {
      blocked: (visit) => {
        for (const head of heads) if (!visit(head, 10)) return;
      },
    },
    placeOf: (handle) => ({ thread: 1, slot: handle }),
    tell: ({ ticket }) => log.push(`end ${ticket}`),
    issued: (priority) => log.push(`for ${priority}`),
    ended: (how, seconds) => log.push(`${how} after ${seconds}`),
  });
  return { evictions, held, log, asked };
}

const ticket = (number: number): Evicted => ({ thread: 1, ticket: number, ticketGeneration: 1, priority: -1 });

describe('requests that are to be ended', () => {
  it('evictions are two at a time at most, for any waiting requests', () => {
    const { evictions, log } = rounds({ 1: [ticket(1)], 2: [ticket(2), ticket(3)] });
    evictions.demand(0);
    expect(log).toEqual(['for 10', 'end 1', 'for 10', 'end 2']);
    expect(evictions.underWay).toBe(2);
  });

  it('evictions are followed by further ones only when all of them have ended', () => {
    const { evictions, held, log } = rounds({ 1: [ticket(1), ticket(2), ticket(3)] });
    evictions.demand(0);
    held.delete(1);
    evictions.settle(100);
    evictions.demand(100);
    expect(log.slice(4)).toEqual(['confirmed after 0.1']);
    held.delete(2);
    evictions.settle(200);
    evictions.demand(200);
    expect(log.slice(5)).toEqual(['confirmed after 0.2', 'for 10', 'end 3']);
  });

  it('requests that are to be ended count as lost after two seconds', () => {
    const { evictions, log } = rounds({ 1: [ticket(1)] });
    expect(evictions.nextMs).toBe(Number.POSITIVE_INFINITY);
    evictions.demand(5);
    expect(evictions.nextMs).toBe(2_005);
    evictions.settle(2_004);
    expect(evictions.underWay).toBe(1);
    evictions.settle(2_005);
    expect(log.slice(2)).toEqual(['lost 1', 'timed_out after 2']);
    expect(evictions.nextMs).toBe(Number.POSITIVE_INFINITY);
  });

  it('evictions are looked for every 50 ms at most, and for eight heads at most', () => {
    const { evictions, asked } = rounds(Object.fromEntries(Array.from({ length: 9 }, (_, i) => [i, []])));
    evictions.demand(0);
    expect(asked).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    evictions.demand(49);
    expect(asked).toHaveLength(8);
    evictions.demand(50);
    expect(asked).toHaveLength(16);
  });
});

// The shard's half and the control thread's, with everything that can happen between them, in every order: a request
// ends by itself, its ticket goes to the next request, the message arrives, time passes.

interface World {
  readonly shard: EvictableRequests;
  readonly evictions: Evictions;
  /** What happened to the requests, by name. */
  readonly ends: Map<string, string[]>;
  readonly messages: Evicted[];
  ticketOwner: { name: string; generation: number } | undefined;
  evicted: string[];
  now: number;
  readonly outcomes: string[];
}

/** One place, which is one ticket; `first` has it, and `second` takes it when it is free. A head waits for it. */
function world(): World {
  const w = {
    shard: new EvictableRequests(),
    ends: new Map<string, string[]>(),
    messages: [] as Evicted[],
    ticketOwner: undefined as World['ticketOwner'],
    evicted: [] as string[],
    now: 0,
    outcomes: [] as string[],
  };
  const held = ({ ticketGeneration }: Evicted) => w.ticketOwner?.generation === ticketGeneration;
  const evictions = new Evictions({
    gate: {
      evictRequest: () => {
        const owner = w.ticketOwner;
        if (owner === undefined || w.evicted.includes(owner.name)) return undefined;
        w.evicted.push(owner.name);
        return { thread: 1, ticket: 1, ticketGeneration: owner.generation, priority: -1 };
      },
      isHeld: held,
      evictionLost: () => true,
    },
    queues: { blocked: (visit) => visit(0, 10) },
    placeOf: () => ({ thread: 1, slot: 0 }),
    tell: (evicted) => w.messages.push(evicted),
    issued: () => undefined,
    ended: (how) => w.outcomes.push(how),
  });
  return { ...w, evictions } as World;
}

function end(w: World, name: string, how: string): void {
  const generation = w.ticketOwner!.generation;
  w.ends.get(name)!.push(how);
  w.ticketOwner = undefined;
  w.shard.remove([{ ticket: 1, generation }]);
}

function begin(w: World, name: string, generation: number): void {
  w.ticketOwner = { name, generation };
  w.ends.set(name, []);
  const request: Evictable = { evictRequest: () => end(w, name, 'evicted') };
  w.shard.hold([{ ticket: 1, generation }], request);
}

/** What can happen next, by name. */
const actions: Readonly<Record<string, { readonly can: (w: World) => boolean; readonly run: (w: World) => void }>> = {
  demand: { can: () => true, run: (w) => w.evictions.demand(w.now) },
  settle: { can: () => true, run: (w) => w.evictions.settle(w.now) },
  arrive: {
    can: (w) => w.messages.length > 0,
    run: (w) => {
      const { ticket: number, ticketGeneration } = w.messages.shift()!;
      w.shard.evictRequest(number, ticketGeneration);
    },
  },
  endByItself: { can: (w) => w.ticketOwner !== undefined, run: (w) => end(w, w.ticketOwner!.name, 'by itself') },
  next: { can: (w) => w.ticketOwner === undefined && !w.ends.has('second'), run: (w) => begin(w, 'second', 2) },
  wait: { can: (w) => w.now < 4_000, run: (w) => Object.assign(w, { now: w.now + 2_000 }) },
};

function replay(path: readonly string[]): World {
  const w = world();
  begin(w, 'first', 1);
  for (const name of path) actions[name]!.run(w);
  return w;
}

function check(w: World, path: readonly string[]): void {
  const say = path.join(', ');
  for (const [name, ends] of w.ends) {
    expect(ends.length, `${name} ended ${ends} in: ${say}`).toBeLessThanOrEqual(1);
    if (ends[0] === 'evicted') expect(w.evicted, say).toContain(name);
  }
  expect(new Set(w.evicted).size, say).toBe(w.evicted.length);
  expect(w.outcomes.length + w.evictions.underWay, say).toBe(w.evicted.length);
  expect(w.shard.size, say).toBe(w.ticketOwner === undefined ? 0 : 1);
}

describe('ending a request, in every order of what can happen meanwhile', () => {
  it('ending a request, in every order of what can happen meanwhile ends only those that the gate chose, once each', () => {
    let paths = 0;
    const explore = (path: readonly string[]) => {
      const w = replay(path);
      check(w, path);
      paths++;
      if (path.length === 6) return;
      for (const [name, { can }] of Object.entries(actions)) if (can(w)) explore([...path, name]);
    };
    explore([]);
    expect(paths).toBeGreaterThan(4_000);
  });
});
