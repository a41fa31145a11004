import type { HealthState } from '../../operations/health.js';
import type { Part } from '../part.js';

/**
 * Has the shards compile their code once, when the process has first been ready (`--idle-warm-up`). Requests that come
 * then go first: the shards give way to them.
 */
export class IdleWarmUp implements Part {
  readonly #health: Pick<HealthState, 'ready' | 'watch'>;
  readonly #rehearse: () => void;
  #turn: NodeJS.Immediate | undefined;
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
    clearImmediate(this.#turn);
  }

  #look(): void {
    if (!this.#health.ready || this.#turn !== undefined) return;
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#turn = setImmediate(this.#rehearse);
  }
}
