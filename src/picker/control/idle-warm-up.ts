import type { HealthState } from '../../operations/health.js';
import type { Part } from '../part.js';

/** Time behind the first readiness: requests that waited for it come first. */
const PAUSE_MS = 100;

/** Has the shards compile their code once, some time after the process has first been ready (`--idle-warm-up`). */
export class IdleWarmUp implements Part {
  readonly #health: Pick<HealthState, 'ready' | 'watch'>;
  readonly #rehearse: () => void;
  #timer: NodeJS.Timeout | undefined;
  #unwatch: (() => void) | undefined;

  /** @param rehearse sends the shards their rehearsal */
  constructor(health: Pick<HealthState, 'ready' | 'watch'>, rehearse: () => void) {
    this.#health = health;
    this.#rehearse = rehearse;
  }

  /** To be called when the shards listen: those that begin later get no rehearsal. */
  start(): void {
    this.#unwatch = this.#health.watch(() => this.#look());
    this.#look();
  }

  drain(): void {
    this.stop();
  }

  stop(): void {
    this.#unwatch?.();
    this.#unwatch = undefined;
    clearTimeout(this.#timer);
  }

  #look(): void {
    if (!this.#health.ready || this.#timer !== undefined) return;
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#timer = setTimeout(this.#rehearse, PAUSE_MS).unref();
  }
}
