import { z } from 'zod';
import { readPlainText } from '../../runtime/plain-file.js';
import { readProblem } from '../../runtime/read-problem.js';

/** Samples from which on llm-d-router trusts the median of a calibration. */
const SAMPLES_MIN = 10;
/** Bound on the file: a record has ten fields. */
const BYTES_MAX = 65_536;

const positive = z.number().gt(0);

/** The fields that say whether a record of llm-d-router's calibration can be used, and what it measured. */
const record = () =>
  z.looseObject({
    schema_version: z.literal(1),
    status: z.literal('OK'),
    fingerprint: z.string().min(1),
    chunk_tokens: z.int().min(1),
    valid_samples: z.int().min(SAMPLES_MIN),
    median_ttft_seconds: positive,
    peak_prefill_tokens_per_second: positive,
  });

/** Prompt tokens a second, or why a record tells none. */
export type Calibration = { readonly tokensPerSecond: number } | { readonly problem: string };

/**
 * Reads the record of a measured prefill throughput.
 * @param fingerprint of the deployment on which it must have been measured
 */
export function readCalibration(file: string, fingerprint: string | undefined): Calibration {
  let data: unknown;
  try {
    data = JSON.parse(readPlainText(file, BYTES_MAX));
  } catch (error) {
    const problem = error instanceof SyntaxError ? 'is no JSON document' : readProblem(error);
    return { problem: `${file} ${problem}` };
  }
  const parsed = record().safeParse(data);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return { problem: `${file}: ${issue!.path.join('.') || 'the record'}: ${issue!.message}` };
  }
  if (fingerprint === undefined) return { problem: 'prefillCalibrationFingerprint is not set' };
  if (parsed.data.fingerprint !== fingerprint) {
    return { problem: `${file} was measured on another deployment: its fingerprint is ${parsed.data.fingerprint}` };
  }
  return { tokensPerSecond: parsed.data.peak_prefill_tokens_per_second };
}
