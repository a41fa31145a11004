import { z } from 'zod';
import type { FlowControlSettings, UsageLimitSettings } from '../../contract/queue-settings.js';
import { definePlugin } from '../../scheduling/plugin.js';

/** Saturation from which the soft reflective policy counts its ticks (as in llm-d-router). */
const TICKS_FROM = 0.5;

/**
 * Ceilings of the bands: a band is held back while the saturation of the pool is not below its ceiling (llm-d-router's
 * usage limit policies).
 */
export class Ceilings {
  readonly #settings: UsageLimitSettings;
  #tick = 0;

  constructor(settings: UsageLimitSettings) {
    this.#settings = settings;
  }

  /**
   * @param priorities of the bands, highest first
   * @param saturation 1 or more = full
   * @returns one ceiling per band, 0 to 1. The soft reflective policy counts calls: call once per attempt to dispatch.
   */
  at(priorities: readonly number[], saturation: number): readonly number[] {
    const settings = this.#settings;
    switch (settings.kind) {
      case 'static':
        return priorities.map(() => settings.threshold);
      case 'holdback': {
        const { domain, minCeiling, maxCeiling } = settings;
        const share = domain === 'rank' ? rankShares(priorities) : valueShares(priorities);
        return share.map((down) => maxCeiling - (maxCeiling - minCeiling) * down);
      }
      case 'soft-reflective':
        return this.#softReflective(priorities, saturation);
    }
  }

  #softReflective(priorities: readonly number[], saturation: number): readonly number[] {
    const counted = saturation >= TICKS_FROM && saturation < 1;
    if (counted) this.#tick++;
    const turns = counted ? Math.max(1, Math.round(saturation / (1 - saturation))) : 1;
    return rankShares(priorities).map((down, rank) => {
      const ceiling = 1 - down * saturation;
      if (rank === 0) return 1;
      if (saturation >= 1) return 0;
      if (saturation < ceiling) return ceiling;
      return this.#tick % turns === 0 ? 1 : 0;
    });
  }
}

/**
 * Priorities that take part in the ceilings before a request of them has come: 0, the configured ones and those of
 * objectives (as in llm-d-router). None where all bands have one ceiling.
 */
export function standingPriorities(
  { usageLimit, bands }: Pick<FlowControlSettings, 'usageLimit' | 'bands'>,
  objectives: readonly number[],
): readonly number[] {
  if (usageLimit.kind === 'static') return [];
  return [...new Set([...bands.map(({ priority }) => priority), 0, ...objectives])];
}

/** Relative rank of each band: 0 for the highest, 1 for the lowest; 0 for a single one. */
function rankShares(priorities: readonly number[]): readonly number[] {
  const steps = Math.max(1, priorities.length - 1);
  return priorities.map((_, rank) => rank / steps);
}

function valueShares(priorities: readonly number[]): readonly number[] {
  const [highest, lowest] = [priorities[0] ?? 0, priorities.at(-1) ?? 0];
  return priorities.map((priority) => (highest === lowest ? 0 : (highest - priority) / (highest - lowest)));
}

const staticUsageLimitParameters = () =>
  z.strictObject({
    threshold: z.number().gt(0).max(1).default(1).describe('Saturation up to which requests are let through.'),
  });

export const staticUsageLimitPolicy = definePlugin({
  type: 'static-usage-limit-policy',
  kinds: ['usage-limit-policy'],
  stability: 'Beta',
  doc: 'Queues of flow control: one limit of saturation for all priorities.',
  parameters: staticUsageLimitParameters,
  usageLimitSettings: ({ threshold }) => ({ kind: 'static', threshold }),
});

const priorityHoldbackParameters = () =>
  z
    .strictObject({
      shape: z.enum(['linear']).default('linear').describe('How limits lie between the two.'),
      domain: z
        .enum(['rank', 'value'])
        .default('rank')
        .describe('What they are spread over: the order of the priorities, or their values.'),
      minCeiling: z.number().min(0).lt(1).describe('Limit of saturation for the lowest priority. Required.'),
      maxCeiling: z.number().gt(0).max(1).default(1).describe('Limit of saturation for the highest priority.'),
    })
    .refine(({ minCeiling, maxCeiling }) => minCeiling <= maxCeiling, {
      error: 'must not be above maxCeiling',
      path: ['minCeiling'],
    });

export const priorityHoldbackPolicy = definePlugin({
  type: 'priority-holdback-policy',
  kinds: ['usage-limit-policy'],
  stability: 'Alpha',
  doc:
    'Queues of flow control: the lower the priority, the less of the pool it may fill. Counted are 0, the ' +
    'priorities of ' +
    '`priorityBands` and of objectives, whether they have requests or not, and others while they have.',
  parameters: priorityHoldbackParameters,
  usageLimitSettings: ({ domain, minCeiling, maxCeiling }) => ({ kind: 'holdback', domain, minCeiling, maxCeiling }),
});

export const softReflectiveCeilingPolicy = definePlugin({
  type: 'soft-reflective-ceiling-policy',
  kinds: ['usage-limit-policy'],
  stability: 'Alpha',
  doc:
    'Queues of flow control: limits of lower priorities that fall while the pool fills up; above its limit a ' +
    'priority is ' +
    'let through now and then, the more seldom the fuller the pool is.',
  parameters: () => z.strictObject({}),
  usageLimitSettings: () => ({ kind: 'soft-reflective' }),
});
