import { Lot, PrefixOracle, PromptFamily } from './prefix-oracle.ts';

/**
 * Chains that several threads store at once. A slot only ever gets the first `share` blocks of a chain, so every thread
 * can say, without asking the others, what a slot can hold at most.
 */
export class SharedChains {
  readonly chains: readonly (readonly bigint[])[];
  readonly #bound = new PrefixOracle();
  readonly #slots: number;

  constructor(seed: number, count: number, longest: number, slots: number) {
    const family = new PromptFamily(new Lot(seed), longest);
    this.chains = Array.from({ length: count }, () => [...family.chain()]);
    this.#slots = slots;
    for (let slot = 0; slot < slots; slot++) {
      for (const index of this.chains.keys()) this.#bound.insert(slot, this.share(slot, index));
    }
  }

  /** What of a chain a slot may be given. */
  share(slot: number, index: number): readonly bigint[] {
    const chain = this.chains[index]!;
    const length = new Lot(slot * 1009 + index).below(chain.length + 1);
    return chain.slice(0, length);
  }

  /** The most that any lookup of a chain may ever say, per slot. */
  bound(index: number): number[] {
    return this.#bound.match(this.chains[index]!, this.#slots);
  }
}
