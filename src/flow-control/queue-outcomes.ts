import type { RefusingBound } from '../contract/refusing-bound.js';
import type { Rejection } from '../scheduling/decision.js';
import type { QueueOutcome } from './queue-contract.js';

/** Outcomes in the order of their numbers in shared memory. */
export const QUEUE_OUTCOMES: readonly QueueOutcome[] = [
  'Dispatched',
  'RejectedCapacity',
  'RejectedNoEndpoints',
  'RejectedOther',
  'EvictedTTL',
  'EvictedNoEndpoints',
  'EvictedContextCancelled',
  'EvictedOther',
];

export function outcomeNumber(outcome: QueueOutcome): number {
  return QUEUE_OUTCOMES.indexOf(outcome);
}

/** Answers to the client; codes, texts and reasons are llm-d-router's. */
const ANSWERS: Readonly<Record<Exclude<QueueOutcome, 'Dispatched'>, Omit<Rejection, 'kind'>>> = {
  RejectedCapacity: {
    code: 'ResourceExhausted',
    message: 'request rejected pre-queue: queue at capacity',
    reason: 'rejected-saturated',
  },
  RejectedNoEndpoints: {
    code: 'ServiceUnavailable',
    message: 'no endpoints available: request rejected pre-queue: no endpoints available',
    reason: 'rejected-no-endpoints',
  },
  RejectedOther: {
    code: 'Internal',
    message: 'internal flow control error: request rejected pre-queue',
    reason: undefined,
  },
  EvictedTTL: {
    code: 'ResourceExhausted',
    message: 'request timed out in queue: request evicted from queue: request TTL expired',
    reason: 'rejected-ttl-expired',
  },
  EvictedNoEndpoints: {
    code: 'ServiceUnavailable',
    message:
      'request timed out in queue and no endpoints are available: request evicted from queue: request TTL expired: ' +
      'no endpoints available',
    reason: 'rejected-no-endpoints',
  },
  EvictedContextCancelled: {
    code: 'ServiceUnavailable',
    message: 'client disconnected: request evicted from queue: request context cancelled',
    reason: 'rejected-context-cancelled',
  },
  EvictedOther: {
    code: 'ServiceUnavailable',
    message: 'flow controller shutting down: request evicted from queue: flow controller is not running',
    reason: 'rejected-shutting-down',
  },
};

/** The answer to a request that left the queues without an endpoint. */
export function queueRejection(
  outcome: QueueOutcome,
  retryAfterSeconds: number | undefined,
  bound?: RefusingBound,
): Rejection {
  const answer = ANSWERS[outcome === 'Dispatched' ? 'RejectedOther' : outcome];
  return { kind: 'rejected', ...answer, retryAfterSeconds, bound };
}
