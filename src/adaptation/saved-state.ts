import { z } from 'zod';
import type { CostModelSettings } from '../config/adaptation.js';
import { once } from '../runtime/once.js';
import type { CostModelState } from './cost-model.js';
import { CLASSES_MAX } from './hardware-classes.js';

/** Learned state as stored in a file. */
export interface SavedState {
  readonly savedAtMs: number;
  readonly model: CostModelState;
}

/** Version of the format; raised when older files would be misread. */
const VERSION = 1;
/** Version of a state with hardware classes; programs without classes refuse it by its number. */
const CLASSES_VERSION = 2;
/** Bound on the usual output of a request: more is no state that was learned. */
const OUTPUT_TOKENS_MAX = 1e6;
/** Age at which a saved state has half of its weight. */
const HALF_LIFE_MS = 6 * 3_600_000;

const VERSIONS: readonly unknown[] = [VERSION, CLASSES_VERSION];

const file = once(() => {
  const ridge = z.strictObject({
    matrix: z.array(z.number()),
    vector: z.array(z.number()),
    count: z.number(),
  });
  return z.strictObject({
    version: z.literal([VERSION, CLASSES_VERSION]),
    savedAtMs: z.number(),
    /** Prior of the estimators. With another prior the numbers have another meaning. */
    prior: z.record(z.string(), z.number()),
    model: z.strictObject({
      firstOutput: ridge,
      perToken: ridge,
      outputTokens: z.number().positive().max(OUTPUT_TOKENS_MAX),
      classes: z
        .array(z.strictObject({ hardware: z.string().min(1), firstOutput: ridge, perToken: ridge }))
        .max(CLASSES_MAX)
        .optional(),
    }),
  });
});

/** Text of the file. @param nowMs milliseconds since 1970 */
export function encodeState(model: CostModelState, { prior }: CostModelSettings, nowMs: number): string {
  const version = model.classes === undefined ? VERSION : CLASSES_VERSION;
  return `${JSON.stringify({ version, savedAtMs: nowMs, prior, model })}\n`;
}

/**
 * Reads a file's text.
 * @throws with a short reason when it is no state, has another version, or does not fit the settings
 */
export function decodeState(text: string, { prior }: CostModelSettings): SavedState {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    throw new Error('it is no JSON');
  }
  const version = (data as { version?: unknown } | null)?.version;
  if (!VERSIONS.includes(version)) {
    throw new Error(`it has version ${String(version)}, and ${VERSIONS.join(' or ')} is expected`);
  }
  const parsed = file().safeParse(data);
  if (!parsed.success) throw new Error(`${parsed.error.issues[0]!.path.join('.')} is not what it should be`);
  const other = Object.entries(prior).find(([name, value]) => parsed.data.prior[name] !== value);
  if (other !== undefined) throw new Error(`it was learned from another adaptation.prior (${other[0]} differs)`);
  return { savedAtMs: parsed.data.savedAtMs, model: parsed.data.model };
}

/** Weight of a saved state by its age, 0 … 1. */
export function believed({ savedAtMs }: SavedState, nowMs: number): number {
  return 0.5 ** (Math.max(0, nowMs - savedAtMs) / HALF_LIFE_MS);
}
