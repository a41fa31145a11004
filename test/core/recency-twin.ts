/** A piece of a chain as long as a segment, or the shorter last one. */
interface Piece {
  readonly path: string;
  readonly depth: number;
}

interface Held {
  readonly depth: number;
  blocks: number;
  sentAt: number;
}

/**
 * What each endpoint holds, as an engine with a bounded cache would: what was sent there last stays, ends of chains go
 * first. Chains are lists of piece names; every piece but the last is `pieceBlocks` long, so chains fork between pieces
 * only.
 */
export class RecencyTwin {
  readonly #capacity: number;
  readonly #pieceBlocks: number;
  readonly #held = new Map<number, Map<string, Held>>();
  #clock = 0;

  constructor(capacity: number, pieceBlocks: number) {
    this.#capacity = capacity;
    this.#pieceBlocks = pieceBlocks;
  }

  /** `slot` is sent a chain of `blocks` blocks. */
  send(slot: number, names: readonly number[], blocks: number): void {
    const sentAt = ++this.#clock;
    const whole = Math.min(blocks, this.#capacity);
    for (const { path, depth } of this.#pieces(names, whole)) {
      const length = Math.min(this.#pieceBlocks, whole - depth);
      const held = this.#of(slot).get(path);
      this.#of(slot).set(path, { depth, blocks: Math.max(length, held?.blocks ?? 0), sentAt });
    }
    this.#evict(slot);
  }

  total(slot: number): number {
    let total = 0;
    for (const { blocks } of this.#of(slot).values()) total += blocks;
    return total;
  }

  /** Blocks of the chain that `slot` holds without a gap from the first one. */
  match(slot: number, names: readonly number[], blocks: number): number {
    let matched = 0;
    for (const { path, depth } of this.#pieces(names, blocks)) {
      const length = Math.min(this.#pieceBlocks, blocks - depth);
      const held = Math.min(length, this.#of(slot).get(path)?.blocks ?? 0);
      matched += held;
      if (held < length) break;
    }
    return matched;
  }

  #of(slot: number): Map<string, Held> {
    let held = this.#held.get(slot);
    if (!held) {
      held = new Map();
      this.#held.set(slot, held);
    }
    return held;
  }

  #pieces(names: readonly number[], blocks: number): Piece[] {
    return names
      .slice(0, Math.ceil(blocks / this.#pieceBlocks))
      .map((_, i) => ({ path: names.slice(0, i + 1).join('/'), depth: i * this.#pieceBlocks }));
  }

  #evict(slot: number): void {
    const held = this.#of(slot);
    for (let over = this.total(slot) - this.#capacity; over > 0; ) {
      const [path, oldest] = [...held].reduce((a, b) =>
        b[1].sentAt < a[1].sentAt || (b[1].sentAt === a[1].sentAt && b[1].depth > a[1].depth) ? b : a,
      );
      const gone = Math.min(over, oldest.blocks);
      oldest.blocks -= gone;
      over -= gone;
      if (oldest.blocks === 0) held.delete(path);
    }
  }
}
