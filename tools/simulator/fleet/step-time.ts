/** Work of one engine step. */
export interface StepWork {
  /** Tokens of all sequences in the step. */
  tokens: number;
  /** Tokens of prompts among them. */
  prefillTokens: number;
  /** Sum over the prompts of tokens × (context before them + half of them): the pairs that attention looks at. */
  prefillPairs: number;
  /** Sequences that decode one token. */
  decodes: number;
  /** Sum of their contexts in tokens. */
  decodeContext: number;
  /** Sequences that a token is sampled for. */
  rows: number;
}

/** Milliseconds that an engine of speed 1 needs for a step. */
export type StepTime = (work: StepWork) => number;

/**
 * Constants of one model on one kind of GPU, fitted to measured kernels:
 *
 *   T = ((weights)^power + (token × N)^power)^(1/power) + reduce + reduceToken × N
 *     + prefillToken × Np + prefillPair × pairs
 *     + decodeSequence × decodes + decodeToken × context × (mixed when the step has prompts as well)
 *     + rowsBase + row × rows + overhead
 *
 * The first term is the matrix products between reading the weights once and computing every token.
 */
export interface StepConstants {
  /** Milliseconds to read the weights. */
  readonly weightsMs: number;
  /** Microseconds of matrix products per token. */
  readonly tokenUs: number;
  readonly power: number;
  /** Milliseconds and microseconds per token of the tensor-parallel all-reduce. */
  readonly reduceMs: number;
  readonly reduceTokenUs: number;
  /** Microseconds per prompt token, nanoseconds per pair of prompt attention. */
  readonly prefillTokenUs: number;
  readonly prefillPairNs: number;
  /** Microseconds per decoding sequence, nanoseconds per token of context. */
  readonly decodeSequenceUs: number;
  readonly decodeTokenNs: number;
  /** Slowdown of decode attention beside prompts. */
  readonly mixed: number;
  /** Milliseconds per step and microseconds per row of sampling. */
  readonly rowsMs: number;
  readonly rowUs: number;
  /** Milliseconds per step of scheduling and launching. */
  readonly overheadMs: number;
}

/** Step time by the formula of StepConstants. */
export function fittedStepTime(constants: StepConstants): StepTime {
  const { weightsMs, power, reduceMs, rowsMs, overheadMs, mixed } = constants;
  const weights = weightsMs ** power;
  const token = constants.tokenUs / 1e3;
  const reduceToken = constants.reduceTokenUs / 1e3;
  const prefillToken = constants.prefillTokenUs / 1e3;
  const prefillPair = constants.prefillPairNs / 1e6;
  const decodeSequence = constants.decodeSequenceUs / 1e3;
  const decodeToken = constants.decodeTokenNs / 1e6;
  const row = constants.rowUs / 1e3;
  return (work) => {
    const products = (weights + (token * work.tokens) ** power) ** (1 / power);
    const slower = work.prefillTokens > 0 ? mixed : 1;
    return (
      products +
      reduceMs +
      reduceToken * work.tokens +
      prefillToken * work.prefillTokens +
      prefillPair * work.prefillPairs +
      decodeSequence * work.decodes +
      decodeToken * work.decodeContext * slower +
      rowsMs +
      row * work.rows +
      overheadMs
    );
  };
}
