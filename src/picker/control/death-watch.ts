import type { Endpoint, SlotAssignment, SlotUpdate } from '../../contract/endpoint.js';
import { CORE } from '../../core/core-names.js';
import type { EndpointTable } from '../../core/endpoint-table.js';
import type { Part } from '../part.js';
import { checkEndpoint, type EndpointFound } from './endpoint-check.js';

export interface DeathWatchOptions {
  readonly table: Pick<EndpointTable, 'dead' | 'read' | 'setAlive' | 'setDead' | 'watchDoubts'>;
  /** Milliseconds of the pool clock. */
  readonly now: () => number;
  readonly died: (assignment: SlotAssignment, found: EndpointFound) => void;
  readonly returned: (assignment: SlotAssignment) => void;
  /** Default: `checkEndpoint`. */
  readonly check?: ((endpoint: Endpoint) => Promise<EndpointFound>) | undefined;
  readonly everyMs?: number | undefined;
}

/** Interval between two looks at an endpoint that is dead or in doubt. */
const EVERY_MS = 250;
/** Checks under way at the same time. */
const CHECKS_MAX = 64;
/** Time for which a good scrape of an endpoint tells that this picker has a way to the pool. */
const REACHED_MS = 5_000;

interface Watched {
  readonly assignment: SlotAssignment;
  /** Whether this picker has ever had an answer from it. */
  reached: boolean;
  reachedMs: number;
  /** Whether the last scrape failed. */
  scrapeFailed: boolean;
  isDead: boolean;
  /** Whether it answered requests while it refused this picker: a refusal alone says nothing about it. */
  contradicted: boolean;
  checking: boolean;
  /** Whether something happened during the check, so that its result may be outdated. */
  again: boolean;
}

/**
 * Finds out which endpoints are dead. It looks at an endpoint after an unanswered request, a failed scrape or a peer's
 * word, and from then on until the endpoint takes connections again.
 *
 * Dead is one that refuses connections. An endpoint that this picker never reached is dead by a refusal only while the
 * picker reaches others, or while requests to it fail: the picker's way may be closed, and the gateway's open. A silent
 * endpoint, or an unwell one that cannot be scraped, is dead when its requests fail and this picker has reached it
 * before.
 */
export class DeathWatch implements Part {
  readonly #options: DeathWatchOptions;
  readonly #check: (endpoint: Endpoint) => Promise<EndpointFound>;
  readonly #watched = new Map<number, Watched>();
  #timer: NodeJS.Timeout | undefined;
  #checks = 0;
  #isStopped = false;

  constructor(options: DeathWatchOptions) {
    this.#options = options;
    this.#check = options.check ?? checkEndpoint;
  }

  start(): void {
    this.#options.table.watchDoubts();
    this.#timer = setInterval(() => this.#round(), this.#options.everyMs ?? EVERY_MS).unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
  }

  changeEndpoints({ set, removed }: SlotUpdate): void {
    for (const { slot, generation } of removed) {
      if (this.#watched.get(slot)?.assignment.generation === generation) this.#watched.delete(slot);
    }
    for (const assignment of set) {
      const known = this.#watched.get(assignment.slot);
      const same = known !== undefined && known.assignment.generation === assignment.generation;
      this.#watched.set(assignment.slot, { ...(same ? known : unseen), assignment, checking: false, again: false });
    }
  }

  /** Looks at an endpoint at once, after an unanswered request or a peer's word. */
  check(slot: number, generation: number): void {
    const watched = this.#find(slot, generation);
    if (watched !== undefined) void this.#visit(watched);
  }

  /** Takes a scrape of the endpoint. */
  scraped(slot: number, generation: number): void {
    const watched = this.#find(slot, generation);
    if (watched === undefined) return;
    watched.reached = true;
    watched.reachedMs = this.#options.now();
    watched.scrapeFailed = false;
  }

  /** Takes a failed scrape of the endpoint. */
  scrapeFailed(slot: number, generation: number): void {
    const watched = this.#find(slot, generation);
    if (watched === undefined) return;
    watched.scrapeFailed = true;
    if (!watched.isDead) void this.#visit(watched);
  }

  #find(slot: number, generation: number): Watched | undefined {
    const watched = this.#watched.get(slot);
    return watched?.assignment.generation === generation ? watched : undefined;
  }

  #round(): void {
    const { table, returned } = this.#options;
    for (const watched of this.#watched.values()) {
      if (!watched.isDead && table.dead === 0) continue;
      const { death } = table.read(watched.assignment.slot);
      if (watched.isDead && death !== DEAD) {
        watched.isDead = false;
        watched.contradicted = true;
        returned(watched.assignment);
      }
      if (death !== ALIVE && !watched.checking) void this.#visit(watched);
    }
  }

  async #visit(watched: Watched): Promise<void> {
    if (watched.checking) {
      watched.again = true;
      return;
    }
    // The next round comes to those that are in doubt or dead, the next failed scrape to others.
    if (this.#checks >= CHECKS_MAX) return;
    this.#checks += 1;
    watched.checking = true;
    let found: EndpointFound;
    do {
      watched.again = false;
      found = await this.#check(watched.assignment.endpoint);
    } while (watched.again && found === 'answers' && !this.#isStopped);
    this.#checks -= 1;
    watched.checking = false;
    const { slot } = watched.assignment;
    if (!this.#isStopped && this.#watched.get(slot) === watched) this.#conclude(watched, found);
  }

  #conclude(watched: Watched, found: EndpointFound): void {
    const { table, now, died, returned } = this.#options;
    const { assignment } = watched;
    const { slot, generation } = assignment;
    if (found === 'answers') {
      watched.reached = true;
      watched.contradicted = false;
    } else if (this.#isDeath(watched, found)) {
      const written = table.setDead(slot, generation, now());
      // After a lock not had, the next round or scrape tries again.
      if (written === 'changed') {
        watched.isDead = true;
        died(assignment, found);
      }
      return;
    }
    if (watched.isDead && found !== 'answers') return;
    if (table.read(slot).death === ALIVE || table.setAlive(slot, generation, now()) !== 'changed') return;
    watched.isDead = false;
    returned(assignment);
  }

  #isDeath(watched: Watched, found: EndpointFound): boolean {
    const { failures, death } = this.#options.table.read(watched.assignment.slot);
    const fails = failures > 0 || death === DEAD;
    if (found === 'refused')
      return fails || (!watched.contradicted && (watched.reached || this.#reachesOthers(watched)));
    if (found === 'unwell' && !watched.scrapeFailed) return false;
    return fails && watched.reached;
  }

  #reachesOthers(watched: Watched): boolean {
    const since = this.#options.now() - REACHED_MS;
    for (const other of this.#watched.values()) if (other !== watched && other.reachedMs > since) return true;
    return false;
  }
}

const { DEATH_NONE: ALIVE, DEATH_DEAD: DEAD } = CORE;

const unseen = {
  reached: false,
  reachedMs: Number.NEGATIVE_INFINITY,
  scrapeFailed: false,
  isDead: false,
  contradicted: false,
};
