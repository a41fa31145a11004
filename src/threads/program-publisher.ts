import type { CoreInstance } from '../core/memory.js';
import { type Operation, ProgramTable } from '../core/programs.js';
import type { CompiledScheduling } from '../scheduling/types.js';
import type { PoolSettings } from './pool-controller.js';

/** Programs with their masks where the core shall have them. */
export interface PlacedPrograms extends PoolSettings {
  /** Operations by number of the profile. */
  readonly profiles: readonly (readonly Operation[])[];
}

/**
 * Publishes the compiled profiles. A new set of programs gets masks that the running set does not use, so that a
 * decision sees either all of the old configuration or all of the new one. Control thread only.
 */
export class ProgramPublisher {
  readonly #table: ProgramTable;
  readonly #maskCount: number;
  #running = { firstMask: 0, masks: 0 };

  constructor(core: CoreInstance) {
    this.#table = new ProgramTable(core);
    this.#maskCount = core.constant.MASK_COUNT!;
  }

  /** Find room for the masks beside the running ones. @throws RangeError when there is none */
  place({ profiles, masks, prefix }: CompiledScheduling): PlacedPrograms {
    const firstMask = this.#roomFor(masks.length);
    return {
      masks,
      firstMask,
      prefix,
      profiles: profiles.map(({ operations }) => operations.map((operation) => withMasksFrom(firstMask, operation))),
    };
  }

  /** Let the profiles run these programs from now on; the masks must have been written. */
  publish({ profiles, firstMask, masks, prefix }: PlacedPrograms): void {
    for (const [profile, operations] of profiles.entries()) {
      this.#table.publish(profile, operations, { inserts: prefix !== undefined });
    }
    this.#running = { firstMask, masks: masks.length };
  }

  #roomFor(masks: number): number {
    const { firstMask, masks: used } = this.#running;
    if (masks <= firstMask) return 0;
    if (firstMask + used + masks <= this.#maskCount) return firstMask + used;
    const most = Math.floor(this.#maskCount / 2);
    throw new RangeError(`no room for ${masks} label filters beside ${used} others: restart, or use at most ${most}`);
  }
}

function withMasksFrom(first: number, operation: Operation): Operation {
  if (operation.code === 'OP_PREDICT') return withPrefillMaskFrom(first, operation);
  if (operation.code !== 'OP_FILTER_MASK') return operation;
  return { ...operation, parameters: [first + operation.parameters[0]!] };
}

/** Its last number is that of a mask and one more, or 0. */
function withPrefillMaskFrom(first: number, operation: Operation): Operation {
  const [source = 0, streaming = 0, buffer = 1, mask = 0] = operation.parameters;
  return { ...operation, parameters: [source, streaming, buffer, mask === 0 ? 0 : mask + first] };
}
