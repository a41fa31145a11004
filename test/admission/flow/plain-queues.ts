// What the queue machine must do, said plainly: one list of everything that waits, searched from end to end. It shares
// nothing with the machine but the contract and the settings.
import type { QueuedRequest } from '../../../dist/admission/flow/queue-contract.js';
import type { BandSettings, FlowControlSettings } from '../../../dist/admission/flow/settings.js';

export interface PlainItem {
  readonly request: QueuedRequest;
  readonly handle: number;
  readonly sequence: number;
  readonly enqueuedMs: number;
  readonly order: number;
  /** Which candidates it has, as text. */
  readonly candidates: string;
  /** The only endpoint that it may go to now. */
  only: number;
}

interface PlainFlow {
  tag: number;
  tie: number;
  credit: number;
  service: number;
}

interface Running {
  readonly item: PlainItem;
  paid: number;
}

const STICKY_MS = 500;

export class PlainQueues {
  readonly settings: FlowControlSettings;
  waiting: PlainItem[] = [];
  readonly running = new Map<number, Running>();
  readonly #flows = new Map<string, PlainFlow>();
  readonly #reached = new Map<string, number>();
  #changes = 0;
  #sequence = 0;
  empty = false;
  #emptySinceMs = -Infinity;

  constructor(settings: FlowControlSettings) {
    this.settings = settings;
  }

  band(priority: number): BandSettings {
    const { bands, fallback } = this.settings;
    return bands.find((band) => band.priority === priority) ?? fallback;
  }

  enqueue(request: QueuedRequest, handle: number, nowMs: number, sticky: boolean): void {
    const sequence = ++this.#sequence;
    const item: PlainItem = {
      request,
      handle,
      sequence,
      enqueuedMs: nowMs,
      order: this.#orderOf(request, nowMs, sequence),
      candidates: request.candidates === undefined ? 'all' : request.candidates.join(),
      only: sticky ? request.stickySlot : -1,
    };
    this.#enter(item);
  }

  #enter(item: PlainItem): void {
    if (!this.waiting.some((other) => sameFlow(other, item))) this.#wake(item);
    this.waiting.push(item);
  }

  #orderOf(request: QueuedRequest, nowMs: number, sequence: number): number {
    const { ordering } = this.band(request.priority);
    if (ordering.kind === 'deadline') return Math.min(request.deadlineMs, nowMs + this.settings.ttlMs);
    if (ordering.kind === 'first-token-objective') return request.firstTokenDueMs;
    if (ordering.kind === 'arrival') return sequence;
    return nowMs + Math.min(ordering.ageBoundMs, ordering.msPerToken * request.uncachedTokens);
  }

  remove(handle: number): PlainItem {
    const item = this.waiting.find((other) => other.handle === handle)!;
    this.waiting = this.waiting.filter((other) => other !== item);
    return item;
  }

  deadlineOf(item: PlainItem): number {
    const budget = this.empty ? this.settings.noEndpointTtlMs : this.settings.ttlMs;
    return Math.min(item.request.deadlineMs, Math.max(item.enqueuedMs, this.#emptySinceMs) + budget);
  }

  setEmpty(empty: boolean, nowMs: number): void {
    if (empty === this.empty) return;
    this.empty = empty;
    this.#emptySinceMs = nowMs;
  }

  endSticky(nowMs: number): void {
    for (const item of this.waiting) if (item.only >= 0 && item.enqueuedMs + STICKY_MS <= nowMs) item.only = -1;
  }

  /** Whether this request may be the one that goes now, when exactly these could go. */
  mayGo(item: PlainItem, open: readonly PlainItem[], nowMs: number): boolean {
    const highest = Math.max(...open.map((each) => each.request.priority));
    if (item.request.priority !== highest) return false;
    const all = open.filter((each) => each.request.priority === highest);
    const { fairness } = this.band(highest);
    if (fairness.kind === 'global-strict') return all.every((each) => each === item || before(item, each));
    const heads = all.filter((each) => all.every((other) => !sameLane(each, other) || !before(other, each)));
    if (!heads.includes(item)) return false;
    if (fairness.kind === 'program-aware') {
      const band = this.waiting.filter((each) => each.request.priority === highest);
      const firsts = band.filter((each) => band.every((other) => !sameLane(each, other) || !before(other, each)));
      const score = this.#scores(firsts, fairness, nowMs);
      return heads.every((each) => score(each) <= score(item) + 1e-9);
    }
    const own = this.flow(item);
    return heads.every((each) => {
      const other = this.flow(each);
      return own.tag < other.tag || (own.tag === other.tag && own.tie <= other.tie);
    });
  }

  #scores(heads: readonly PlainItem[], weights: { serviceWeight: number; headWaitWeight: number }, nowMs: number) {
    const services = heads.map((each) => this.flow(each).service);
    const waits = heads.map((each) => nowMs - each.enqueuedMs);
    const part = (value: number, all: readonly number[]) => {
      const [least, most] = [Math.min(...all), Math.max(...all)];
      return most > least ? (value - least) / (most - least) : 0.5;
    };
    return (item: PlainItem) =>
      weights.serviceWeight * (1 - part(this.flow(item).service, services)) +
      weights.headWaitWeight * part(nowMs - item.enqueuedMs, waits);
  }

  granted(item: PlainItem): void {
    this.waiting = this.waiting.filter((other) => other !== item);
    const output = Math.min(1, item.request.maxTokens);
    this.running.set(item.handle, { item, paid: output });
    const lane = `${item.request.priority} ${placeOf(item)}`;
    this.#reached.set(lane, Math.max(this.#reached.get(lane) ?? 0, this.flow(item).tag));
    this.#pay(item, item.request.uncachedTokens + output, true);
  }

  progress(handle: number, output: number): void {
    const running = this.running.get(handle)!;
    if (output <= running.paid) return;
    const more = Math.ceil((output - running.paid) / 64) * 64;
    running.paid += more;
    this.#pay(running.item, more, false);
  }

  end(handle: number, output: number): void {
    const { item, paid } = this.running.get(handle)!;
    this.running.delete(handle);
    if (paid > output) this.#giveBack(item, paid - output);
    else if (paid < output) this.#pay(item, output - paid, false);
    this.flow(item).service += item.request.promptTokens + 2 * output;
  }

  requeue(handle: number): void {
    const { item, paid } = this.running.get(handle)!;
    this.running.delete(handle);
    this.#giveBack(item, item.request.uncachedTokens + paid);
    item.only = -1;
    this.#enter(item);
  }

  /** Service of all flows fades alike. */
  fade(elapsedMs: number, halfLifeMs: number): void {
    for (const flow of this.#flows.values()) flow.service *= 2 ** (-elapsedMs / halfLifeMs);
  }

  flow(item: PlainItem): PlainFlow {
    const key = `${item.request.priority} ${item.request.flow}`;
    const known = this.#flows.get(key) ?? { tag: 0, tie: 0, credit: 0, service: 0 };
    this.#flows.set(key, known);
    return known;
  }

  #weightOf(item: PlainItem): number {
    const { fairness } = this.band(item.request.priority);
    return 'weights' in fairness ? (fairness.weights[item.request.flow] ?? 1) : 1;
  }

  #pay(item: PlainItem, tokens: number, once: boolean): void {
    const { fairness } = this.band(item.request.priority);
    const flow = this.flow(item);
    const before = flow.tag;
    const weight = this.#weightOf(item);
    if (fairness.kind === 'round-robin' && once) flow.tag += 1;
    if (fairness.kind === 'start-time') {
      const spent = Math.min(flow.credit, tokens);
      flow.credit -= spent;
      flow.tag += (tokens - spent) / weight;
    }
    if (fairness.kind === 'deficit-round-robin') {
      flow.credit -= tokens;
      while (flow.credit <= 0) {
        flow.credit += fairness.quantumTokens * weight;
        flow.tag += 1;
      }
    }
    if (flow.tag !== before) flow.tie = ++this.#changes;
  }

  #giveBack(item: PlainItem, tokens: number): void {
    const { fairness } = this.band(item.request.priority);
    if (fairness.kind === 'start-time' || fairness.kind === 'deficit-round-robin') this.flow(item).credit += tokens;
  }

  #wake(item: PlainItem): void {
    const { fairness } = this.band(item.request.priority);
    const flow = this.flow(item);
    const { priority } = item.request;
    const others = this.waiting.filter((each) => each.request.priority === priority).map((each) => this.flow(each).tag);
    const served = [...this.#reached].filter(([lane]) => lane.startsWith(`${priority} `)).map(([, tag]) => tag);
    const start = others.length > 0 ? Math.min(...others) : Math.max(0, ...served);
    const reached = Math.max(start, this.#reached.get(`${priority} ${placeOf(item)}`) ?? 0);
    if (fairness.kind === 'round-robin') flow.tag = Math.max(flow.tag, reached);
    if (fairness.kind === 'start-time') {
      flow.tag = Math.max(flow.tag, reached);
      flow.credit = Math.min(flow.credit, (flow.tag - reached) * this.#weightOf(item));
    }
    if (fairness.kind === 'deficit-round-robin' && !(flow.tag >= reached && flow.credit > 0)) {
      flow.tag = Math.max(flow.tag, reached);
      flow.credit = fairness.quantumTokens * this.#weightOf(item);
    }
    flow.tie = ++this.#changes;
  }
}

function placeOf(item: PlainItem): string {
  if (item.only < 0) return item.candidates;
  const words = new Array<number>((item.only >> 5) + 1).fill(0);
  words[item.only >> 5] = (1 << (item.only & 31)) >>> 0;
  return words.join();
}

function before(a: PlainItem, b: PlainItem): boolean {
  return a.order < b.order || (a.order === b.order && a.sequence < b.sequence);
}

function sameFlow(a: PlainItem, b: PlainItem): boolean {
  return a.request.priority === b.request.priority && a.request.flow === b.request.flow;
}

function sameLane(a: PlainItem, b: PlainItem): boolean {
  return sameFlow(a, b) && placeOf(a) === placeOf(b);
}
