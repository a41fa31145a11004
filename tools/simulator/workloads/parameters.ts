import { z } from 'zod';
import type { RandomStream } from '../fleet/random-stream.js';

/** A length in tokens that varies: lognormal around its mean. */
export const length = (mean: number, sigma: number, most: number) =>
  z
    .strictObject({
      mean: z.number().min(1).default(mean).describe('Mean in tokens.'),
      sigma: z.number().min(0).max(3).default(sigma).describe('Standard deviation of the logarithm; 0 = all equal.'),
      most: z.int().min(1).default(most).describe('Longer ones are cut to this.'),
    })
    .prefault({});

export type Length = z.output<ReturnType<typeof length>>;

/** A length of at least one token. */
export function drawLength({ mean, sigma, most }: Length, random: RandomStream): number {
  const drawn = sigma === 0 ? mean : random.lognormal(mean, sigma);
  return Math.min(most, Math.max(1, Math.round(drawn)));
}

export const arrivalFields = (rate: number, variation = 1) => ({
  rate: z.number().gt(0).default(rate).describe('Mean number per second that begin.'),
  variation: z
    .number()
    .min(0.1)
    .max(20)
    .default(variation)
    .describe('Coefficient of variation of the gaps: 1 = Poisson, above 1 = bursts.'),
  curve: z
    .array(z.tuple([z.number().min(0), z.number().min(0)]))
    .default([])
    .describe('Points [second, factor on the rate], straight lines between them.'),
});

export const speedup = z.number().gt(0).default(1).describe('Factor on the rate of the trace.');
export const tracePath = z.string().min(1).describe('File, relative to --traces or else to the suite.');
export const half = z
  .enum(['all', 'first', 'second'])
  .default('all')
  .describe('Part of the trace that is used: one half to tune, the other to prove.');
