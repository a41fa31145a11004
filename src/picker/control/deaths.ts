import { endpointAddress, type SlotAssignment } from '../../contract/endpoint.js';
import type { EndpointTable } from '../../core/endpoint-table.js';
import { poolClockMs } from '../../runtime/pool-clock.js';
import { DeathWatch } from './death-watch.js';
import type { EndpointFound } from './endpoint-check.js';

export interface DeathsOptions {
  readonly table: EndpointTable;
  readonly log: { warn(fields: object, text: string): void; info(fields: object, text: string): void };
  /** Drops the prompts that the index has for the endpoint. @param isGone what it held is lost for certain */
  readonly forgetPrompts: (assignment: SlotAssignment, isGone: boolean) => void;
}

/** What follows from an endpoint's death and its return: a log line, a count, and prompts that leave the index. */
export class Deaths {
  readonly #options: DeathsOptions;
  readonly watch: DeathWatch;
  #count = 0;
  #forgotten: Promise<void> = Promise.resolve();

  constructor(options: DeathsOptions) {
    this.#options = options;
    this.watch = new DeathWatch({
      table: options.table,
      now: poolClockMs,
      died: (assignment, found) => this.#died(assignment, found),
      returned: (assignment) => this.#returned(assignment),
    });
  }

  /** Endpoints that were found dead since the start. */
  get count(): number {
    return this.#count;
  }

  #died(assignment: SlotAssignment, found: EndpointFound): void {
    this.#count++;
    const fields = { endpoint: assignment.endpoint.id, address: endpointAddress(assignment.endpoint) };
    const text = found === 'refused' ? 'it refuses connections' : 'requests to it fail, and it does not answer';
    this.#options.log.warn(fields, `endpoint dead: ${text}; it gets no requests until it takes connections again`);
    this.#forgetPrompts(assignment, found === 'refused');
  }

  #returned(assignment: SlotAssignment): void {
    this.#options.log.info({ endpoint: assignment.endpoint.id }, 'endpoint takes connections again');
    // Requests that were tried there have left prompts in the index, which the dead process never read.
    this.#forgetPrompts(assignment, false);
  }

  /**
   * Removes an endpoint's prompts from the index. That can take a while, so that no two of them are removed in one
   * turn.
   */
  #forgetPrompts(assignment: SlotAssignment, isGone: boolean): void {
    this.#forgotten = this.#forgotten.then(
      () =>
        new Promise((done) =>
          setImmediate(() => {
            this.#options.forgetPrompts(assignment, isGone);
            done();
          }),
        ),
    );
  }
}
