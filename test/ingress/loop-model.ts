import { TurnBudget, type TurnBudgetOptions } from '../../dist/src/ingress/turn-budget.js';

/** Milliseconds of the thread for a request: read and queued, served, answered; and for one that is refused. */
const COSTS = { read: 0.004, serve: 0.011, answer: 0.007, refuse: 0.0013 };
const CAPACITY = 1 / (COSTS.read + COSTS.serve + COSTS.answer);
const SOCKETS = 4;
const COLD_COST = 3;
/** As `TURN_MS` of limits.ts. */
const TURN_MS = 1;

export interface Traffic {
  /** Offered requests as a multiple of what the thread can serve. */
  readonly load: number;
  readonly ms: number;
  /** Requests that come at once, and a stall of the thread in milliseconds, both in the middle. */
  readonly burst?: number;
  readonly stallMs?: number;
  /** Cost of everything, as a multiple. */
  readonly slowness?: number;
  /** Milliseconds at the begin in which everything costs `COLD_COST` times as much: code is not compiled yet. */
  readonly coldMs?: number;
}

export interface Outcome {
  readonly refused: number;
  /** Served in time, of what the thread can serve. */
  readonly share: number;
  /** Age of the served at their answer in milliseconds, the oldest 1 %; and of the refused. */
  readonly p99: number;
  readonly refusedP99: number;
}

interface Socket {
  /** When the requests were sent that have not been read; NaN = the end of an answer. */
  readonly unread: number[];
  arrivedAt: number;
  isBehind: boolean;
}

/** An event loop with a turn budget and sockets, in its own time: requests come evenly, and nothing else runs. */
export class LoopModel {
  readonly #budget: TurnBudget;
  readonly #warmCosts: typeof COSTS;
  readonly #coldCosts: typeof COSTS;
  readonly #sockets: Socket[] = Array.from({ length: SOCKETS }, () => ({ unread: [], arrivedAt: 0, isBehind: false }));
  readonly #traffic: Traffic;
  readonly #everyMs: number;
  readonly #ages: number[] = [];
  #deferred: (() => void)[] = [];
  #answers: { readonly socket: Socket; readonly at: number }[] = [];
  #clock = 0;
  #lastTurnAt = 0;
  #sent = 0;
  #dueAt = 0;
  readonly #refusedAges: number[] = [];
  #isDisturbed = false;

  constructor(traffic: Traffic, options: Omit<TurnBudgetOptions, 'now' | 'recent' | 'defer'>) {
    const { slowness = 1, load } = traffic;
    this.#traffic = traffic;
    this.#everyMs = slowness / (CAPACITY * load);
    this.#warmCosts = times(COSTS, slowness);
    this.#coldCosts = times(this.#warmCosts, COLD_COST);
    const now = (): number => this.#clock;
    this.#budget = new TurnBudget({ ...options, now, recent: now, defer: (run) => this.#deferred.push(run) });
  }

  run(): Outcome {
    const { ms, slowness = 1 } = this.#traffic;
    while (this.#clock < ms || this.#sockets.some(({ unread }) => unread.length > 0)) this.#turn();
    const share = this.#ages.length / ((CAPACITY / slowness) * ms);
    return { refused: this.#refused, share, p99: p99(this.#ages), refusedP99: p99(this.#refusedAges) };
  }

  get #costs(): typeof COSTS {
    return this.#clock < (this.#traffic.coldMs ?? 0) ? this.#coldCosts : this.#warmCosts;
  }

  get #refused(): number {
    return this.#refusedAges.length;
  }

  #turn(): void {
    const earliest = this.#lastTurnAt;
    this.#lastTurnAt = this.#clock;
    this.#disturb();
    for (const socket of this.#sockets) this.#read(socket, earliest);
    const due = this.#deferred;
    this.#deferred = [];
    for (const run of due) run();
    // At least the time of a turn in which nothing comes.
    this.#clock = Math.max(this.#clock, this.#lastTurnAt + 0.05);
  }

  #disturb(): void {
    const { ms, burst = 0, stallMs = 0 } = this.#traffic;
    if (this.#isDisturbed || this.#clock < ms / 2) return;
    this.#isDisturbed = true;
    for (let i = 0; i < burst; i++) this.#send(this.#clock);
    this.#clock += stallMs;
  }

  #send(at: number): void {
    this.#sockets[this.#sent++ % SOCKETS]!.unread.push(at);
  }

  /** Brings what has come by now into the sockets. */
  #arrive(): void {
    for (; this.#dueAt <= this.#clock && this.#dueAt < this.#traffic.ms; this.#dueAt += this.#everyMs) {
      this.#send(this.#dueAt);
    }
    for (const { socket } of this.#answers.filter(({ at }) => at <= this.#clock)) socket.unread.push(Number.NaN);
    this.#answers = this.#answers.filter(({ at }) => at > this.#clock);
  }

  #read(socket: Socket, earliest: number): void {
    this.#arrive();
    if (!socket.isBehind) socket.arrivedAt = earliest;
    const begin = this.#clock;
    const requestsBefore = this.#refused + this.#ages.length + this.#budget.waiting;
    let read = 0;
    while (read < socket.unread.length && this.#clock - begin < TURN_MS) this.#take(socket, socket.unread[read++]!);
    socket.unread.splice(0, read);
    socket.isBehind = socket.unread.length > 0;
    const requests = this.#refused + this.#ages.length + this.#budget.waiting - requestsBefore;
    if (socket.isBehind && requests > 0) this.#budget.behind();
  }

  #take(socket: Socket, sentAt: number): void {
    const { read, answer, refuse } = this.#costs;
    if (Number.isNaN(sentAt)) this.#clock += answer;
    else if (this.#budget.refuses(socket.arrivedAt)) this.#refuse(refuse, sentAt);
    else {
      this.#clock += read;
      const work = {
        isWaiting: true,
        begin: () => this.#serve(socket, sentAt),
        expire: () => this.#refuse(refuse, sentAt),
      };
      const entered = this.#budget.enter(work, socket.arrivedAt);
      if (entered === 'now') this.#serve(socket, sentAt);
      else if (entered === 'refused') this.#refuse(refuse, sentAt);
    }
  }

  #serve(socket: Socket, sentAt: number): void {
    this.#clock += this.#costs.serve;
    this.#ages.push(this.#clock - sentAt);
    this.#answers.push({ socket, at: this.#clock + 0.5 });
  }

  #refuse(cost: number, sentAt: number): void {
    this.#clock += cost;
    this.#refusedAges.push(this.#clock - sentAt);
  }
}

function times(costs: typeof COSTS, factor: number): typeof COSTS {
  const { read, serve, answer, refuse } = costs;
  return { read: read * factor, serve: serve * factor, answer: answer * factor, refuse: refuse * factor };
}

function p99(ages: number[]): number {
  return ages.sort((a, b) => a - b)[Math.trunc(0.99 * (ages.length - 1))] ?? 0;
}
