import type { Endpoint, SlotAssignment } from '../../contract/endpoint.js';
import type { EndpointTable } from '../../core/endpoint-table.js';
import type { Part } from '../part.js';
import { takesConnections } from './endpoint-check.js';

export interface ReturnWatchOptions {
  readonly table: Pick<EndpointTable, 'ejected' | 'read' | 'setReachable'>;
  readonly assignments: () => readonly SlotAssignment[];
  /** Milliseconds of the pool clock. */
  readonly now: () => number;
  /** Whether the endpoint takes connections; default: GET /health. */
  readonly check?: ((endpoint: Endpoint) => Promise<boolean>) | undefined;
  readonly everyMs?: number | undefined;
}

/** Interval between two looks at an endpoint that is out. */
const EVERY_MS = 250;
/** Checks under way at the same time. */
const CHECKS_MAX = 64;

/**
 * Watches endpoints that are out of the picks. An endpoint that refuses connections is not probed with a client's
 * request; when it takes them again, its probe is due at once.
 */
export class ReturnWatch implements Part {
  readonly #options: ReturnWatchOptions;
  readonly #check: (endpoint: Endpoint) => Promise<boolean>;
  #timer: NodeJS.Timeout | undefined;
  /** Generations of the slots that are checked now, and of those that refused the last time. */
  readonly #checking = new Map<number, number>();
  readonly #unreachable = new Map<number, number>();

  constructor(options: ReturnWatchOptions) {
    this.#options = options;
    this.#check = options.check ?? takesConnections;
  }

  start(): void {
    this.#timer = setInterval(() => this.#checkAll(), this.#options.everyMs ?? EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #checkAll(): void {
    const { table, assignments } = this.#options;
    if (table.ejected === 0) {
      this.#unreachable.clear();
      return;
    }
    for (const assignment of assignments()) {
      const { slot, generation } = assignment;
      if (table.read(slot).ejection === 0) this.#unreachable.delete(slot);
      else if (this.#checking.get(slot) !== generation && this.#checking.size < CHECKS_MAX)
        void this.#visit(assignment);
    }
  }

  async #visit({ slot, generation, endpoint }: SlotAssignment): Promise<void> {
    const { table, now } = this.#options;
    this.#checking.set(slot, generation);
    const reachable = await this.#check(endpoint);
    if (this.#checking.get(slot) === generation) this.#checking.delete(slot);
    // An endpoint that was reachable all the time has failed for another reason, so its probe keeps its time.
    if (reachable && this.#unreachable.get(slot) !== generation) return;
    const written = table.setReachable(slot, generation, reachable, now());
    if (reachable && written) this.#unreachable.delete(slot);
    else this.#unreachable.set(slot, generation);
  }
}
