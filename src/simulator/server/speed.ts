/**
 * How long one step of a simulated engine takes. A step is one forward pass over the running batch:
 *
 *   milliseconds = (step + prefillToken × prompt tokens computed + decodeSequence × sequences that decode) / speedup
 *
 * The default constants follow published vLLM kernel measurements of Llama-3.1-8B (weights read once a step,
 * linear cost per prompt token, per decoding sequence the attention over some 2,000 tokens of context).
 */
export interface EngineSpeed {
  /** Milliseconds every step costs: reading the weights, launching, sampling. */
  readonly stepMs: number;
  /** Milliseconds per prompt token computed in the step. */
  readonly prefillTokenMs: number;
  /** Milliseconds per sequence that decodes one token in the step. */
  readonly decodeSequenceMs: number;
}

/** Llama-3.1-8B on one H100: about 44,000 prompt tokens/s, 6.5 ms between tokens of a lone request. */
export const H100_8B: EngineSpeed = { stepMs: 6.4, prefillTokenMs: 0.022, decodeSequenceMs: 0.1 };

/** Llama-3.1-8B on one L40S: about 13,500 prompt tokens/s, 22 ms between tokens of a lone request. */
export const L40S_8B: EngineSpeed = { stepMs: 22, prefillTokenMs: 0.071, decodeSequenceMs: 0.2 };

/** What one step computes. */
export interface StepWork {
  readonly prefillTokens: number;
  readonly decodeSequences: number;
}

/** Milliseconds of one step, before noise. `speedup` divides everything. */
export function stepMilliseconds(speed: EngineSpeed, work: StepWork, speedup: number): number {
  const milliseconds =
    speed.stepMs + speed.prefillTokenMs * work.prefillTokens + speed.decodeSequenceMs * work.decodeSequences;
  return milliseconds / speedup;
}
