import type { RefusedBy, RefusingBound } from '../../contract/refusing-bound.js';
import type { DecisionRecord } from '../../core/decision-log.js';

/** The bound that refused a request, for readers. */
export interface ShownRefusal {
  readonly by: RefusedBy;
  /** In the unit of the bound: requests, bytes, tokens, milliseconds, or a share. Null = it is no number. */
  readonly used: number | null;
  readonly limit: number | null;
  /** The bound in one sentence, with its setting. */
  readonly text: string;
}

/**
 * @param detector name of the detector that says when endpoints are full
 * @returns null when no bound of load refused the request
 */
export function shownRefusal({ bound, priority }: DecisionRecord, detector: string): ShownRefusal | null {
  if (bound === undefined) return null;
  const { by, used, limit } = bound;
  const figure = (value: number) => (Number.isFinite(value) ? value : null);
  return { by, used: figure(used), limit: figure(limit), text: TEXTS[by](bound, priority, detector) };
}

type Text = (bound: RefusingBound, priority: number, detector: string) => string;

const inQueue =
  (what: string, setting: string): Text =>
  ({ used, limit }, priority) =>
    `the queue of priority ${priority} would hold ${count(used)} ${what}, and may hold ${count(limit)} (${setting} ` +
    'of its band)';

const inQueues =
  (what: string, setting: string): Text =>
  ({ used, limit }) =>
    `all queues together would hold ${count(used)} ${what}, and may hold ${count(limit)} (flowControl.${setting})`;

const TEXTS: Readonly<Record<RefusedBy, Text>> = {
  'pool-requests': inQueues('requests', 'maxRequests'),
  'pool-bytes': inQueues('bytes of bodies', 'maxBytes'),
  'pool-tokens': inQueues('tokens', 'maxTokens'),
  'band-requests': inQueue('requests', 'maxRequests'),
  'band-bytes': inQueue('bytes of bodies', 'maxBytes'),
  'band-tokens': inQueue('tokens', 'maxTokens'),
  'band-rate': ({ used, limit }, priority) =>
    `${count(used)} tokens wait before it; at its best rate the queue of priority ${priority} serves ${count(limit)} ` +
    'within its defaultRequestTTL',
  'expected-wait': ({ used, limit }) =>
    `it would wait ${seconds(used)}, and flowControl.maxExpectedWait is ${seconds(limit)}`,
  'tenant-limit': ({ used }) =>
    `the bucket of its fairness id has the tokens for it in ${seconds(used)} (flowControl.tenantLimits)`,
  'too-many-flows': ({ limit }) => `the queues hold ${count(limit)} flows, as many as they can`,
  'too-many-bands': ({ limit }) => `the queues have ${count(limit)} priorities, as many as they can`,
  'too-many-waiting': ({ limit }) => `the queues hold ${count(limit)} requests, as many as they can`,
  'queue-deadline': ({ used, limit }) =>
    `no endpoint had room for it in ${seconds(used)}, and it may wait ${seconds(limit)} ` +
    '(defaultRequestTTL of flowControl or of its band, or its own x-pointsman-deadline-ms or x-llm-d-inference-ttl)',
  'no-endpoints': () => 'there was no endpoint that may serve it',
  'shutting-down': () => 'the picker was about to end',
  'pool-saturation': ({ used }, priority, detector) =>
    `the pool was ${percent(used)} full by ${detector}, and priority ${priority} is shed from 100 % on`,
  'no-wait-slot': () => 'no endpoint had room, and its shard had as many waiting requests as it can (--max-streams)',
};

/** Bounds that refuse requests while endpoints have no room. */
export const BOUNDS_OF_LOAD: ReadonlySet<string> = new Set<RefusedBy>([
  ...(['pool-saturation', 'pool-requests', 'pool-bytes', 'pool-tokens'] as const),
  ...(['band-requests', 'band-bytes', 'band-tokens', 'band-rate'] as const),
  ...(['too-many-waiting', 'expected-wait', 'queue-deadline', 'no-wait-slot'] as const),
]);

/** Bounds that end a wait; all others refuse a request at its arrival. */
const ENDS_OF_WAITS: readonly RefusedBy[] = ['queue-deadline', 'no-endpoints', 'shutting-down'];

/** Milliseconds in the queues. A request that was refused at its arrival has none. */
export function waitOf({ bound, waitedMs }: DecisionRecord): number {
  return bound === undefined || ENDS_OF_WAITS.includes(bound.by) ? waitedMs : 0;
}

/** The reason for which a decision has no endpoint; null = it has one. */
export function whyNoPick(record: DecisionRecord): string | null {
  const { status, end, closed } = record;
  switch (status) {
    case 'decided':
      return null;
    case 'waiting': {
      const found = closed > 0 ? `${closed} of its endpoints had no room` : 'other requests waited before it';
      if (end !== 'rejected') return `it had to wait: ${found}`;
      const waitedMs = waitOf(record);
      return waitedMs === 0
        ? `${found}, and it was refused`
        : `${found}; it waited ${seconds(waitedMs)} and was refused`;
    }
    case 'no-wait-slot':
      return 'no endpoint had room, and no wait slot was free';
    case 'filtered':
      return 'the filters left no endpoint';
    case 'no-candidates':
      return 'there was no live endpoint for it';
    case 'denied':
      return 'an admitter refused it';
    case 'undecided':
      return 'it was refused before a decision';
    default:
      return status;
  }
}

function count(value: number): string {
  return Math.round(value).toLocaleString('en-GB');
}

function seconds(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 10) / 100} s`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
