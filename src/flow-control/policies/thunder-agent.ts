import { z } from 'zod';
import { definePlugin, type SessionRequest } from '../../scheduling/plugin.js';

/** Longest wait in milliseconds that can be asked for, 31 years. */
const WAIT_MAX_MS = 1e12;

const parameters = () =>
  z.strictObject({
    headWaitStarvationMs: z
      .number()
      .min(0)
      .max(WAIT_MAX_MS)
      .optional()
      .describe(
        'Longest time in milliseconds that a turn is held: maxWait of flowControl.sessions. 0 = no such bound.',
      ),
    capacityTokens: z
      .int()
      .gt(0)
      .optional()
      .describe(
        'Tokens of a KV cache while its endpoint does not tell them (`vllm:cache_config_info`); absent = it has room ' +
          'for every turn.',
      ),
    utilThreshold: z
      .number()
      .gt(0)
      .max(1)
      .optional()
      .describe('Share of a KV cache that sessions may fill: usableCache of flowControl.sessions.'),
    idleLeaseSeconds: z
      .number()
      .min(0)
      .max(WAIT_MAX_MS / 1_000)
      .optional()
      .describe('Seconds for which an idle session keeps its place; absent = while the learned odds are worth it.'),
    evictionTtlSeconds: z
      .number()
      .gt(0)
      .max(WAIT_MAX_MS / 1_000)
      .optional()
      .describe('Seconds after which a session without a place is forgotten: forgetAfter of flowControl.sessions.'),
    evictionSweepSeconds: z
      .number()
      .gt(0)
      .optional()
      .describe('Accepted, without effect: idle sessions are looked at twice a second.'),
  });

export const thunderAgent = definePlugin({
  type: 'thunder-agent',
  kinds: ['scorer', 'saturation-detector', 'fairness-policy', 'ordering-policy'],
  stability: 'Alpha',
  doc:
    'Turns session admission on wherever it is named, as flowControl.sessions with mode on does. As a scorer it ' +
    'scores 1 for the endpoint of the last turn of the session and 0 for the others, and nothing for a first turn. ' +
    'As saturation detector it leaves room to the learned limits, as fairness and ordering policy it is the default ' +
    'one. Open in llm-d-router (#2964): it may change.',
  parameters,
  consumes: () => [{ key: 'prefix-match' }],
  operations: ['OP_SCORE_SESSION_HOME'],
  compile: (_parameters, weight, { name }) => ({ code: 'OP_SCORE_SESSION_HOME', name, weight, parameters: [] }),
  fairnessSettings: () => ({ kind: 'global-strict' }),
  orderingSettings: () => ({ kind: 'arrival' }),
  sessionSettings: (given) => ({
    mode: 'on',
    ...timeOf('maxWait', given.headWaitStarvationMs, 1),
    ...timeOf('idleLease', given.idleLeaseSeconds, 1_000),
    ...timeOf('forgetAfter', given.evictionTtlSeconds, 1_000),
    ...(given.capacityTokens === undefined ? {} : { capacityTokens: given.capacityTokens }),
    ...(given.utilThreshold === undefined ? {} : { usableCache: given.utilThreshold }),
  }),
  advise: ({ idleLeaseSeconds, evictionSweepSeconds }) => [
    ...(evictionSweepSeconds === undefined
      ? []
      : ['evictionSweepSeconds has no effect: idle sessions are looked at twice a second']),
    ...(idleLeaseSeconds === undefined
      ? []
      : [
          'idleLeaseSeconds takes the place of what is learned: without it an idle session keeps its place for as ' +
            'long as the odds of its return are worth it',
        ]),
  ],
});

type TimeField = 'maxWait' | 'idleLease' | 'forgetAfter';

/** A setting in time, from a parameter in `unitMs`; empty = it is not given. */
function timeOf(field: TimeField, given: number | undefined, unitMs: number): Pick<SessionRequest, TimeField> {
  return given === undefined ? {} : { [field]: waitText(given * unitMs) };
}

/** A duration of whole milliseconds; a part of one is rounded up, because 0 has no end. */
function waitText(ms: number): string {
  const whole = Math.ceil(ms);
  return whole % 1000 === 0 ? `${whole / 1000}s` : `${whole}ms`;
}
