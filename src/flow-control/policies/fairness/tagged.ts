import { CLASSES } from '../../candidate-sets.js';
import type { FlowTable } from '../../flow-table.js';
import type { Lanes } from '../../lanes.js';
import { NONE } from '../../request-slab.js';
import type { Fairness } from './fairness.js';
import { LaneHeap } from './lane-heap.js';

/** How a flow's tag follows from what it is served. */
export interface TagRule {
  /** A flow without waiting requests comes back to a class that has reached tag `reached`. */
  wake(flows: FlowTable, flow: number, reached: number): void;
  dispatched(flows: FlowTable, flow: number, tokens: number): void;
  used(flows: FlowTable, flow: number, tokens: number): void;
  unused(flows: FlowTable, flow: number, tokens: number): void;
}

/**
 * Policies that serve the flow with the smallest tag. Tags only grow, so a lane may stand in its heap under an old,
 * smaller tag of its flow and is put right when it comes to the top: a dispatch costs O(log lanes) whatever the number of
 * classes that the flow stands in.
 */
export class Tagged implements Fairness {
  readonly oneLane = false;
  readonly #flows: FlowTable;
  readonly #lanes: Lanes;
  readonly #rule: TagRule;
  readonly #heaps: (LaneHeap | undefined)[] = new Array(CLASSES).fill(undefined);
  /**
   * Tag that each class has reached: a flow that was idle begins there at the earliest and has gained nothing. A class
   * counts for itself because flows with other candidates do not compete with it.
   */
  readonly #reached = new Float64Array(CLASSES);
  /** One above the highest class that ever had a lane. */
  #usedClasses = 0;
  #changes = 0;

  constructor(flows: FlowTable, lanes: Lanes, rule: TagRule) {
    this.#flows = flows;
    this.#lanes = lanes;
    this.#rule = rule;
  }

  wake(flow: number, classOf: number): void {
    this.#rule.wake(this.#flows, flow, Math.max(this.#reached[classOf]!, this.#start()));
    this.#flows.tie[flow] = ++this.#changes;
  }

  newClass(classOf: number): void {
    this.#reached[classOf] = 0;
  }

  add(lane: number): void {
    this.#follow(lane);
    const classOf = this.#lanes.classOf[lane]!;
    let heap = this.#heaps[classOf];
    if (heap === undefined) {
      heap = new LaneHeap(this.#lanes);
      this.#heaps[classOf] = heap;
      this.#usedClasses = Math.max(this.#usedClasses, classOf + 1);
    }
    heap.add(lane);
  }

  remove(lane: number): void {
    this.#heaps[this.#lanes.classOf[lane]!]!.remove(lane);
  }

  headChanged(): void {}

  choose(low: number, high: number): number {
    const { key, tie } = this.#lanes;
    let best = NONE;
    for (let word = 0; word < 2; word++) {
      for (let rest = word === 0 ? low : high; rest !== 0; rest &= rest - 1) {
        const lane = this.#top(this.#heaps[word * 32 + 31 - Math.clz32(rest & -rest)]!);
        if (best === NONE || key[lane]! < key[best]! || (key[lane] === key[best] && tie[lane]! < tie[best]!))
          best = lane;
      }
    }
    return best;
  }

  dispatched(lane: number, flow: number, tokens: number): void {
    const classOf = this.#lanes.classOf[lane]!;
    this.#reached[classOf] = Math.max(this.#reached[classOf]!, this.#flows.tag[flow]!);
    const before = this.#flows.tag[flow]!;
    this.#rule.dispatched(this.#flows, flow, tokens);
    this.#noteChange(flow, before);
  }

  used(flow: number, tokens: number): void {
    const before = this.#flows.tag[flow]!;
    this.#rule.used(this.#flows, flow, tokens);
    this.#noteChange(flow, before);
  }

  unused(flow: number, tokens: number): void {
    this.#rule.unused(this.#flows, flow, tokens);
  }

  served(): void {}
  at(): void {}

  /** Nobody begins before the flow that is worst off among those that wait, nor before what was served when none does. */
  #start(): number {
    let least = Number.POSITIVE_INFINITY;
    let most = 0;
    for (let classOf = 0; classOf < this.#usedClasses; classOf++) {
      const heap = this.#heaps[classOf];
      if (heap !== undefined && heap.size > 0) least = Math.min(least, this.#lanes.key[this.#top(heap)]!);
      most = Math.max(most, this.#reached[classOf]!);
    }
    return least === Number.POSITIVE_INFINITY ? most : least;
  }

  #noteChange(flow: number, before: number): void {
    if (this.#flows.tag[flow] !== before) this.#flows.tie[flow] = ++this.#changes;
  }

  #follow(lane: number): boolean {
    const { key, tie, flow } = this.#lanes;
    const { tag, tie: change } = this.#flows;
    const of = flow[lane]!;
    if (key[lane] === tag[of] && tie[lane] === change[of]) return false;
    key[lane] = tag[of]!;
    tie[lane] = change[of]!;
    return true;
  }

  #top(heap: LaneHeap): number {
    while (this.#follow(heap.top)) heap.grown(heap.top);
    return heap.top;
  }
}
