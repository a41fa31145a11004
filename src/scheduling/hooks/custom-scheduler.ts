import { messageWithPlace } from '../../runtime/error-place.js';
import type { GatedScheduler, Placement, Rejection, ScheduleInput, Scheduler } from '../decision.js';
import type { PluginDefinition } from '../plugin.js';
import type { HookPluginSettings } from '../program.js';
import { guardOf, type HookServices, hookContext } from './hook-plugins.js';
import type { SchedulerContext } from './hooks.js';
import type { PluginGuard } from './plugin-guard.js';

/**
 * Runs a plugin's scheduler in place of the profiles. When it fails, the profiles decide about the request, and charges
 * that it made are released.
 */
export class CustomScheduler implements Scheduler {
  readonly #custom: Scheduler;
  readonly #profiles: Scheduler;
  readonly #guard: PluginGuard;
  /** Placements made in the present call. */
  readonly #placements: Placement[] = [];

  /** @throws with one line that names the faulty plugin */
  constructor(
    { name, type, parameters }: HookPluginSettings,
    definition: PluginDefinition,
    profiles: GatedScheduler,
    services: HookServices,
  ) {
    this.#profiles = ungated(profiles);
    this.#guard = guardOf(name, definition.budgetMs, services);
    const noted: Scheduler = { schedule: (input) => this.#note(this.#profiles.schedule(input)) };
    const context: SchedulerContext = {
      ...hookContext({ name, type }, services),
      endpoints: ({ subset }) => services.views.restrict(subset),
      place: (request, slots) => place(request, slots, noted, services),
      profiles: noted,
    };
    try {
      this.#custom = definition.scheduler!(parameters, context);
    } catch (error) {
      throw new Error(`plugin "${name}" of type "${type}" does not start: ${messageWithPlace(error)}`);
    }
  }

  schedule(input: ScheduleInput): Placement | Rejection {
    const outcome = this.#guard.run('schedule', () => checked(this.#custom.schedule(input)), undefined);
    for (const placement of this.#placements) if (placement.charge !== chargeOf(outcome)) placement.charge.release();
    this.#placements.length = 0;
    return outcome ?? this.#profiles.schedule(input);
  }

  #note(outcome: Placement | Rejection): Placement | Rejection {
    if (outcome.kind === 'placed') this.#placements.push(outcome);
    return outcome;
  }
}

/** The profiles without flow control: requests of a custom scheduler do not queue. */
function ungated(profiles: GatedScheduler): Scheduler {
  return {
    schedule(input) {
      const outcome = profiles.schedule({ ...input, gate: undefined });
      if (outcome.kind === 'waiting') throw new Error('a request without a gate was waiting');
      return outcome;
    },
  };
}

function chargeOf(outcome: Placement | Rejection | undefined): Placement['charge'] | undefined {
  return outcome?.kind === 'placed' ? outcome.charge : undefined;
}

function checked(outcome: Placement | Rejection): Placement | Rejection {
  if (outcome?.kind === 'rejected') return outcome;
  if (outcome?.kind === 'placed' && outcome.endpoints.length > 0) return outcome;
  // A promise is passed to the guard, which refuses it.
  if (typeof (outcome as { then?: unknown } | undefined)?.then === 'function') return outcome;
  throw new Error('schedule() returned neither a placement nor a rejection');
}

/** Decides among the first slot alone, so that it is matched and charged like any pick; the others are fallbacks. */
function place(
  request: ScheduleInput,
  slots: readonly number[],
  profiles: Scheduler,
  { views }: HookServices,
): Placement | Rejection {
  const endpoints = slots.map((slot) => {
    const endpoint = views.at(slot);
    if (endpoint === undefined) throw new RangeError(`slot ${slot} has no endpoint`);
    return endpoint;
  });
  if (endpoints.length === 0) throw new RangeError('place() needs at least one slot');
  const outcome = profiles.schedule({ ...request, subset: [endpoints[0]!.address] });
  if (outcome.kind === 'rejected') return outcome;
  return { ...outcome, endpoints: [outcome.endpoints[0]!, ...endpoints.slice(1)] };
}
