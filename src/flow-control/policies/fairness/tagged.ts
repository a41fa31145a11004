import { CANDIDATE_SETS_MAX } from '../../candidate-sets.js';
import type { FlowTable } from '../../flow-table.js';
import type { Lanes } from '../../lanes.js';
import { NONE } from '../../request-slab.js';
import type { Fairness } from './fairness.js';
import { LaneHeap } from './lane-heap.js';

/** Rule by which a flow's tag follows from its service. */
export interface TagRule {
  /** Called when a flow without waiting requests returns to a candidate set that has reached tag `reached`. */
  wake(flows: FlowTable, flow: number, reached: number): void;
  dispatched(flows: FlowTable, flow: number, tokens: number): void;
  used(flows: FlowTable, flow: number, tokens: number): void;
  unused(flows: FlowTable, flow: number, tokens: number): void;
}

/**
 * Policies that serve the flow with the smallest tag. Tags only grow, so a lane may be in its heap under an old,
 * smaller tag of its flow; it is corrected when it reaches the top. A dispatch costs O(log lanes) for any number of
 * candidate sets of the flow.
 */
export class Tagged implements Fairness {
  readonly oneLane = false;
  readonly #flows: FlowTable;
  readonly #lanes: Lanes;
  readonly #rule: TagRule;
  readonly #heaps: (LaneHeap | undefined)[] = new Array(CANDIDATE_SETS_MAX).fill(undefined);
  /**
   * Tag that each candidate set has reached. A flow that was idle begins there at the earliest, so idle time earns
   * nothing. Each set has its own tag, because flows with other candidates do not compete with it.
   */
  readonly #reached = new Float64Array(CANDIDATE_SETS_MAX);
  /** 1 above the highest candidate set that ever had a lane. */
  #usedSets = 0;
  #changes = 0;

  constructor(flows: FlowTable, lanes: Lanes, rule: TagRule) {
    this.#flows = flows;
    this.#lanes = lanes;
    this.#rule = rule;
  }

  wake(flow: number, candidateSet: number): void {
    this.#rule.wake(this.#flows, flow, Math.max(this.#reached[candidateSet]!, this.#start()));
    this.#flows.tie[flow] = ++this.#changes;
  }

  newSet(candidateSet: number): void {
    this.#reached[candidateSet] = 0;
  }

  add(lane: number): void {
    this.#follow(lane);
    const candidateSet = this.#lanes.candidateSet[lane]!;
    let heap = this.#heaps[candidateSet];
    if (heap === undefined) {
      heap = new LaneHeap(this.#lanes);
      this.#heaps[candidateSet] = heap;
      this.#usedSets = Math.max(this.#usedSets, candidateSet + 1);
    }
    heap.add(lane);
  }

  remove(lane: number): void {
    this.#heaps[this.#lanes.candidateSet[lane]!]!.remove(lane);
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
    const candidateSet = this.#lanes.candidateSet[lane]!;
    this.#reached[candidateSet] = Math.max(this.#reached[candidateSet]!, this.#flows.tag[flow]!);
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

  notPlaced(): void {}
  served(): void {}
  at(): void {}

  /** Tag at which a flow begins: the smallest tag of the waiting flows, or the largest reached tag when none waits. */
  #start(): number {
    let least = Number.POSITIVE_INFINITY;
    let most = 0;
    for (let candidateSet = 0; candidateSet < this.#usedSets; candidateSet++) {
      const heap = this.#heaps[candidateSet];
      if (heap !== undefined && heap.size > 0) least = Math.min(least, this.#lanes.key[this.#top(heap)]!);
      most = Math.max(most, this.#reached[candidateSet]!);
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
    // Object.is: a tag that is no number counts as equal to itself, so that `#top` ends with any settings.
    if (Object.is(key[lane], tag[of]) && tie[lane] === change[of]) return false;
    key[lane] = tag[of]!;
    tie[lane] = change[of]!;
    return true;
  }

  #top(heap: LaneHeap): number {
    while (this.#follow(heap.top)) heap.grown(heap.top);
    return heap.top;
  }
}
