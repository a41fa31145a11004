import type { EvictionEnd } from '../../flow-control/evictions.js';
import type { MetricsExposition } from '../telemetry/exposition.js';

const CONFIRMATION_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Saturation of the pool at an eviction (1 = full). */
export interface EvictionDemand {
  readonly saturation: number;
  /** Ceiling of the waiting request's band. */
  readonly ceiling: number;
  /** Requests in flight. */
  readonly inflight: number;
}

/** Counts evictions; names, labels and buckets are llm-d-router's. */
export class EvictionCounts {
  /** By the priority of the waiting request's band. */
  readonly #issued = new Map<number, number>();
  readonly #ended: Record<EvictionEnd, number> = { confirmed: 0, timed_out: 0 };
  /** Share of one request in the pool's saturation, at the last choice of a victim. */
  #share = 0;
  #underWay = 0;
  #missing = 0;
  #observe: (seconds: number) => void = () => undefined;

  issued(priority: number, { saturation, ceiling, inflight }: EvictionDemand): void {
    this.#issued.set(priority, (this.#issued.get(priority) ?? 0) + 1);
    this.#missing = saturation - ceiling;
    this.#share = saturation / Math.max(1, inflight);
    this.#underWay++;
  }

  ended(how: EvictionEnd, seconds: number): void {
    this.#ended[how]++;
    this.#underWay--;
    if (how === 'confirmed') this.#observe(seconds);
  }

  register(exposition: MetricsExposition, pool: string): void {
    const name = (end: string) => `llm_d_epp_flow_control_${end}`;
    const inference_pool = pool;
    exposition.addCounter({
      name: name('revocations_issued_total'),
      help: 'Running requests that were to be ended, by the priority of the band that they make room for.',
      labels: ['priority', 'inference_pool'],
      read: () =>
        [...this.#issued].map(([priority, value]) => ({ labels: { priority: `${priority}`, inference_pool }, value })),
    });
    exposition.addCounter({
      name: name('revocations_total'),
      help: 'Evictions by outcome: confirmed = the request has ended, timed_out = no end was reported in time.',
      labels: ['outcome', 'inference_pool'],
      read: () =>
        Object.entries(this.#ended).map(([outcome, value]) => ({ labels: { outcome, inference_pool }, value })),
    });
    const gauge = (end: string, help: string, read: () => number) =>
      exposition.addGauge({
        name: name(end),
        help,
        labels: ['inference_pool'],
        read: () => [{ labels: { inference_pool }, value: read() }],
      });
    gauge(
      'reclaim_target',
      'Saturation beyond the ceiling of the band when a request was ended last.',
      () => this.#missing,
    );
    gauge('pending_reclaim', 'Saturation that is on its way out.', () => this.#underWay * this.#share);
    this.#observe = exposition.addHistogram({
      name: name('revocation_confirmation_seconds'),
      help: 'Seconds until a request that was to be ended had ended.',
      labels: { inference_pool },
      buckets: CONFIRMATION_SECONDS,
    });
  }
}
