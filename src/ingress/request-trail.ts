import { randomUUID } from 'node:crypto';
import type { LoggedRefusal } from '../core/decision-trail.js';
import { poolClockMs, recentPoolClockMs } from '../runtime/pool-clock.js';
import type { HeaderMap } from './codec/header-map.js';
import type { StreamServices } from './exchange.js';

/** One request's trail in the decision log: its id, and the records that its decisions made. */
export class RequestTrail {
  #services: StreamServices;
  #id: string | undefined;
  /** Id for a request without one. */
  #generated: string | undefined;
  #record: number | undefined;
  #made: { readonly first: number; readonly count: number } | undefined;

  constructor(services: StreamServices) {
    this.#services = services;
  }

  /** Goes on in the log of another pool. To be called before the first decision. */
  move(services: StreamServices): void {
    this.#services = services;
  }

  /** Id from the picker; undefined = the request had one. */
  get generatedId(): string | undefined {
    return this.#generated;
  }

  /** Id of the request; undefined before its first decision. */
  get id(): string | undefined {
    return this.#id;
  }

  /** Records of the decision that was followed last: they follow each other. Undefined = it made none. */
  get made(): { readonly first: number; readonly count: number } | undefined {
    return this.#made;
  }

  /**
   * Names the request whose decision comes next.
   * @param keeps whether its records keep all columns, for a trace or for somebody who has asked
   * @returns number of its first record
   */
  begin(headers: HeaderMap, keeps: boolean): number {
    const { trail, observe } = this.#services;
    this.#id ??= headers.get('x-request-id') ?? this.#generate();
    if (trail === undefined) return 0;
    const asked = keeps || (observe.allowExplain && headers.get('x-pointsman-explain') === '1');
    trail.begin(this.#id, asked, recentPoolClockMs());
    return trail.made;
  }

  /** Notes the record of the decision that has been made. @param before result of `begin` */
  decided(before: number, series: number, waitedMs: number, traced: boolean): void {
    const { trail } = this.#services;
    if (trail === undefined) return;
    trail.decided(before, series, waitedMs);
    const { made } = trail;
    if (made !== before) this.#record = (made - 1) >>> 0;
    if (traced) this.#made = made === before ? undefined : { first: before, count: (made - before) >>> 0 };
  }

  /** Notes that the request was answered with an error, whether it was decided or not. */
  refused(headers: HeaderMap, series: number, refusal: LoggedRefusal): void {
    const { trail } = this.#services;
    if (trail === undefined) return;
    if (this.#record !== undefined && trail.refused(this.#record, refusal)) return;
    trail.refuse(this.#id ?? headers.get('x-request-id'), series, refusal, poolClockMs());
  }

  /** Notes that the client went away before the request was placed or refused. */
  abandoned(): void {
    if (this.#record !== undefined) this.#services.trail?.abandoned(this.#record);
  }

  #generate(): string {
    this.#generated = randomUUID();
    return this.#generated;
  }
}
