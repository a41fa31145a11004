import type { GatedScheduler, Placement, Rejection, ScheduleInput, Waiting } from '../decision.js';
import type { HookPlugins } from './hook-plugins.js';
import { HookRequestRecord } from './hook-request-record.js';

/**
 * A scheduler that reports its placements to hook plugins. Their filters and scores are in the columns of each profile.
 */
export class HookScheduler implements GatedScheduler {
  readonly #inner: GatedScheduler;
  readonly #plugins: HookPlugins;

  constructor(inner: GatedScheduler, plugins: HookPlugins) {
    this.#inner = inner;
    this.#plugins = plugins;
  }

  schedule(input: ScheduleInput): Placement | Rejection | Waiting {
    const request = input.hosted;
    if (!(request instanceof HookRequestRecord)) return this.#inner.schedule(input);
    request.understand(input);
    const outcome = this.#inner.schedule(input);
    return outcome.kind === 'placed' ? this.#plugins.placed(request, outcome, input.subset) : outcome;
  }
}
