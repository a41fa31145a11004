import type { LowerPlace } from '../../../src/contract/block-place.js';

/** One tier below the GPU. */
export interface TierSettings {
  readonly place: LowerPlace;
  /** Blocks that it holds. */
  readonly blocks: number;
  /** Milliseconds in which it gives one block back. */
  readonly blockMs: number;
}

/** Hears where the content of a block is left; undefined = nowhere. */
export type ContentLeft = (content: number, place: LowerPlace | undefined) => void;

interface Tier extends TierSettings {
  /** Contents, least recently used first. */
  readonly contents: Set<number>;
}

/**
 * The tiers below the GPU of one engine, nearest first. What the GPU forgets goes to the nearest one, and what a tier
 * has no room for goes to the next, least recently used first. A tier keeps what it returns. Writes take no time, as
 * engines write beside their steps.
 */
export class KvTiers {
  readonly #tiers: readonly Tier[];
  readonly #left: ContentLeft;

  constructor(settings: readonly TierSettings[], left: ContentLeft) {
    this.#tiers = settings.map((tier) => ({ ...tier, contents: new Set() }));
    this.#left = left;
  }

  /** The GPU has forgotten a content. */
  keep(content: number): void {
    this.#keepIn(0, content);
  }

  #keepIn(at: number, content: number): void {
    const tier = this.#tiers[at];
    if (tier === undefined) {
      this.#left(content, undefined);
      return;
    }
    tier.contents.delete(content);
    tier.contents.add(content);
    this.#left(content, tier.place);
    if (tier.contents.size <= tier.blocks) return;
    const oldest = tier.contents.values().next().value!;
    tier.contents.delete(oldest);
    this.#keepIn(at + 1, oldest);
  }

  /** Milliseconds in which a content comes back to the GPU; undefined = no tier has it. */
  loadMs(content: number): number | undefined {
    return this.#tiers.find(({ contents }) => contents.has(content))?.blockMs;
  }

  /** Notes that a content was used. */
  touch(content: number): void {
    const contents = this.#tiers.find((tier) => tier.contents.has(content))?.contents;
    if (contents === undefined) return;
    contents.delete(content);
    contents.add(content);
  }

  clear(): void {
    for (const { contents } of this.#tiers) contents.clear();
  }
}
