// What the queue machine must do, said plainly: one list of everything that waits, searched from end to end. It shares
// nothing with the machine but the contract, the settings and the bounds.

import type { BandSettings, FlowControlSettings } from '../../dist/src/contract/queue-settings.js';
import type { RefusalCause } from '../../dist/src/contract/refusing-bound.js';
import type { QueuedRequest } from '../../dist/src/flow-control/queue-contract.js';
import type { QueueBounds } from '../../dist/src/flow-control/queue-machine.js';
import { learnOutput, type PlainFlow, PlainOutputs, pay, rebase, refund, wake } from './plain-accounts.ts';
import { type PlainClass, PlainClasses } from './plain-classes.ts';

export interface PlainItem {
  readonly request: QueuedRequest;
  readonly handle: number;
  readonly sequence: number;
  readonly enqueuedMs: number;
  readonly flow: PlainFlow;
  /** That it counts for in the limits while it waits. */
  readonly tokens: number;
  order: number;
  /** Endpoints that may serve it and are in the pool still; undefined = every one, now and later. */
  slots: readonly number[] | undefined;
  own: PlainClass;
  /** Where it stands: its own class, or that of the only endpoint that it may go to now. */
  at: PlainClass;
  only: number;
}

interface PlainBand {
  readonly priority: number;
  settings: BandSettings;
  /** Largest tag that was served in each class. */
  readonly reached: Map<PlainClass, number>;
  idleSinceMs: number;
  running: number;
}

interface Running {
  readonly item: PlainItem;
  paid: number;
  seen: number;
}

const STICKY_MS = 500;
const FLOW_IDLE_MS = 300_000;
const BAND_IDLE_MS = 600_000;
const BANDS_LOOK_MS = 60_000;
/** Idle flows that one arrival makes forgotten at most. */
const FORGOTTEN_MOST = 8;

export class PlainQueues {
  waiting: PlainItem[] = [];
  readonly running = new Map<number, Running>();
  readonly classes = new PlainClasses();
  settings: FlowControlSettings;
  empty = false;
  readonly #bounds: QueueBounds;
  readonly #bands: PlainBand[] = [];
  #flows: PlainFlow[] = [];
  readonly #outputs = new PlainOutputs();
  #changes = 0;
  #sequence = 0;
  #emptySinceMs = -Infinity;
  #bandsLookedMs = 0;

  constructor(settings: FlowControlSettings, bounds: QueueBounds) {
    this.settings = settings;
    this.#bounds = bounds;
    for (const priority of configured(settings)) this.#band(priority, 0);
  }

  get flowCount(): number {
    return this.#flows.length;
  }

  // ---------------------------------------------------------------------------------------------- bands and flows

  #band(priority: number, nowMs: number): PlainBand {
    const known = this.#bands.find((band) => band.priority === priority);
    if (known !== undefined) return known;
    const settings = settingsOf(priority, this.settings);
    const band = { priority, settings, reached: new Map(), idleSinceMs: nowMs, running: 0 };
    this.#bands.push(band);
    return band;
  }

  #bandOf({ flow }: PlainItem): PlainBand {
    return this.#bands.find((band) => band.priority === flow.priority)!;
  }

  #waitingIn(priority: number): PlainItem[] {
    return this.waiting.filter((item) => item.flow.priority === priority);
  }

  /** A band goes, and its flows with it. */
  #dropBands(which: (band: PlainBand) => boolean): void {
    for (const band of this.#bands.filter(which)) {
      this.#bands.splice(this.#bands.indexOf(band), 1);
      this.#flows = this.#flows.filter((flow) => flow.priority !== band.priority);
    }
  }

  #forgetIdle(nowMs: number): void {
    const idle = this.#idleFlows().filter(({ idle }) => idle!.sinceMs <= nowMs - flowIdleMs(this.settings));
    for (const flow of idle.slice(0, FORGOTTEN_MOST)) this.#flows.splice(this.#flows.indexOf(flow), 1);
    if (nowMs - this.#bandsLookedMs < BANDS_LOOK_MS) return;
    this.#bandsLookedMs = nowMs;
    const named = configured(this.settings);
    this.#dropBands(
      ({ priority, idleSinceMs, running }) =>
        !named.includes(priority) &&
        this.#waitingIn(priority).length + running === 0 &&
        nowMs - idleSinceMs >= BAND_IDLE_MS,
    );
  }

  /** Longest idle first. */
  #idleFlows(): PlainFlow[] {
    return this.#flows.filter(({ idle }) => idle !== undefined).sort((a, b) => a.idle!.number - b.idle!.number);
  }

  #findFlow(priority: number, id: string): PlainFlow | undefined {
    return this.#flows.find((flow) => flow.priority === priority && flow.id === id);
  }

  #openFlow(priority: number, id: string): PlainFlow {
    if (this.#flows.length === this.#bounds.flows) this.#flows.splice(this.#flows.indexOf(this.#idleFlows()[0]!), 1);
    const account = { tag: 0, tie: 0, credit: 0, service: 0, turns: 0, endedMs: undefined };
    const outputs = { outputMean: this.#outputs.mean, outputs: 1 };
    const flow = { priority, id, ...account, ...outputs, waiting: 0, running: 0, idle: undefined };
    this.#flows.push(flow);
    return flow;
  }

  #leaveFlow(flow: PlainFlow, nowMs: number): void {
    if (flow.waiting + flow.running === 0) flow.idle = { number: ++this.#changes, sinceMs: nowMs };
  }

  // ------------------------------------------------------------------------------------------------- what comes

  /** Bounds that one more request would break; it is taken when there are none. Call it before `enqueue`. */
  refusals(request: QueuedRequest, nowMs: number): readonly RefusalCause[] {
    this.#forgetIdle(nowMs);
    const band = this.#band(request.priority, nowMs);
    const own = this.#waitingIn(request.priority);
    const tokens = this.#tokensOf(request);
    const sum = (items: readonly PlainItem[], of: (item: PlainItem) => number) =>
      items.reduce((total, item) => total + of(item), 0);
    const broken = (scope: 'pool' | 'band', items: readonly PlainItem[]): RefusalCause[] => {
      const limits = scope === 'pool' ? this.settings.limits : band.settings.limits;
      const found: RefusalCause[] = [];
      if (items.length + 1 > limits.requests) found.push(`${scope}-requests`);
      if (sum(items, (item) => item.request.bytes) + request.bytes > limits.bytes) found.push(`${scope}-bytes`);
      if (sum(items, (item) => item.tokens) + tokens > limits.tokens) found.push(`${scope}-tokens`);
      return found;
    };
    const causes = [...broken('pool', this.waiting), ...broken('band', own)];
    if (this.waiting.length + this.running.size === this.#bounds.requests) causes.push('too-many-waiting');
    const known = this.#findFlow(request.priority, request.flow) !== undefined;
    const crowded = this.#flows.length === this.#bounds.flows && this.#idleFlows().length === 0;
    if (!known && crowded) causes.push('too-many-flows');
    return causes;
  }

  #tokensOf({ priority, flow, uncachedTokens, maxTokens }: QueuedRequest): number {
    const mean = this.#findFlow(priority, flow)?.outputMean ?? this.#outputs.mean;
    return uncachedTokens + (maxTokens > 0 ? Math.min(mean, maxTokens) : mean);
  }

  enqueue(request: QueuedRequest, slots: readonly number[] | undefined, handle: number, nowMs: number): void {
    const band = this.#band(request.priority, nowMs);
    const sequence = ++this.#sequence;
    const tokens = this.#tokensOf(request);
    const flow = this.#findFlow(request.priority, request.flow) ?? this.#openFlow(request.priority, request.flow);
    const own = this.classes.find(slots);
    const order = this.#orderOf(band, request, nowMs, sequence);
    const item = { request, handle, sequence, enqueuedMs: nowMs, flow, tokens, order, slots, own, at: own, only: -1 };
    this.#stick(item, band);
    this.#enter(item);
  }

  /** Waits for the endpoint that holds its prefix first; the highest of several bands does not. */
  #stick(item: PlainItem, band: PlainBand): void {
    const { stickySlot } = item.request;
    const highest = this.#bands.length > 1 && this.#bands.every(({ priority }) => priority <= band.priority);
    if (stickySlot < 0 || highest) return;
    item.own.members++;
    const at = this.classes.findExact([stickySlot]);
    item.own.members--;
    if (at === undefined || at === item.own) return;
    item.at = at;
    item.only = stickySlot;
  }

  #enter(item: PlainItem): void {
    item.own.members++;
    item.at.members++;
    item.flow.idle = undefined;
    if (item.flow.waiting++ === 0) this.#wake(item);
    this.waiting.push(item);
  }

  #leave(item: PlainItem, nowMs: number): void {
    item.own.members--;
    item.at.members--;
    item.flow.waiting--;
    this.waiting = this.waiting.filter((other) => other !== item);
    const band = this.#bandOf(item);
    if (this.#waitingIn(band.priority).length === 0) band.idleSinceMs = nowMs;
  }

  #orderOf({ priority, settings }: PlainBand, request: QueuedRequest, enqueuedMs: number, sequence: number): number {
    const { ordering } = settings;
    if (ordering.kind === 'deadline') return Math.min(request.deadlineMs, enqueuedMs + ttlOf(priority, this.settings));
    if (ordering.kind === 'first-token-objective') return request.firstTokenDueMs;
    if (ordering.kind === 'arrival') return sequence;
    return enqueuedMs + Math.min(ordering.ageBoundMs, ordering.msPerToken * request.uncachedTokens);
  }

  /** It leaves without having been served. */
  remove(handle: number, nowMs: number): PlainItem {
    const item = this.find(handle);
    this.#leave(item, nowMs);
    this.#leaveFlow(item.flow, nowMs);
    return item;
  }

  find(handle: number): PlainItem {
    return this.waiting.find((item) => item.handle === handle)!;
  }

  deadlineOf(item: PlainItem): number {
    const budget = this.empty ? this.settings.noEndpointTtlMs : ttlOf(item.flow.priority, this.settings);
    return Math.min(item.request.deadlineMs, Math.max(item.enqueuedMs, this.#emptySinceMs) + budget);
  }

  /** Whether nobody could serve it, so that this is what it is told when its time is over. */
  isNowhere(item: PlainItem): boolean {
    return this.empty || item.own.empty;
  }

  setEmpty(empty: boolean, nowMs: number): void {
    if (empty === this.empty) return;
    this.empty = empty;
    this.#emptySinceMs = nowMs;
  }

  /** The endpoint of a slot has left: nobody waits for it any more. */
  endpointGone(slot: number): void {
    for (const item of this.waiting) {
      if (item.only === slot) this.#unstick(item);
      item.slots = item.slots?.filter((other) => other !== slot);
    }
    this.classes.endpointGone(slot);
  }

  #unstick(item: PlainItem): void {
    item.at.members--;
    item.own.members++;
    item.at = item.own;
    item.only = -1;
  }

  endSticky(nowMs: number): void {
    for (const item of this.waiting) {
      if (item.only >= 0 && item.enqueuedMs + STICKY_MS <= nowMs) this.#unstick(item);
    }
  }

  /** Other settings: what waits keeps its place; where the policies change, it is put in order again as it came. */
  configure(settings: FlowControlSettings, nowMs: number): void {
    const renewed = (band: PlainBand) =>
      !samePolicies(band.settings, settingsOf(band.priority, settings)) ||
      (band.settings.ordering.kind === 'deadline' &&
        ttlOf(band.priority, settings) !== ttlOf(band.priority, this.settings));
    const replaced = this.#bands.filter(renewed);
    const moved = this.waiting.filter((item) => replaced.includes(this.#bandOf(item)));
    moved.sort((a, b) => a.sequence - b.sequence);
    const before = new Map(this.#bands.map((band) => [band, band.settings.fairness.kind]));
    const used = new Set([...this.waiting, ...[...this.running.values()].map(({ item }) => item)].map(bandNumber));
    for (const item of moved) this.#leave(item, nowMs);
    this.settings = settings;
    const named = configured(settings);
    this.#dropBands(({ priority }) => !named.includes(priority) && !used.has(priority));
    for (const band of this.#bands) band.settings = settingsOf(band.priority, settings);
    for (const band of replaced) {
      band.reached.clear();
      band.idleSinceMs = nowMs;
      const flows = this.#flows.filter(({ priority }) => priority === band.priority);
      rebase(flows, before.get(band) === band.settings.fairness.kind);
    }
    for (const priority of named) this.#band(priority, nowMs);
    for (const item of moved) {
      item.at = item.own;
      item.only = -1;
      item.order = this.#orderOf(this.#bandOf(item), item.request, item.enqueuedMs, item.sequence);
      this.#enter(item);
    }
  }

  // ------------------------------------------------------------------------------------------------- who goes next

  /** Whether this request may be the one that goes now, when exactly these could go. */
  mayGo(item: PlainItem, open: readonly PlainItem[], nowMs: number): boolean {
    const highest = Math.max(...open.map(bandNumber));
    if (item.flow.priority !== highest) return false;
    const all = open.filter((each) => bandNumber(each) === highest);
    const { fairness } = this.#bandOf(item).settings;
    if (fairness.kind === 'global-strict') return all.every((each) => each === item || before(item, each));
    const heads = all.filter((each) => all.every((other) => !sameLane(each, other) || !before(other, each)));
    if (!heads.includes(item)) return false;
    if (fairness.kind === 'turn-priority') {
      const score = (each: PlainItem) => turnScore(each, fairness, nowMs);
      const ties = heads.filter((each) => Math.abs(score(each) - score(item)) < 1e-9);
      return heads.every((each) => score(each) < score(item) || ties.includes(each)) && isFirst(item, ties);
    }
    if (fairness.kind !== 'program-aware') return heads.every((each) => !isWorseOff(each.flow, item.flow));
    const band = this.#waitingIn(highest);
    const firsts = band.filter((each) => band.every((other) => !sameLane(each, other) || !before(other, each)));
    const score = scores(firsts, fairness, nowMs);
    return heads.every((each) => score(each) <= score(item) + 1e-9);
  }

  #wake(item: PlainItem): void {
    const { settings, reached } = this.#bandOf(item);
    const others = this.#waitingIn(item.flow.priority).map(({ flow }) => flow.tag);
    const served = [...reached].filter(([each]) => this.classes.knows(each)).map(([, tag]) => tag);
    const start = others.length > 0 ? Math.min(...others) : Math.max(0, ...served);
    wake(settings.fairness, item.flow, Math.max(start, reached.get(item.at) ?? 0));
    item.flow.tie = ++this.#changes;
  }

  // ----------------------------------------------------------------------------------------------- what it costs

  dispatched(item: PlainItem, nowMs: number): void {
    const { flow, at, request } = item;
    const { reached, settings } = this.#bandOf(item);
    const output = this.#tokensOf(request) - request.uncachedTokens;
    reached.set(at, Math.max(reached.get(at) ?? 0, flow.tag));
    this.#change(flow, () => pay(settings.fairness, flow, request.uncachedTokens + output, true));
    if (settings.fairness.kind === 'turn-priority') flow.turns++;
    this.#leave(item, nowMs);
    // More than half of the records are not followed: the flow's account stays as it was estimated.
    if (this.running.size >= this.#bounds.requests >> 1) {
      this.#leaveFlow(flow, nowMs);
      return;
    }
    flow.running++;
    this.#bandOf(item).running++;
    this.running.set(item.handle, { item, paid: output, seen: 0 });
  }

  #change(flow: PlainFlow, pays: () => void): void {
    const { tag } = flow;
    pays();
    if (flow.tag !== tag) flow.tie = ++this.#changes;
  }

  #see(running: Running, output: number, ends: number, nowMs: number): void {
    if (output > running.seen || ends > 0) this.#outputs.add(Math.max(0, output - running.seen), ends, nowMs);
    running.seen = Math.max(running.seen, output);
  }

  progress(handle: number, output: number, nowMs: number): void {
    const running = this.running.get(handle);
    if (running === undefined) return;
    this.#see(running, output, 0, nowMs);
    if (output <= running.paid) return;
    const more = Math.ceil((output - running.paid) / 64) * 64;
    running.paid += more;
    const { flow } = running.item;
    this.#change(flow, () => pay(this.#bandOf(running.item).settings.fairness, flow, more, false));
  }

  /** It is over. What it has shown to have generated is not taken back. */
  end(handle: number, told: number, nowMs: number): void {
    const running = this.running.get(handle);
    if (running === undefined) return;
    const { item, paid } = running;
    const { flow } = item;
    const { fairness } = this.#bandOf(item).settings;
    const output = Math.max(told, running.seen);
    this.#see(running, output, 1, nowMs);
    learnOutput(flow, output);
    if (paid > output) refund(fairness, flow, paid - output);
    else if (paid < output) this.#change(flow, () => pay(fairness, flow, output - paid, false));
    flow.service += item.request.promptTokens + 2 * output;
    if (fairness.kind === 'turn-priority') flow.endedMs = nowMs;
    this.#stop(running, nowMs);
    this.#leaveFlow(flow, nowMs);
  }

  #stop({ item }: Running, nowMs: number): void {
    this.running.delete(item.handle);
    item.flow.running--;
    const band = this.#bandOf(item);
    band.running--;
    band.idleSinceMs = nowMs;
  }

  /** A dispatch could not be used: back to where it came from. */
  requeue(handle: number, nowMs: number): void {
    const running = this.running.get(handle)!;
    const { item, paid } = running;
    refund(this.#bandOf(item).settings.fairness, item.flow, item.request.uncachedTokens + paid);
    if (this.#bandOf(item).settings.fairness.kind === 'turn-priority')
      item.flow.turns = Math.max(0, item.flow.turns - 1);
    this.#stop(running, nowMs);
    item.own = this.classes.find(item.slots);
    item.at = item.own;
    item.only = -1;
    this.#enter(item);
  }

  /** Time passes: service fades, of all flows alike. */
  fade(elapsedMs: number): void {
    for (const flow of this.#flows) {
      const fairness = this.#bands.find(({ priority }) => priority === flow.priority)?.settings.fairness;
      if (fairness?.kind === 'program-aware') flow.service *= 2 ** (-elapsedMs / fairness.halfLifeMs);
    }
  }
}

function configured({ bands }: FlowControlSettings): readonly number[] {
  return [0, ...bands.map(({ priority }) => priority)];
}

/** Settings of a priority: its own, those of the template, or those of the configured band next below. */
function settingsOf(priority: number, settings: FlowControlSettings): BandSettings {
  const own = settings.bands.find((band) => band.priority === priority);
  const template = priority < 0 ? settings.negativeTemplate : settings.template;
  const below = settings.bands.filter((band) => band.priority < priority);
  const nearest = below.find((band) => below.every((other) => other.priority <= band.priority));
  return own ?? template ?? nearest ?? settings.fallback;
}

/** Longest wait in the band of a priority. */
function ttlOf(priority: number, settings: FlowControlSettings): number {
  return settingsOf(priority, settings).ttlMs ?? settings.ttlMs;
}

function samePolicies(a: BandSettings, b: BandSettings): boolean {
  return JSON.stringify([a.fairness, a.ordering]) === JSON.stringify([b.fairness, b.ordering]);
}

const bandNumber = ({ flow }: PlainItem): number => flow.priority;

function before(a: PlainItem, b: PlainItem): boolean {
  return a.order < b.order || (a.order === b.order && a.sequence < b.sequence);
}

function sameLane(a: PlainItem, b: PlainItem): boolean {
  return a.flow === b.flow && a.at === b.at;
}

function isWorseOff(a: PlainFlow, b: PlainFlow): boolean {
  return a.tag < b.tag || (a.tag === b.tag && a.tie < b.tie);
}

/** Flows stay known for as long as the most patient policy wants. */
function flowIdleMs({ bands, template, negativeTemplate, fallback }: FlowControlSettings): number {
  const policies = [...bands, template, negativeTemplate, fallback].map((band) => band?.fairness);
  return Math.max(FLOW_IDLE_MS, ...policies.map((each) => (each?.kind === 'turn-priority' ? each.forgetMs : 0)));
}

/** Turn of a head plus what its wait counts for. */
function turnScore(
  { flow, enqueuedMs }: PlainItem,
  { timeWeight, inactivityMs }: { timeWeight: number; inactivityMs: number },
  nowMs: number,
): number {
  const idle = flow.running === 0 && flow.endedMs !== undefined && enqueuedMs - flow.endedMs > inactivityMs;
  return (idle ? 1 : flow.turns + 1) + (timeWeight * (nowMs - enqueuedMs)) / 1000;
}

/** Whether it came first among these, as far as the clock tells. */
function isFirst(item: PlainItem, all: readonly PlainItem[]): boolean {
  return all.every(({ enqueuedMs }) => item.enqueuedMs <= enqueuedMs);
}

function scores(
  heads: readonly PlainItem[],
  weights: { serviceWeight: number; headWaitWeight: number },
  nowMs: number,
) {
  const services = heads.map(({ flow }) => flow.service);
  const waits = heads.map(({ enqueuedMs }) => nowMs - enqueuedMs);
  const part = (value: number, all: readonly number[]) => {
    const [least, most] = [Math.min(...all), Math.max(...all)];
    return most > least ? (value - least) / (most - least) : 0.5;
  };
  return ({ flow, enqueuedMs }: PlainItem) =>
    weights.serviceWeight * (1 - part(flow.service, services)) +
    weights.headWaitWeight * part(nowMs - enqueuedMs, waits);
}
