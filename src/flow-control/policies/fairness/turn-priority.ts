import { CANDIDATE_SETS_MAX } from '../../candidate-sets.js';
import type { FlowTable } from '../../flow-table.js';
import type { Lanes } from '../../lanes.js';
import { NONE, type RequestSlab } from '../../request-slab.js';
import type { Fairness } from './fairness.js';
import { LaneHeap } from './lane-heap.js';

export interface TurnPrioritySettings {
  /** Turns that one second of the head's wait counts for. */
  readonly timeWeight: number;
  /** Idle time in milliseconds after which the next request counts as a first turn; Infinity = never. */
  readonly inactivityMs: number;
}

/**
 * Deepest flow first, as llm-d-router's strategy `turn-priority`: highest of `turn of the head + timeWeight · seconds
 * of its wait`, and of equal flows the one whose head waits longest. A flow's turn is the number of its dispatched
 * requests and the head. All scores grow alike with time, so the order changes only with the heads and turns of flows.
 */
export class TurnPriority implements Fairness {
  readonly oneLane = false;
  readonly #requests: RequestSlab;
  readonly #flows: FlowTable;
  readonly #lanes: Lanes;
  readonly #settings: TurnPrioritySettings;
  readonly #heaps: (LaneHeap | undefined)[] = new Array(CANDIDATE_SETS_MAX).fill(undefined);

  constructor(requests: RequestSlab, flows: FlowTable, lanes: Lanes, settings: TurnPrioritySettings) {
    this.#requests = requests;
    this.#flows = flows;
    this.#lanes = lanes;
    this.#settings = settings;
  }

  add(lane: number): void {
    const candidateSet = this.#lanes.candidateSet[lane]!;
    this.#rank(lane);
    let heap = this.#heaps[candidateSet];
    if (heap === undefined) {
      heap = new LaneHeap(this.#lanes);
      this.#heaps[candidateSet] = heap;
    }
    heap.add(lane);
  }

  remove(lane: number): void {
    this.#heapOf(lane).remove(lane);
  }

  headChanged(lane: number): void {
    this.#rank(lane);
    this.#heapOf(lane).changed(lane);
  }

  choose(low: number, high: number): number {
    const { key, tie } = this.#lanes;
    let best = NONE;
    for (let word = 0; word < 2; word++) {
      for (let rest = word === 0 ? low : high; rest !== 0; rest &= rest - 1) {
        const lane = this.#heaps[word * 32 + 31 - Math.clz32(rest & -rest)]!.top;
        if (best === NONE || key[lane]! < key[best]! || (key[lane] === key[best] && tie[lane]! < tie[best]!))
          best = lane;
      }
    }
    return best;
  }

  dispatched(_lane: number, flow: number): void {
    this.#flows.turns[flow]! += 1;
    this.#rankAll(flow);
  }

  notPlaced(flow: number): void {
    this.#flows.turns[flow] = Math.max(0, this.#flows.turns[flow]! - 1);
    this.#rankAll(flow);
  }

  // Changes no rank: what waits now has come before this end, so its flow has not been idle.
  served(flow: number, _promptTokens: number, _outputTokens: number, nowMs: number): void {
    this.#flows.endedMs[flow] = nowMs;
  }

  wake(): void {}
  used(): void {}
  unused(): void {}
  newSet(): void {}
  at(): void {}

  #heapOf(lane: number): LaneHeap {
    return this.#heaps[this.#lanes.candidateSet[lane]!]!;
  }

  #rankAll(flow: number): void {
    for (let lane = this.#flows.firstLane[flow]!; lane !== NONE; lane = this.#lanes.nextOfFlow[lane]!) {
      this.headChanged(lane);
    }
  }

  /** Sets the sort key of a lane: the score without its part that is equal for all lanes, with the sign reversed. */
  #rank(lane: number): void {
    const { head, flow, key, tie } = this.#lanes;
    const first = head[lane]!;
    const arrivalMs = this.#requests.enqueuedMs[first]!;
    key[lane] = (this.#settings.timeWeight * arrivalMs) / 1000 - this.#turn(flow[lane]!, arrivalMs);
    tie[lane] = this.#requests.sequence[first]!;
  }

  #turn(flow: number, arrivalMs: number): number {
    const { turns, running, endedMs } = this.#flows;
    const idle = running[flow] === 0 && arrivalMs - endedMs[flow]! > this.#settings.inactivityMs;
    return idle ? 1 : turns[flow]! + 1;
  }
}
