import { CapacityGate, type GateSettings } from '../../dist/src/core/capacity-gate.js';
import { attachCore, Decider, type DecisionRequest, type EndpointSignals } from '../../dist/src/core/index.js';
import { type Return, type WaitDescription, WaitSlots } from '../../dist/src/core/wait-slots.js';
import { makePool, pickMax, plainRequest, scorer, smallSizes } from './pool.ts';

export const describedRequest: WaitDescription = {
  flow: 'default-flow',
  sinceMs: 0,
  ttlMs: undefined,
  firstTokenDueMs: undefined,
  maxOutputTokens: undefined,
  bodyBytes: 100,
  handle: undefined,
  wantsPosition: false,
};

/** A pool with its gate on, and shards that enqueue. */
export function makeGate(
  settings: GateSettings,
  signals: readonly EndpointSignals[],
  operations = [scorer('OP_SCORE_QUEUE'), pickMax],
  module?: WebAssembly.Module,
) {
  const pool = makePool(operations, signals, { ...smallSizes, scans: 64 }, module);
  const gate = new CapacityGate(pool.control);
  gate.configure(settings, 64, 1, 1);
  return { ...pool, gate, shard: (thread: number) => new Shard(pool.memory, thread) };
}

/** A shard's side of the gate, without streams. */
export class Shard {
  readonly core;
  readonly waitSlots: WaitSlots;
  readonly decider: Decider;

  constructor(memory: ReturnType<typeof makePool>['memory'], thread: number) {
    this.core = attachCore(memory, thread);
    this.waitSlots = new WaitSlots(this.core);
    this.decider = new Decider(this.core, BigInt(thread));
  }

  decide(request: Partial<DecisionRequest> = {}, held?: { ticket: number; ticketGeneration: number }) {
    const gate = { waitSlots: this.waitSlots.next, held, blind: false };
    const decision = this.decider.decide({ ...plainRequest, nowMs: 1, gate, ...request });
    return { ...decision, slots: [...decision.slots] };
  }

  /** Decide, and describe the request when it was waitSlot. @returns the decision and the slot */
  ask(request: Partial<DecisionRequest> = {}, described: Partial<WaitDescription> = {}) {
    const decision = this.decide(request);
    const waitSlot = decision.status === 'waiting';
    return { ...decision, waitSlot: waitSlot ? this.waitSlots.enqueue({ ...describedRequest, ...described }) : -1 };
  }

  /** What has come back. */
  returns(): { slot: number; result: Return }[] {
    const found: { slot: number; result: Return }[] = [];
    this.waitSlots.takeReturns((slot, result) => found.push({ slot, result }));
    return found;
  }
}
