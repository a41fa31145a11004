import { CORE } from '../../core/core-names.js';
import type { CoreInstance } from '../../core/memory.js';
import type { Operation } from '../../core/operations.js';
import { type ProgramOptions, ProgramTable } from '../../core/programs.js';
import { canLearn, projectedScorers } from '../../scheduling/learned-profile.js';
import type { CompiledScheduling } from '../../scheduling/program.js';
import { type ProgramVariant, programOf } from '../../scheduling/program-variants.js';
import type { PoolSettings } from './pool-controller.js';

/** Masks of a set of programs. */
interface MaskRange {
  readonly firstMask: number;
  readonly masks: number;
}

const NO_MASKS: MaskRange = { firstMask: 0, masks: 0 };

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
  #running: MaskRange = NO_MASKS;
  #shadow: MaskRange = NO_MASKS;
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

  /** Makes the profiles run these programs. The masks of the programs must have been written. */
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

  /**
   * Makes these programs decide beside the running ones, without effect. The masks of the programs must have been
   * written.
   * @param learned runs them with marginal cost in the place of their scorers of load and cache
   */
  shadow(placed: PlacedPrograms, learned: boolean): void {
    const variant: ProgramVariant = { kind: learned ? 'learned' : 'configured', tag: 0 };
    this.#table.clearShadows();
    for (const [profile, operations] of placed.profiles.entries()) {
      const program = programOf(operations, variant, false);
      this.#table.publishShadow(profile, program, programOptions(placed, variant));
    }
    this.#shadow = { firstMask: placed.firstMask, masks: placed.masks.length };
  }

  /** Ends the shadow programs. */
  clearShadow(): void {
    this.#table.clearShadows();
    this.#shadow = NO_MASKS;
  }

  #write(placed: PlacedPrograms): void {
    const variant = this.#variant;
    for (const [profile, operations] of placed.profiles.entries()) {
      const program = programOf(operations, variant, profile === this.#projectedProfile);
      this.#table.publish(profile, program, programOptions(placed, variant));
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
    const ranges = [this.#running, this.#shadow];
    const isFree = (first: number) =>
      first + masks <= this.#maskCount &&
      ranges.every((range) => first + masks <= range.firstMask || first >= range.firstMask + range.masks);
    const first = [0, ...ranges.map((range) => range.firstMask + range.masks)].sort((a, b) => a - b).find(isFree);
    if (first !== undefined) return first;
    const used = ranges.reduce((sum, range) => sum + range.masks, 0);
    const masksMax = Math.floor(this.#maskCount / 2);
    throw new RangeError(
      `no room for ${masks} label filters beside ${used} others: restart, or use at most ${masksMax}`,
    );
  }
}

function programOptions({ prefix }: PlacedPrograms, { tag }: ProgramVariant): ProgramOptions {
  return {
    inserts: prefix !== undefined && prefix.knownBy !== 'events',
    matches: prefix !== undefined,
    wholeBlocks: prefix?.autoTune === true || prefix?.knownBy?.startsWith('events') === true,
    told: prefix?.knownBy?.startsWith('events') === true,
    tag,
  };
}

function withMasksFrom(first: number, operation: Operation): Operation {
  if (operation.code === 'OP_PREDICT') return withPrefillMaskFrom(first, operation);
  if (operation.code !== 'OP_FILTER_MASK') return operation;
  return { ...operation, parameters: [first + operation.parameters[0]!] };
}

/** Adds `first` to the mask number that is an operation's last number, in the form of number + 1, or 0 for none. */
function withPrefillMaskFrom(first: number, operation: Operation): Operation {
  const [source = 0, streaming = 0, buffer = 1, mask = 0] = operation.parameters;
  return { ...operation, parameters: [source, streaming, buffer, mask === 0 ? 0 : mask + first] };
}
