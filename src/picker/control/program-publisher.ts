import { CORE } from '../../core/core-names.js';
import type { CoreInstance } from '../../core/memory.js';
import { type Operation, ProgramTable } from '../../core/programs.js';
import { canLearn, projectedScorers } from '../../scheduling/learned-profile.js';
import type { CompiledScheduling } from '../../scheduling/program.js';
import { type ProgramVariant, programOf } from '../../scheduling/program-variants.js';
import type { PoolSettings } from './pool-controller.js';

/** Programs with their mask numbers assigned. */
export interface PlacedPrograms extends PoolSettings {
  /** Operations by number of the profile. */
  readonly profiles: readonly (readonly Operation[])[];
}

/**
 * Publishes the compiled profiles. A new set of programs gets masks that the running set does not use, so a decision
 * sees the whole old or the whole new configuration. Control thread only.
 */
export class ProgramPublisher {
  readonly #table: ProgramTable;
  readonly #maskCount: number;
  #running = { firstMask: 0, masks: 0 };
  #placed: PlacedPrograms | undefined;
  #variant: ProgramVariant = { kind: 'configured', tag: 0 };

  constructor(core: CoreInstance) {
    this.#table = new ProgramTable(core);
    this.#maskCount = CORE.MASK_COUNT;
  }

  /** Assigns mask numbers beside the running ones. @throws RangeError when too few are free */
  place({ profiles, masks, prefix }: CompiledScheduling): PlacedPrograms {
    const firstMask = this.#roomFor(masks.length);
    return {
      masks,
      firstMask,
      prefix,
      profiles: profiles.map(({ operations }) => operations.map((operation) => withMasksFrom(firstMask, operation))),
    };
  }

  /** Makes the profiles run these programs. Their masks must have been written. */
  publish(placed: PlacedPrograms): void {
    this.#placed = placed;
    this.#write(placed);
    this.#running = { firstMask: placed.firstMask, masks: placed.masks.length };
  }

  /** Runs the profiles in this variant. */
  run(variant: ProgramVariant): void {
    this.#variant = variant;
    if (this.#placed !== undefined) this.#write(this.#placed);
  }

  #write({ profiles, prefix }: PlacedPrograms): void {
    const variant = this.#variant;
    for (const [profile, operations] of profiles.entries()) {
      this.#table.publish(profile, programOf(operations, variant, profile === this.#projectedProfile), {
        inserts: prefix !== undefined && prefix.knownBy !== 'events',
        matches: prefix !== undefined,
        wholeBlocks: prefix?.autoTune === true,
        tag: variant.tag,
      });
    }
  }

  /** Configured weights of the scorers that a projection moves, in the order of the sums; empty = none. */
  get projected(): readonly number[] {
    const operations = this.#placed?.profiles[this.#projectedProfile] ?? [];
    return projectedScorers(operations).map((i) => operations[i]!.weight);
  }

  /** The first profile that can learn. Only one, because sums of two profiles stand for different scorers. */
  get #projectedProfile(): number {
    return this.#placed?.profiles.findIndex(canLearn) ?? -1;
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

/** The operation's last number is a mask number plus 1, or 0 for none. */
function withPrefillMaskFrom(first: number, operation: Operation): Operation {
  const [source = 0, streaming = 0, buffer = 1, mask = 0] = operation.parameters;
  return { ...operation, parameters: [source, streaming, buffer, mask === 0 ? 0 : mask + first] };
}
