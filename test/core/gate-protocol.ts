// The protocol between shards and the control thread (assembly/gate/waitSlots.ts, rings.ts, src/core/bell.ts) as a
// model that takes one atomic step at a time. Under the commit lock there are two steps, since a shard can be killed
// between them: first what a repair starts from (entries, states of wait slots), then the sums. The control thread is
// not killed.
import type { Model, Step } from './explorer.ts';

/** A request, and what may happen to it. */
export interface Asked {
  readonly shard: 0 | 1;
  /** 0 is the higher one. */
  readonly band: 0 | 1;
  /** Endpoints that may serve it. */
  readonly may: readonly number[];
  /** Its client may go away. */
  readonly cancels?: boolean;
  /** Its time to live may be over. */
  readonly expires?: boolean;
}

export interface Scene {
  readonly requests: readonly Asked[];
  /** Endpoints, each with one place. */
  readonly endpoints: number;
  /** How often a shard may die, and endpoint 0 may leave and come back. */
  readonly deaths?: number;
  readonly leaves?: number;
  /** Something that is wrong with the protocol, to see that it is found. */
  readonly fault?: 'bell takes the sleeper away' | 'sleeps without a second look' | 'counts after the lock';
}

type Place = 'new' | 'waiting' | 'dispatched' | 'rejected' | 'cancelled' | 'running' | 'over' | 'dead';

interface Request {
  place: Place;
  /** Endpoint that its ledger entry names, and which of its lives; -1 = it has no entry. */
  entry: number;
  life: number;
  /** The control thread has it in its queue. */
  queued: boolean;
  gaveUp: boolean;
}

/** A thread's event loop, as far as it sleeps until its bell rings. */
interface Reader {
  phase: 'sleeping' | 'read' | 'take' | 'serve' | 'doze' | 'wait';
  /** The bell was counted since it was read. */
  rang: boolean;
  /** The word that says whether it is worth waking. */
  asleep: boolean;
  /** It waits for a notification. */
  registered: boolean;
  /** Runs from a timer: the wait for the bell goes on meanwhile. */
  timer: boolean;
  /** Steps that it has begun: what, request, endpoint whose sum falls, endpoint whose sum grows, sum of what waits. */
  doing: readonly Doing[];
}

interface Doing {
  readonly what: 'decide' | 'sums' | 'unlock' | 'free' | 'push' | 'push cancel' | 'bell' | 'notify';
  readonly request: number;
  readonly from?: number;
  readonly to?: number;
  readonly waits?: 1 | -1;
  /** Whose bell: -1 = that of the control thread. */
  readonly whom?: number;
}

interface State {
  readonly requests: Request[];
  readonly control: Reader;
  readonly shards: (Reader & { alive: boolean; unreclaimed: boolean })[];
  /** Per shard: numbers on their way to the control thread, with a mark on those that were given up, and back. */
  readonly enqueue: [number, boolean][][];
  readonly back: number[][];
  /** Per endpoint: whether it is in the pool, how often it has left, and its requests in flight. */
  readonly endpoints: { live: boolean; life: number; inflight: number }[];
  readonly waiting: [number, number];
  /** Shard that holds the commit lock; -1 = nobody. */
  lock: number;
  /** The control thread met a dead owner and comes again. */
  again: boolean;
  deaths: number;
  leaves: number;
}

const ASLEEP: Reader = { phase: 'sleeping', rang: false, asleep: true, registered: true, timer: false, doing: [] };

function copyOf(s: State): State {
  return {
    ...s,
    requests: s.requests.map((each) => ({ ...each })),
    control: { ...s.control },
    shards: s.shards.map((each) => ({ ...each })),
    enqueue: s.enqueue.map((ring) => [...ring]),
    back: s.back.map((ring) => [...ring]),
    endpoints: s.endpoints.map((each) => ({ ...each })),
    waiting: [...s.waiting],
  };
}

const doingKey = ({ what, request, from, to, waits, whom }: Doing) =>
  `${what}${request},${from},${to},${waits},${whom}`;
const readerKey = ({ phase, rang, asleep, registered, timer, doing }: Reader) =>
  `${phase}${+rang}${+asleep}${+registered}${+timer}${doing.map(doingKey).join(';')}`;

function keyOf(s: State): string {
  const requests = s.requests.map(
    ({ place, entry, life, queued, gaveUp }) => `${place}${entry}${life}${+queued}${+gaveUp}`,
  );
  const shards = s.shards.map((each) => `${readerKey(each)}${+each.alive}${+each.unreclaimed}`);
  const endpoints = s.endpoints.map(({ live, life, inflight }) => `${+live}${life}${inflight}`);
  const rest = [s.waiting, s.lock, +s.again, s.deaths, s.leaves];
  return [requests, readerKey(s.control), shards, s.enqueue.join('|'), s.back.join('|'), endpoints, rest].join('/');
}

/** The protocol in a scene, for the explorer. */
export function gateProtocol(scene: Scene): Model<State> {
  const asked = (request: number): Asked => scene.requests[request]!;
  const start: State = {
    requests: scene.requests.map(() => ({ place: 'new', entry: -1, life: 0, queued: false, gaveUp: false })),
    control: ASLEEP,
    shards: [0, 1].map(() => ({ ...ASLEEP, alive: true, unreclaimed: false })),
    enqueue: [[], []],
    back: [[], []],
    endpoints: Array.from({ length: scene.endpoints }, () => ({ live: true, life: 0, inflight: 0 })),
    waiting: [0, 0],
    lock: -1,
    again: false,
    deaths: scene.deaths ?? 0,
    leaves: scene.leaves ?? 0,
  };

  // ---------------------------------------------------------------------------------------------------- the bells

  const readerOf = (s: State, whom: number): Reader => (whom < 0 ? s.control : s.shards[whom]!);
  const ringing = (request: number, whom: number): Doing[] => [
    { what: 'bell', request, whom },
    { what: 'notify', request, whom },
  ];

  /** The thread that has counted the bell wakes a reader that sleeps. */
  function notify(reader: Reader): void {
    if (!reader.asleep) return;
    if (scene.fault === 'bell takes the sleeper away') reader.asleep = false;
    if (reader.registered) wakeUp(reader);
  }

  function wakeUp(reader: Reader): void {
    reader.registered = false;
    if (reader.phase === 'sleeping') reader.phase = 'read';
  }

  /** Steps of a reader that are the same for all; `take` and `serve` are the thread's own. */
  function turn(reader: Reader): void {
    if (reader.phase === 'read') {
      reader.asleep = false;
      reader.rang = false;
      reader.phase = 'take';
    } else if (reader.phase === 'doze') {
      reader.asleep = true;
      reader.phase = 'wait';
    } else if (reader.phase === 'wait') {
      const again = reader.rang && scene.fault !== 'sleeps without a second look';
      reader.registered = !again;
      reader.phase = again ? 'read' : 'sleeping';
    }
  }

  /** Everything has been looked at. */
  function rest(reader: Reader): void {
    if (!reader.timer) reader.phase = 'doze';
    // The bell may have rung while the timer ran.
    else reader.phase = reader.registered ? 'sleeping' : 'read';
    reader.timer = false;
  }

  function runTimer(reader: Reader): void {
    reader.timer = true;
    reader.phase = 'take';
  }

  // ------------------------------------------------------------------------------------------------- under the lock

  const hasRoom = (s: State, endpoint: number) => s.endpoints[endpoint]!.live && s.endpoints[endpoint]!.inflight === 0;
  const isCurrent = (s: State, { entry, life }: Request) => entry >= 0 && s.endpoints[entry]!.life === life;

  function charge(s: State, request: Request, endpoint: number): void {
    request.entry = endpoint;
    request.life = s.endpoints[endpoint]!.life;
  }

  /** Decide, perhaps with a dispatch in hand that is given up for it: a charge, a wait slot or a refusal. */
  function decide(s: State, shard: number, at: number): void {
    const request = s.requests[at]!;
    const { may, band } = asked(at);
    const returned = request.place === 'dispatched';
    const from = isCurrent(s, request) ? request.entry : -1;
    request.entry = -1;
    s.lock = shard;
    const free = (endpoint: number) => endpoint === from || hasRoom(s, endpoint);
    const live = may.filter((endpoint) => s.endpoints[endpoint]!.live);
    const mustWait = !returned && (s.waiting[0] > 0 || (band === 1 && s.waiting[1] > 0));
    const open = mustWait ? undefined : live.find(free);
    if (open !== undefined) {
      request.place = 'running';
      charge(s, request, open);
      s.shards[shard]!.doing = [
        { what: 'sums', request: at, from, to: open },
        { what: 'unlock', request: at },
      ];
    } else if (live.length === 0 && s.endpoints.some((each) => each.live)) {
      request.place = 'over';
      s.shards[shard]!.doing = [
        { what: 'sums', request: at, from },
        { what: 'unlock', request: at },
      ];
    } else {
      request.place = 'waiting';
      const sums: Doing = { what: 'sums', request: at, from, waits: 1 };
      const unlock: Doing = { what: 'unlock', request: at };
      const inside = scene.fault === 'counts after the lock' ? [unlock, sums] : [sums, unlock];
      s.shards[shard]!.doing = [...inside, { what: 'push', request: at }, ...ringing(at, -1)];
    }
  }

  function cancel(s: State, shard: number, at: number): void {
    const request = s.requests[at]!;
    request.gaveUp = true;
    if (request.place !== 'waiting') return;
    s.lock = shard;
    request.place = 'cancelled';
    const inside: Doing[] = [
      { what: 'sums', request: at, waits: -1 },
      { what: 'unlock', request: at },
    ];
    s.shards[shard]!.doing = [...inside, { what: 'push cancel', request: at }, ...ringing(at, -1)];
  }

  /** A charge is released: who waits is told first, but looks only when the lock is free. */
  function release(s: State, shard: number, at: number): void {
    s.lock = shard;
    const request = s.requests[at]!;
    const from = isCurrent(s, request) ? request.entry : -1;
    const told = s.waiting[0] + s.waiting[1] > 0 ? ringing(at, -1) : [];
    s.shards[shard]!.doing = [...told, { what: 'sums', request: at, from }, { what: 'free', request: at }];
  }

  function carryOn(s: State, reader: Reader, shard: number): void {
    const [{ what, request, from = -1, to = -1, waits = 0, whom = -1 }, ...later] = reader.doing as [Doing];
    reader.doing = later;
    switch (what) {
      case 'decide':
        decide(s, shard, request);
        return;
      case 'sums':
        if (from >= 0) s.endpoints[from]!.inflight--;
        if (to >= 0) s.endpoints[to]!.inflight++;
        s.waiting[asked(request).band] += waits;
        return;
      case 'free':
        s.requests[request]!.entry = -1;
        s.requests[request]!.place = 'over';
        s.lock = -1;
        return;
      case 'unlock':
        s.lock = -1;
        return;
      case 'push':
      case 'push cancel':
        s.enqueue[shard]!.push([request, what === 'push cancel']);
        return;
      case 'bell':
        readerOf(s, whom).rang = true;
        return;
      case 'notify':
        notify(readerOf(s, whom));
    }
  }

  /** Whether the next step that a thread has begun must wait for the lock. */
  const waitsForLock = (s: State, { doing }: Reader) => doing[0]?.what === 'decide' && s.lock >= 0;

  // ------------------------------------------------------------------------------------------------------ shards

  /** A slot that came back; the request goes on with its dispatch, or gives it up. */
  function takeBack(s: State, shard: number): void {
    const at = s.back[shard]!.shift();
    if (at === undefined) {
      rest(s.shards[shard]!);
      return;
    }
    const request = s.requests[at]!;
    if (request.place !== 'dispatched') request.place = 'over';
    else if (request.gaveUp) request.place = 'running';
    else s.shards[shard]!.doing = [{ what: 'decide', request: at }];
  }

  function shardSteps(s: State, shard: number): Step<State>[] {
    const reader = s.shards[shard]!;
    const name = `shard ${shard}`;
    const step = (what: string, own: boolean, take: (n: State) => void) => ({ name: `${name} ${what}`, own, take });
    const found: Step<State>[] = [];
    if (s.deaths > 0) {
      found.push(
        step('dies', false, (n) => {
          n.deaths--;
          n.shards[shard] = { ...ASLEEP, alive: false, unreclaimed: true };
        }),
      );
    }
    if (reader.doing.length > 0) {
      const { what, request } = reader.doing[0]!;
      if (!waitsForLock(s, reader)) {
        found.push(step(`${what} ${request}`, true, (n) => carryOn(n, n.shards[shard]!, shard)));
      }
      return found;
    }
    if (reader.phase === 'take') return [...found, step('takes back', true, (n) => takeBack(n, shard))];
    if (reader.phase !== 'sleeping') return [...found, step(reader.phase, true, (n) => turn(n.shards[shard]!))];
    if (s.lock >= 0) return found;
    for (const [at, request] of s.requests.entries()) {
      if (asked(at).shard !== shard) continue;
      if (request.place === 'new') found.push(step(`asks ${at}`, true, (n) => decide(n, shard, at)));
      if (request.place === 'running') found.push(step(`ends ${at}`, true, (n) => release(n, shard, at)));
      const mayCancel = asked(at).cancels === true && !request.gaveUp;
      if (mayCancel && (request.place === 'waiting' || request.place === 'dispatched')) {
        found.push(step(`cancels ${at}`, false, (n) => cancel(n, shard, at)));
      }
    }
    return found;
  }

  // ---------------------------------------------------------------------------------------------- the control thread

  function collect(s: State): void {
    const ring = s.enqueue.find((each) => each.length > 0);
    if (ring === undefined) {
      s.control.phase = 'serve';
      return;
    }
    const [at, givenUp] = ring.shift()!;
    s.requests[at]!.queued = !givenUp;
    if (givenUp) returnSlot(s, at);
  }

  function returnSlot(s: State, at: number): void {
    const { shard } = asked(at);
    s.back[shard]!.push(at);
    s.control.doing = ringing(at, shard);
  }

  /** One attempt: the highest band first, in it who came first. Under the lock, in one step. */
  function serve(s: State): void {
    const order = [...s.requests.keys()].sort((a, b) => asked(a).band - asked(b).band || a - b);
    const queued = order.filter((at) => s.requests[at]!.queued);
    if (queued.length > 0 && s.lock >= 0) {
      s.again = true;
      rest(s.control);
      return;
    }
    for (const at of queued) {
      const request = s.requests[at]!;
      const open = asked(at).may.find((endpoint) => hasRoom(s, endpoint));
      const nowhere = s.endpoints.some(({ live }) => live) && !asked(at).may.some((each) => s.endpoints[each]!.live);
      if (request.place !== 'waiting') {
        // Given up: its number in the ring gives the slot back.
        request.queued = false;
        return;
      }
      if (open === undefined && !nowhere) continue;
      request.queued = false;
      s.waiting[asked(at).band]--;
      request.place = nowhere ? 'rejected' : 'dispatched';
      if (open !== undefined) {
        charge(s, request, open);
        s.endpoints[open]!.inflight++;
      }
      returnSlot(s, at);
      return;
    }
    rest(s.control);
  }

  /** A shard has died: what it held under the lock is summed again, then everything of it is released. */
  function reclaim(s: State, shard: number): void {
    s.shards[shard]!.unreclaimed = false;
    for (const [at, request] of s.requests.entries()) {
      if (asked(at).shard !== shard) continue;
      Object.assign(request, { place: 'dead', entry: -1, queued: false });
    }
    for (const [slot, endpoint] of s.endpoints.entries()) {
      endpoint.inflight = s.requests.filter((each) => each.entry === slot && isCurrent(s, each)).length;
    }
    s.waiting[0] = waitingIn(s, 0);
    s.waiting[1] = waitingIn(s, 1);
    if (s.lock === shard) s.lock = -1;
    s.enqueue[shard] = [];
    s.back[shard] = [];
    runTimer(s.control);
  }

  const waitingIn = (s: State, band: number) =>
    s.requests.filter(({ place }, at) => place === 'waiting' && asked(at).band === band).length;

  function moveEndpoint(s: State): void {
    const endpoint = s.endpoints[0]!;
    if (endpoint.live) {
      s.leaves--;
      endpoint.life++;
      endpoint.inflight = 0;
    }
    endpoint.live = !endpoint.live;
    runTimer(s.control);
  }

  function expire(s: State, at: number): void {
    Object.assign(s.requests[at]!, { place: 'rejected', queued: false });
    s.waiting[asked(at).band]--;
    returnSlot(s, at);
    runTimer(s.control);
  }

  function controlSteps(s: State): Step<State>[] {
    const { control } = s;
    const step = (what: string, own: boolean, take: (n: State) => void) => ({ name: `control ${what}`, own, take });
    if (control.doing.length > 0) return [step(control.doing[0]!.what, true, (n) => carryOn(n, n.control, -1))];
    // A live owner lets the lock go in a moment; a dead one does not.
    const wait = s.lock >= 0 && s.shards[s.lock]!.alive;
    if (control.phase === 'take') return [step('collects', true, collect)];
    if (control.phase === 'serve') return wait ? [] : [step('serves', true, serve)];
    if (control.phase !== 'sleeping') return [step(control.phase, true, (n) => turn(n.control))];
    const found: Step<State>[] = [];
    if (s.again) {
      found.push(
        step('comes again', true, (n) => {
          n.again = false;
          runTimer(n.control);
        }),
      );
    }
    for (const [shard, { unreclaimed }] of s.shards.entries()) {
      const free = s.lock < 0 || s.lock === shard;
      if (unreclaimed && free) found.push(step(`reclaims ${shard}`, true, (n) => reclaim(n, shard)));
    }
    if (s.lock >= 0) return found;
    if (s.leaves > 0 || !s.endpoints[0]!.live) {
      const own = !s.endpoints[0]!.live;
      found.push(step(own ? 'gets endpoint 0' : 'loses endpoint 0', own, moveEndpoint));
    }
    for (const [at, { queued, place }] of s.requests.entries()) {
      const over = queued && place === 'waiting' && asked(at).expires === true;
      if (over) found.push(step(`ends the wait of ${at}`, false, (n) => expire(n, at)));
    }
    return found;
  }

  // ---------------------------------------------------------------------------------------------------- what must hold

  function broken(s: State): string | undefined {
    if (s.lock >= 0) return undefined;
    for (const band of [0, 1] as const) {
      if (s.waiting[band] !== waitingIn(s, band)) return `${s.waiting[band]} are said to wait in band ${band}`;
    }
    for (const [slot, { inflight }] of s.endpoints.entries()) {
      const charged = s.requests.filter((each) => each.entry === slot && isCurrent(s, each)).length;
      if (inflight !== charged) return `${inflight} are said to be in flight to endpoint ${slot}, which has ${charged}`;
      if (charged > 1) return `two requests have the place of endpoint ${slot}`;
    }
    const back = s.back.flat();
    return new Set(back).size === back.length ? undefined : 'a slot comes back twice';
  }

  function stuck(s: State): string | undefined {
    const left = s.requests.findIndex(({ place }) => place !== 'over' && place !== 'dead');
    if (left >= 0) return `nothing goes on, and request ${left} is ${s.requests[left]!.place}`;
    if (s.endpoints.some(({ inflight }) => inflight !== 0)) return 'a charge without a request';
    return s.enqueue.flat().length + s.back.flat().length === 0 ? undefined : 'a number is left in a ring';
  }

  const steps = (s: State) => {
    const alive = s.shards.flatMap((each, shard) => (each.alive ? shardSteps(s, shard) : []));
    return [...alive, ...controlSteps(s)];
  };
  return { start, steps, copy: copyOf, key: keyOf, broken, stuck };
}
