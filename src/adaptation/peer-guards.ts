import type { Arm, Estimate } from './comparison.js';

/**
 * shadow: the configured weights drive the picks · canary: learned costs drive them at most half of the time · active:
 * learned costs drive them nearly always · fallback: the configured weights drive them again, for a while
 */
export type GuardState = 'shadow' | 'canary' | 'active' | 'fallback';

/** A stop of learned costs, told from replica to replica until all have made it. */
export interface Stop {
  /** Replica whose guard has found the reason. */
  readonly replica: string;
  /** Counts the stops by this replica, from 1. */
  readonly number: number;
  readonly reason: string;
  /** Stops in a row, which make the pause longer. */
  readonly fallbacks: number;
}

/** State of a guard, for other replicas. */
export interface GuardNews {
  readonly replica: string;
  readonly state: GuardState;
  /** The arm that drives the picks there, and its epoch. */
  readonly arm: Arm;
  readonly epoch: number;
  /**
   * Evidence: ln(cost with learned costs / cost with the configured weights), or that of goodput the other way round
   * where requests have targets; and the epochs of learned costs behind it.
   */
  readonly gap: Estimate;
  readonly epochs: number;
  /** Its last stop; undefined = none so far. */
  readonly stop: Stop | undefined;
  /** Rest of the pause after the stop, in milliseconds. */
  readonly pauseMs: number;
}

/** Time for which news count. They are told once a second. */
const NEWS_MS = 3_500;
/** Bound on the replicas that are remembered. */
const REPLICAS_MAX = 64;

/** Arm and epoch of the guard that this one keeps step with. */
export interface Lead {
  readonly replica: string;
  readonly arm: Arm;
  readonly epoch: number;
}

interface Heard {
  readonly news: GuardNews;
  readonly atMs: number;
}

const isDriving = ({ state }: GuardNews) => state === 'canary' || state === 'active';

/** News of the guards of other replicas, and what follows from them. Has no clock. */
export class PeerGuards {
  readonly #replica: string;
  readonly #heard = new Map<string, Heard>();
  /** Number of each replica's last stop that this guard has made. */
  readonly #made = new Map<string, number>();

  /** @param replica name of the own replica */
  constructor(replica: string) {
    this.#replica = replica;
  }

  get replica(): string {
    return this.#replica;
  }

  hear(news: GuardNews, nowMs: number): void {
    if (news.replica === this.#replica) return;
    if (!this.#heard.has(news.replica) && this.#heard.size >= REPLICAS_MAX) this.#forget(nowMs);
    if (!this.#heard.has(news.replica) && this.#heard.size >= REPLICAS_MAX) return;
    this.#heard.set(news.replica, { news, atMs: nowMs });
  }

  #forget(nowMs: number): void {
    for (const [replica, { atMs }] of this.#heard) if (nowMs - atMs > NEWS_MS) this.#heard.delete(replica);
  }

  #news(nowMs: number): GuardNews[] {
    this.#forget(nowMs);
    return [...this.#heard.values()].map(({ news }) => news);
  }

  /** A stop of a peer that this guard has not repeated, with the rest of its pause. Each one is returned once. */
  takeStop(nowMs: number): { readonly stop: Stop; readonly pauseMs: number } | undefined {
    for (const { state, stop, pauseMs } of this.#news(nowMs)) {
      if (state !== 'fallback' || stop === undefined || !this.noteStop(stop)) continue;
      return { stop, pauseMs };
    }
    return undefined;
  }

  /** Notes a stop that this guard makes. @returns whether it was new */
  noteStop({ replica, number }: Stop): boolean {
    if ((this.#made.get(replica) ?? 0) >= number) return false;
    if (this.#made.size >= REPLICAS_MAX) this.#made.delete(this.#made.keys().next().value!);
    this.#made.set(replica, number);
    return true;
  }

  /** Evidence of the active peer with the most epochs; undefined = no peer is active. */
  proof(nowMs: number): Pick<GuardNews, 'replica' | 'gap' | 'epochs'> | undefined {
    return this.#news(nowMs)
      .filter(({ state }) => state === 'active')
      .reduce<GuardNews | undefined>((best, each) => ((best?.epochs ?? 0) >= each.epochs ? best : each), undefined);
  }

  /** The guard to keep step with: the first by name whose learned costs decide at times, if it is not this one. */
  lead(nowMs: number): Lead | undefined {
    const names = this.#news(nowMs).filter((each) => isDriving(each) && each.replica < this.#replica);
    return names.sort((a, b) => (a.replica < b.replica ? -1 : 1))[0];
  }
}
