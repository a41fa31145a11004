import { ignoredParameters } from '../../../scheduling/ignored-parameters.js';
import { definePlugin } from '../../../scheduling/plugin.js';
import { CANDIDATE_SETS_MAX } from '../../candidate-sets.js';
import { goesBefore } from '../../lane-order.js';
import type { Lanes } from '../../lanes.js';
import { NONE, type RequestSlab } from '../../request-slab.js';
import type { Fairness } from './fairness.js';

/**
 * Global strict: the best of all waiting requests by the band's order, regardless of its flow. One lane per candidate
 * set.
 */
export class BestHead implements Fairness {
  readonly oneLane = true;
  readonly #requests: RequestSlab;
  readonly #lanes: Lanes;
  readonly #laneOf = new Int32Array(CANDIDATE_SETS_MAX).fill(NONE);

  constructor(requests: RequestSlab, lanes: Lanes) {
    this.#requests = requests;
    this.#lanes = lanes;
  }

  add(lane: number): void {
    this.#laneOf[this.#lanes.candidateSet[lane]!] = lane;
  }

  remove(lane: number): void {
    this.#laneOf[this.#lanes.candidateSet[lane]!] = NONE;
  }

  choose(low: number, high: number): number {
    const { head } = this.#lanes;
    let best = NONE;
    for (let word = 0; word < 2; word++) {
      for (let rest = word === 0 ? low : high; rest !== 0; rest &= rest - 1) {
        const lane = this.#laneOf[word * 32 + 31 - Math.clz32(rest & -rest)]!;
        if (best === NONE || goesBefore(this.#requests, head[lane]!, head[best]!)) best = lane;
      }
    }
    return best;
  }

  // No accounts of flows in this policy.
  wake(): void {}
  headChanged(): void {}
  dispatched(): void {}
  used(): void {}
  unused(): void {}
  notPlaced(): void {}
  served(): void {}
  newSet(): void {}
  at(): void {}
}

export const globalStrictFairnessPolicy = definePlugin({
  type: 'global-strict-fairness-policy',
  kinds: ['fairness-policy'],
  stability: 'Beta',
  doc: 'Queues of flow control: the best request over all flows, whichever flow it is in.',
  ...ignoredParameters,
  fairnessSettings: () => ({ kind: 'global-strict' }),
});
