import type { UsageLimitSettings } from './settings.js';

/** From this saturation on the soft reflective policy counts its ticks (llm-d-router). */
const TICKS_FROM = 0.5;

/**
 * How full the pool may be for each band to go on: a band is held back while the saturation is not below its ceiling
 * (llm-d-router's usage limit policies).
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
   * @returns one ceiling per band, 0 to 1. Asking counts for the soft reflective policy: ask once per attempt to dispatch.
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

/** How far down each band is: 0 for the highest, 1 for the lowest; 0 for a single one. */
function rankShares(priorities: readonly number[]): readonly number[] {
  const steps = Math.max(1, priorities.length - 1);
  return priorities.map((_, rank) => rank / steps);
}

function valueShares(priorities: readonly number[]): readonly number[] {
  const [highest, lowest] = [priorities[0] ?? 0, priorities.at(-1) ?? 0];
  return priorities.map((priority) => (highest === lowest ? 0 : (highest - priority) / (highest - lowest)));
}
