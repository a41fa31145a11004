import type { BandSettings, FlowControlSettings } from '../../dist/src/contract/queue-settings.js';
import type { QueuedRequest } from '../../dist/src/flow-control/queue-contract.js';

export const NO_LIMITS = { requests: Infinity, bytes: Infinity, tokens: Infinity };

export const PLAIN_BAND: BandSettings = {
  limits: NO_LIMITS,
  fairness: { kind: 'global-strict' },
  ordering: { kind: 'arrival' },
};

/** Settings without limits or ends of waits, with what is given in their place. */
export function settings(given: Partial<FlowControlSettings> = {}): FlowControlSettings {
  return {
    limits: NO_LIMITS,
    ttlMs: Infinity,
    noEndpointTtlMs: Infinity,
    maxExpectedWaitMs: Infinity,
    bands: [],
    template: undefined,
    negativeTemplate: undefined,
    fallback: PLAIN_BAND,
    usageLimit: { kind: 'static', threshold: 1 },
    tenantLimits: [],
    replicas: 1,
    enableEviction: false,
    sessions: { mode: 'off', smallPrompt: 0.02, stretch: 0.06, maxWaitMs: 300_000 },
    ...given,
  };
}

let references = 0;

/** A small request of flow `f`, with what is given in its place. */
export function request(given: Partial<QueuedRequest> = {}): QueuedRequest {
  return {
    priority: 0,
    flow: 'f',
    candidates: undefined,
    promptTokens: 10,
    uncachedTokens: 10,
    maxTokens: 1,
    bytes: 100,
    deadlineMs: Infinity,
    firstTokenDueMs: Infinity,
    stickySlot: -1,
    reference: references++,
    ...given,
  };
}

/** A set of slots as the machine takes it. */
export function slots(...list: readonly number[]): Uint32Array {
  const words = new Uint32Array(Math.max(1, (Math.max(0, ...list) >> 5) + 1));
  for (const slot of list) words[slot >> 5]! |= 1 << (slot & 31);
  return words;
}
