import { describe, expect, it } from 'vitest';

// The protocol between shards and the control thread (assembly/gate/parking.ts, rings.ts, src/core/bell.ts), as a model that takes
// one atomic step at a time, and an explorer that takes them in every order. What a step does under the commit lock is one
// step, as it is in the core; everything else that touches shared memory is a step of its own.

type Place = 'new' | 'deciding' | 'waiting' | 'granted' | 'rejected' | 'cancelled' | 'running' | 'over' | 'dead';

interface Request {
  readonly shard: number;
  place: Place;
  /** Steps that its shard still owes after a step under the lock: push into the ring, count the bell, look who sleeps. */
  owes: string[];
  /** The control thread has it in its queue. */
  queued: boolean;
  cancels: boolean;
}

interface State {
  requests: Request[];
  places: number;
  charged: number;
  bell: number;
  asleep: boolean;
  /** Numbers on their way to the control thread: request, and whether it was given up. */
  park: [number, boolean][];
  /** Numbers on their way back. */
  back: number[];
  /** What the control thread does next, and the bell that it saw. */
  control: 'read' | 'collect' | 'dispatch' | 'doze' | 'check' | 'sleeping';
  seen: number;
  dead: boolean[];
  /** Deaths that the control thread has not cleaned up after. */
  unreclaimed: boolean[];
}

const LIMIT = 1;

function start(shards: readonly number[], cancels: readonly number[]): State {
  return {
    requests: shards.map((shard, i) => ({
      shard,
      place: 'new',
      owes: [],
      queued: false,
      cancels: cancels.includes(i),
    })),
    places: LIMIT,
    charged: 0,
    bell: 0,
    asleep: false,
    park: [],
    back: [],
    control: 'read',
    seen: 0,
    dead: [false, false],
    unreclaimed: [false, false],
  };
}

const waitingNow = (s: State) => s.requests.filter(({ place }) => place === 'waiting').length;

/** One step that a shard owes. */
function pay(s: State, at: number): void {
  const request = s.requests[at]!;
  const step = request.owes.shift();
  if (step === 'push') s.park.push([at, false]);
  else if (step === 'push cancel') s.park.push([at, true]);
  else if (step === 'count') s.bell++;
  else if (step === 'wake') s.asleep = false;
}

/** Everything that could happen next, as functions that change a copy. */
function steps(s: State): ((next: State) => void)[] {
  const found: ((next: State) => void)[] = [];
  for (const [i, request] of s.requests.entries()) {
    if (s.dead[request.shard]) continue;
    if (request.owes.length > 0) {
      found.push((n) => pay(n, i));
      continue;
    }
    if (request.place === 'new') found.push((n) => arrive(n, i));
    if (request.place === 'waiting' && request.cancels) found.push((n) => cancel(n, i));
    if (request.place === 'running') found.push((n) => release(n, i));
  }
  const back = s.back[0];
  if (back !== undefined && !s.dead[s.requests[back]!.shard]) found.push(takeBack);
  if (s.control !== 'sleeping' || !s.asleep) found.push(control);
  for (const shard of [0, 1]) {
    if (s.unreclaimed[shard]) found.push((n) => reclaim(n, shard));
  }
  return found;
}

/** decide: under the lock it is charged, or parked with its band's count. */
function arrive(n: State, i: number): void {
  const request = n.requests[i]!;
  if (waitingNow(n) === 0 && n.charged < n.places) {
    n.charged++;
    request.place = 'running';
    return;
  }
  request.place = 'waiting';
  request.owes = ['push', 'count', 'wake'];
}

function cancel(n: State, i: number): void {
  const request = n.requests[i]!;
  request.place = 'cancelled';
  request.owes = ['push cancel', 'count', 'wake'];
}

function release(n: State, i: number): void {
  const request = n.requests[i]!;
  n.charged--;
  request.place = 'over';
  if (waitingNow(n) > 0) request.owes = ['count', 'wake'];
}

/** The shard takes a number from its return ring. */
function takeBack(n: State): void {
  const request = n.requests[n.back.shift()!]!;
  if (request.place === 'granted') request.place = 'running';
  else request.place = 'over';
}

function control(n: State): void {
  if (n.control === 'read') {
    n.seen = n.bell;
    n.control = 'collect';
  } else if (n.control === 'collect') {
    const next = n.park.shift();
    if (next === undefined) n.control = 'dispatch';
    else {
      const [at, givenUp] = next;
      n.requests[at]!.queued = !givenUp;
      if (givenUp) n.back.push(at);
    }
  } else if (n.control === 'dispatch') {
    const at = n.requests.findIndex(({ queued, place }) => queued && place === 'waiting');
    if (at < 0 || n.charged >= n.places) n.control = 'doze';
    else {
      n.charged++;
      n.requests[at]!.place = 'granted';
      n.requests[at]!.queued = false;
      n.back.push(at);
    }
  } else if (n.control === 'doze') {
    n.asleep = true;
    n.control = 'check';
  } else if (n.control === 'check') {
    // waitAsync: sleeps only if the bell is still what was seen.
    n.control = n.bell === n.seen ? 'sleeping' : 'read';
  } else n.control = 'read';
}

/** The control thread cleans up after a shard: charges released, slots freed, rings emptied. */
function reclaim(n: State, shard: number): void {
  n.unreclaimed[shard] = false;
  for (const [i, request] of n.requests.entries()) {
    if (request.shard !== shard) continue;
    if (request.place === 'running' || request.place === 'granted') n.charged--;
    request.place = 'dead';
    request.queued = false;
    request.owes = [];
    n.park = n.park.filter(([at]) => at !== i);
    n.back = n.back.filter((at) => at !== i);
  }
  n.bell++;
  n.asleep = false;
}

function broken(s: State): string | undefined {
  if (s.charged > s.places) return 'two requests have one place';
  const holders = s.requests.filter(({ place }) => place === 'running' || place === 'granted').length;
  if (s.charged !== holders) return 'a charge without a request, or the other way round';
  return new Set(s.back).size === s.back.length ? undefined : 'a slot comes back twice';
}

/** Nothing can happen any more: then nobody waits, and nothing is charged. */
function unfinished(s: State): string | undefined {
  const left = s.requests.filter(({ place }) => place !== 'dead' && place !== 'over');
  return left.length === 0 && s.charged === 0 ? undefined : `the end, with a request ${left[0]?.place}`;
}

function clone(s: State): State {
  return {
    ...s,
    requests: s.requests.map((request) => ({ ...request, owes: [...request.owes] })),
    park: [...s.park],
    back: [...s.back],
    dead: [...s.dead],
    unreclaimed: [...s.unreclaimed],
  };
}

/** Only the difference of the two counts matters, and of that whether there is one. */
function normal(s: State): State {
  s.bell = Math.min(s.bell - s.seen, 1);
  s.seen = 0;
  return s;
}

const keyOf = ({ requests, ...rest }: State, deaths: number) =>
  `${deaths}${requests.map(({ place, owes, queued }) => `${place}${owes}${queued}`)}${JSON.stringify(rest)}`;

/** Visit every state that can be reached. @returns how many there are */
function explore(first: State, deaths: number): number {
  const seen = new Set<string>();
  const open: { state: State; deaths: number }[] = [{ state: first, deaths }];
  const visit = (state: State, left: number) => {
    const key = keyOf(normal(state), left);
    if (seen.has(key)) return;
    seen.add(key);
    open.push({ state, deaths: left });
  };
  while (open.length > 0) {
    const { state, deaths: left } = open.pop()!;
    const next = steps(state).map((step) => {
      const copy = clone(state);
      step(copy);
      return copy;
    });
    const wrong = broken(state) ?? (next.length === 0 ? unfinished(state) : undefined);
    if (wrong !== undefined) throw new Error(`${wrong}: ${JSON.stringify(state)}`);
    for (const copy of next) visit(copy, left);
    for (const shard of left > 0 ? [0, 1] : []) {
      if (state.dead[shard]) continue;
      const copy = clone(state);
      copy.dead[shard] = true;
      copy.unreclaimed[shard] = true;
      visit(copy, left - 1);
    }
  }
  return seen.size;
}

describe('the parking protocol, in every order of its steps', () => {
  it('never charges two for one place, loses nobody and never sleeps while somebody could go on: two shards', () => {
    expect(explore(start([0, 1, 1], []), 0)).toBeGreaterThan(100);
  });

  it('the same with clients that go away', () => {
    expect(explore(start([0, 1, 0], [1]), 0)).toBeGreaterThan(500);
  });

  it('the same with a shard that dies at any moment', () => {
    expect(explore(start([0, 1], [1]), 1)).toBeGreaterThan(500);
  });
});
