// Mutants that no test can notice, each with the reason. The text of the line names them, so that they are found again
// where other lines of the module move.

export interface EquivalentMutant {
  /** Compiled module. */
  readonly module: string;
  readonly before: string;
  readonly after: string;
  readonly reason: string;
}

export const EQUIVALENT: readonly EquivalentMutant[] = [];
