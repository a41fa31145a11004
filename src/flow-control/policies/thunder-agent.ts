import { z } from 'zod';
import { definePlugin } from '../../scheduling/plugin.js';

/** Longest wait in milliseconds that can be asked for, 31 years. */
const WAIT_MAX_MS = 1e12;

/** Parameters that session admission needs no value for, and what it does instead. */
const REPLACED = {
  capacityTokens: 'endpoints tell the size of their cache, and one that does not has room for every turn',
  utilThreshold: 'the whole cache of an endpoint counts, and flowControl.sessions.stretch lets held turns exceed it',
  idleLeaseSeconds: 'an idle session keeps its place for as long as the learned odds of its return are worth it',
  evictionTtlSeconds: 'of 65,535 known sessions, those that lapsed longest ago are forgotten first',
  evictionSweepSeconds: 'sessions are forgotten when a new one needs the place',
} as const;

const parameters = z.strictObject({
  headWaitStarvationMs: z
    .number()
    .min(0)
    .max(WAIT_MAX_MS)
    .optional()
    .describe('Longest time in milliseconds that a turn is held: maxWait of flowControl.sessions. 0 = no such bound.'),
  capacityTokens: z
    .int()
    .gt(0)
    .optional()
    .describe('Accepted, without effect: endpoints tell the size of their cache (`vllm:cache_config_info`).'),
  utilThreshold: z.number().gt(0).max(1).optional().describe('Accepted, without effect: the whole cache counts.'),
  idleLeaseSeconds: z
    .number()
    .min(0)
    .optional()
    .describe('Accepted, without effect: how long an idle session keeps its place is learned.'),
  evictionTtlSeconds: z
    .number()
    .gt(0)
    .optional()
    .describe('Accepted, without effect: the session that lapsed longest ago is forgotten first.'),
  evictionSweepSeconds: z
    .number()
    .gt(0)
    .optional()
    .describe('Accepted, without effect: sessions are forgotten when a new one needs the place.'),
});

export const thunderAgent = definePlugin({
  type: 'thunder-agent',
  kinds: ['scorer', 'saturation-detector', 'fairness-policy', 'ordering-policy'],
  stability: 'Alpha',
  doc:
    'Turns session admission on wherever it is named, as flowControl.sessions with mode on does. As a scorer it ' +
    'scores nothing: admission sends the turn of a protected session to its home. As saturation detector it ' +
    'leaves room to the learned limits, as fairness and ordering policy it is the default one. Open in ' +
    'llm-d-router (#2964): it may change.',
  parameters,
  consumes: () => [{ key: 'prefix-match' }],
  operations: [],
  compile: () => undefined,
  fairnessSettings: () => ({ kind: 'global-strict' }),
  orderingSettings: () => ({ kind: 'arrival' }),
  sessionSettings: ({ headWaitStarvationMs }) => ({
    mode: 'on',
    ...(headWaitStarvationMs === undefined ? {} : { maxWait: waitText(headWaitStarvationMs) }),
  }),
  advise: (given) =>
    Object.entries(REPLACED)
      .filter(([name]) => given[name as keyof typeof REPLACED] !== undefined)
      .map(([name, instead]) => `${name} has no effect: ${instead}`),
});

/** A duration of whole milliseconds; a part of one is rounded up, because 0 has no end. */
function waitText(ms: number): string {
  const whole = Math.ceil(ms);
  return whole % 1000 === 0 ? `${whole / 1000}s` : `${whole}ms`;
}
