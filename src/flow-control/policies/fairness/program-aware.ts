import { z } from 'zod';
import { definePlugin } from '../../../scheduling/plugin.js';
import { CANDIDATE_SETS_MAX } from '../../candidate-sets.js';
import type { FlowTable } from '../../flow-table.js';
import type { Lanes } from '../../lanes.js';
import { NONE, type RequestSlab } from '../../request-slab.js';
import type { Fairness } from './fairness.js';
import { ServiceHeap, type Slope } from './service-heap.js';

/** Half-lives after which the common scale of the services is reset, well inside the range of a double. */
const RESCALE_HALF_LIVES = 500;
/** Score of all flows on a measure without differences (as in llm-d-router). */
const NO_RANGE = 0;

export interface ProgramAwareSettings {
  readonly serviceWeight: number;
  readonly headWaitWeight: number;
  readonly halfLifeMs: number;
}

/**
 * Least attained service as llm-d-router's program-aware-fairness: highest of `serviceWeight · (1 − normalised service)
 * + headWaitWeight · normalised wait of the head`, both normalised over all waiting flows of the band. Service is
 * prompt tokens + 2 × output tokens and halves every half-life. All services fade alike, so later service is written in
 * larger units instead, and the order of flows changes only when one of them is served.
 */
export class ProgramAware implements Fairness {
  readonly oneLane = false;
  readonly #requests: RequestSlab;
  readonly #flows: FlowTable;
  readonly #lanes: Lanes;
  readonly #settings: ProgramAwareSettings;
  readonly #heaps: (ServiceHeap | undefined)[] = new Array(CANDIDATE_SETS_MAX).fill(undefined);
  readonly #ownFlows: () => Iterable<number>;
  #scaleSinceMs: number | undefined;

  /** @param ownFlows the flows of the policy's band */
  constructor(
    requests: RequestSlab,
    flows: FlowTable,
    lanes: Lanes,
    settings: ProgramAwareSettings,
    ownFlows: () => Iterable<number>,
  ) {
    this.#requests = requests;
    this.#flows = flows;
    this.#lanes = lanes;
    this.#settings = settings;
    this.#ownFlows = ownFlows;
  }

  add(lane: number): void {
    const candidateSet = this.#lanes.candidateSet[lane]!;
    let heap = this.#heaps[candidateSet];
    if (heap === undefined) {
      heap = new ServiceHeap(this.#requests, this.#flows, this.#lanes);
      this.#heaps[candidateSet] = heap;
    }
    heap.add(lane);
  }

  remove(lane: number): void {
    this.#heapOf(lane).remove(lane);
  }

  headChanged(lane: number): void {
    this.#heapOf(lane).changed(lane);
  }

  choose(low: number, high: number): number {
    const slope = this.#slope();
    let best = NONE;
    let bestValue = Number.POSITIVE_INFINITY;
    for (let word = 0; word < 2; word++) {
      for (let rest = word === 0 ? low : high; rest !== 0; rest &= rest - 1) {
        const lane = this.#heaps[word * 32 + 31 - Math.clz32(rest & -rest)]!.best(slope);
        const value = this.#valueOf(lane, slope);
        if (best === NONE || value < bestValue) {
          best = lane;
          bestValue = value;
        }
      }
    }
    return best;
  }

  served(flow: number, promptTokens: number, outputTokens: number, nowMs: number): void {
    this.#scaleSinceMs ??= nowMs;
    // A band in which nothing waits is not asked for its next request, so its scale may be older than a double can
    // hold.
    this.at(nowMs);
    const halfLives = (nowMs - this.#scaleSinceMs) / this.#settings.halfLifeMs;
    this.#flows.service[flow]! += (promptTokens + 2 * outputTokens) * 2 ** halfLives;
    for (let lane = this.#flows.firstLane[flow]!; lane !== NONE; lane = this.#lanes.nextOfFlow[lane]!) {
      this.#heapOf(lane).changed(lane);
    }
  }

  at(nowMs: number): void {
    if (this.#scaleSinceMs === undefined) return;
    const halfLives = (nowMs - this.#scaleSinceMs) / this.#settings.halfLifeMs;
    if (halfLives < RESCALE_HALF_LIVES) return;
    const factor = 2 ** -halfLives;
    for (const flow of this.#ownFlows()) this.#flows.service[flow]! *= factor;
    for (const heap of this.#heaps) heap?.rescaled();
    this.#scaleSinceMs = nowMs;
  }

  wake(): void {}
  dispatched(): void {}
  used(): void {}
  unused(): void {}
  notPlaced(): void {}
  newSet(): void {}

  #heapOf(lane: number): ServiceHeap {
    return this.#heaps[this.#lanes.candidateSet[lane]!]!;
  }

  #valueOf(lane: number, slope: Slope): number {
    const { service } = this.#flows;
    const arrival = this.#requests.enqueuedMs[this.#lanes.head[lane]!]!;
    return slope.service * service[this.#lanes.flow[lane]!]! + slope.arrival * arrival;
  }

  /** The score as a line: its constant part, equal for all lanes, is left out, and its sign is reversed. */
  #slope(): Slope {
    let [least, most, earliest, latest] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const heap of this.#heaps) {
      if (heap === undefined || heap.size === 0) continue;
      least = Math.min(least, heap.leastService);
      most = Math.max(most, heap.serviceMax);
      earliest = Math.min(earliest, heap.earliestHeadMs);
      latest = Math.max(latest, heap.latestHeadMs);
    }
    const { serviceWeight, headWaitWeight } = this.#settings;
    return {
      service: most > least ? serviceWeight / (most - least) : NO_RANGE,
      arrival: latest > earliest ? headWaitWeight / (latest - earliest) : NO_RANGE,
    };
  }
}

const seconds = z.number().min(0);

const programAwareParameters = () =>
  z.strictObject({
    strategy: z
      .enum(['las', 'turn-priority'])
      .default('las')
      .describe(
        'las: the flow with the least service; turn-priority: the one with most turns, a flow for each session.',
      ),
    lasWeightService: z
      .number()
      .min(0)
      .default(0.8)
      .describe('las: weight of the service that a flow has had: less is better.'),
    lasWeightHeadWait: z
      .number()
      .min(0)
      .default(0.2)
      .describe('las: weight of the wait of its first request: longer is better.'),
    lasHalfLifeSeconds: seconds.default(60).describe('las: time in which service counts for half; 0 = it never fades.'),
    turnPriorityTimeWeight: z
      .number()
      .min(0)
      .default(0.05)
      .describe(
        'turn-priority: turns that a second of the wait of its first request counts for. Times the time to live it ' +
          'is the lead that a new session can make up for.',
      ),
    turnPriorityInactivitySeconds: seconds
      .default(120)
      .describe('turn-priority: idle time after which the next request counts as a first turn; 0 = it never does.'),
    evictionTtlSeconds: seconds
      .default(3600)
      .describe(
        'turn-priority: idle time after which the turns of a flow are forgotten, at least 5 minutes; 0 = never. ' +
          'las: without effect, it is 5 minutes.',
      ),
    evictionSweepSeconds: seconds.default(300).describe('Without effect.'),
  });

const endless = (value: number) => (value === 0 ? Number.POSITIVE_INFINITY : value * 1000);

export const programAwareFairness = definePlugin({
  type: 'program-aware-fairness',
  kinds: ['fairness-policy'],
  stability: 'Beta',
  doc:
    'Queues of flow control, weighed against the wait of the first request: the flow that has had the least service, ' +
    'prompt + 2 × output tokens, which fades with time; or the flow with most turns, for sessions whose prompts grow.',
  parameters: programAwareParameters,
  fairnessSettings: (parameters) =>
    parameters.strategy === 'turn-priority'
      ? {
          kind: 'turn-priority',
          timeWeight: parameters.turnPriorityTimeWeight,
          inactivityMs: endless(parameters.turnPriorityInactivitySeconds),
          forgetMs: endless(parameters.evictionTtlSeconds),
        }
      : {
          kind: 'program-aware',
          serviceWeight: parameters.lasWeightService,
          headWaitWeight: parameters.lasWeightHeadWait,
          halfLifeMs: endless(parameters.lasHalfLifeSeconds),
        },
});
