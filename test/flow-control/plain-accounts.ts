// The accounts of flows as the plain model keeps them: what a flow has been served, what its requests will probably
// cost, and whose turn it is because of that.
import type { FairnessSettings } from '../../dist/src/contract/queue-settings.js';

/** Tokens that a flow's first requests are expected to have, and how many requests that prior stands for. */
const PRIOR_TOKENS = 200;
const PRIOR_REQUESTS = 4;
const FADE_MS = 60_000;
/** The newest output counts for so much of a flow's mean at least. */
const LEAST_WEIGHT = 0.05;

export interface PlainFlow {
  readonly priority: number;
  readonly id: string;
  tag: number;
  /** Of two equal tags the one that has been so for longer goes first. */
  tie: number;
  credit: number;
  service: number;
  turns: number;
  /** When its last request ended; undefined = none has. */
  endedMs: number | undefined;
  outputMean: number;
  outputs: number;
  waiting: number;
  running: number;
  /** Number and time of the moment when it fell idle. */
  idle: { readonly number: number; readonly sinceMs: number } | undefined;
}

/** Mean output of all requests: tokens over completions, both fading, and one prior request that stays. */
export class PlainOutputs {
  #tokens = PRIOR_REQUESTS * PRIOR_TOKENS;
  #ends = PRIOR_REQUESTS;
  #sinceMs: number | undefined;

  get mean(): number {
    return this.#tokens / this.#ends;
  }

  add(tokens: number, ends: number, nowMs: number): void {
    this.#sinceMs ??= nowMs;
    if (nowMs - this.#sinceMs >= 1) {
      const kept = Math.exp(-(nowMs - this.#sinceMs) / FADE_MS);
      this.#tokens = this.#tokens * kept + PRIOR_TOKENS * (1 - kept);
      this.#ends = this.#ends * kept + (1 - kept);
      this.#sinceMs = nowMs;
    }
    this.#tokens += tokens;
    this.#ends += ends;
  }
}

export function learnOutput(flow: PlainFlow, tokens: number): void {
  flow.outputs++;
  flow.outputMean += Math.max(LEAST_WEIGHT, 1 / flow.outputs) * (tokens - flow.outputMean);
}

function weightOf(fairness: FairnessSettings, flow: PlainFlow): number {
  return 'weights' in fairness ? (fairness.weights[flow.id] ?? 1) : 1;
}

/** A flow is served so many tokens. @param dispatched a request of it was dispatched, not only more output of one */
export function pay(fairness: FairnessSettings, flow: PlainFlow, tokens: number, dispatched: boolean): void {
  const weight = weightOf(fairness, flow);
  if (fairness.kind === 'round-robin' && dispatched) flow.tag += 1;
  if (fairness.kind === 'start-time') {
    const spent = Math.min(flow.credit, tokens);
    flow.credit -= spent;
    flow.tag += (tokens - spent) / weight;
  }
  if (fairness.kind === 'deficit-round-robin') {
    flow.credit -= tokens;
    while (flow.credit <= 0) {
      flow.credit += fairness.quantumTokens * weight;
      flow.tag += 1;
    }
  }
}

/** So many tokens that it paid for were not used. */
export function refund(fairness: FairnessSettings, flow: PlainFlow, tokens: number): void {
  if (fairness.kind === 'start-time' || fairness.kind === 'deficit-round-robin') flow.credit += tokens;
}

/** A flow that had nothing waiting comes back where the others are at `reached`. */
export function wake(fairness: FairnessSettings, flow: PlainFlow, reached: number): void {
  const weight = weightOf(fairness, flow);
  if (fairness.kind === 'round-robin') flow.tag = Math.max(flow.tag, reached);
  if (fairness.kind === 'start-time') {
    flow.tag = Math.max(flow.tag, reached);
    flow.credit = Math.min(flow.credit, (flow.tag - reached) * weight);
  }
  if (fairness.kind === 'deficit-round-robin' && !(flow.tag >= reached && flow.credit > 0)) {
    flow.tag = Math.max(flow.tag, reached);
    flow.credit = fairness.quantumTokens * weight;
  }
}

/** Flows of a band whose settings have changed: the differences stay when the policy is of the same kind. */
export function rebase(flows: readonly PlainFlow[], kept: boolean): void {
  const least = Math.min(...flows.map(({ tag }) => tag));
  for (const flow of flows) {
    flow.tag = kept ? flow.tag - least : 0;
    flow.service = 0;
    if (kept) continue;
    flow.credit = 0;
    flow.turns = 0;
    flow.endedMs = undefined;
  }
}
