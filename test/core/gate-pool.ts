import { GateControl, type GateSettings } from '../../dist/core/gate.js';
import { attachCore, Decider, type DecisionRequest, type EndpointSignals } from '../../dist/core/index.js';
import { type ParkedRequest, type Return, ShardParking } from '../../dist/core/parking.js';
import { makePool, pickMax, plainRequest, scorer, smallSizes } from './pool.ts';

export const describedRequest: ParkedRequest = {
  flow: 'default-flow',
  sinceMs: 0,
  ttlMs: undefined,
  firstTokenDueMs: undefined,
  maxOutputTokens: undefined,
  bodyBytes: 100,
  handle: undefined,
  wantsPosition: false,
};

/** A pool with its gate on, and shards that park. */
export function makeGate(
  settings: GateSettings,
  signals: readonly EndpointSignals[],
  operations = [scorer('OP_SCORE_QUEUE'), pickMax],
) {
  const pool = makePool(operations, signals, { ...smallSizes, scans: 64 });
  const gate = new GateControl(pool.control);
  gate.configure(settings, 64, 1, 1);
  return { ...pool, gate, shard: (thread: number) => new Shard(pool.memory, thread) };
}

/** A shard's side of the gate, without streams. */
export class Shard {
  readonly core;
  readonly parking: ShardParking;
  readonly decider: Decider;

  constructor(memory: ReturnType<typeof makePool>['memory'], thread: number) {
    this.core = attachCore(memory, thread);
    this.parking = new ShardParking(this.core);
    this.decider = new Decider(this.core, BigInt(thread));
  }

  decide(request: Partial<DecisionRequest> = {}, held?: { ticket: number; ticketGeneration: number }) {
    const gate = { parking: this.parking.next, held, blind: false };
    const decision = this.decider.decide({ ...plainRequest, nowMs: 1, gate, ...request });
    return { ...decision, slots: [...decision.slots] };
  }

  /** Decide, and describe the request when it was parked. @returns the decision and the slot */
  ask(request: Partial<DecisionRequest> = {}, described: Partial<ParkedRequest> = {}) {
    const decision = this.decide(request);
    const parked = decision.status === 'parked';
    return { ...decision, parked: parked ? this.parking.announce({ ...describedRequest, ...described }) : -1 };
  }

  /** What has come back. */
  returns(): { slot: number; result: Return }[] {
    const found: { slot: number; result: Return }[] = [];
    this.parking.collect((slot, result) => found.push({ slot, result }));
    return found;
  }
}
