import type { GatedScheduler, Parked, Placement, Rejection, ScheduleInput } from '../decision.js';
import type { HostPlugins } from './host-plugins.js';
import { HostedRequest } from './hosted-request.js';

/** A scheduler whose placements host plugins hear of. What they say beforehand is in the columns of each profile. */
export class HostedScheduler implements GatedScheduler {
  readonly #inner: GatedScheduler;
  readonly #plugins: HostPlugins;

  constructor(inner: GatedScheduler, plugins: HostPlugins) {
    this.#inner = inner;
    this.#plugins = plugins;
  }

  schedule(input: ScheduleInput): Placement | Rejection | Parked {
    const request = input.hosted;
    if (!(request instanceof HostedRequest)) return this.#inner.schedule(input);
    request.understand(input);
    const outcome = this.#inner.schedule(input);
    return outcome.kind === 'placed' ? this.#plugins.placed(request, outcome, input.subset) : outcome;
  }
}
