import { isDeepStrictEqual } from 'node:util';
import type { FairnessSettings, FlowControlSettings, OrderingSettings } from '../../src/contract/queue-settings.js';
import { Ceilings } from '../../src/flow-control/policies/usage-limits.js';
import { NO_HANDLE, type QueuedRequest } from '../../src/flow-control/queue-contract.js';
import { QueueMachine } from '../../src/flow-control/queue-machine.js';
import { fairnessFault, orderingFault, usageLimitFault } from '../../src/flow-control/settings-check.js';
import type { PluginDefinition } from '../../src/scheduling/plugin.js';
import { parsed } from './definition-checks.js';
import { must, type PluginCheck, PluginFault } from './plugin-check.js';

const ORDERING = 'ordering';
const FAIRNESS = 'fairness';
const USAGE_LIMIT = 'usage limit';
const NO_LIMITS = { requests: Infinity, bytes: Infinity, tokens: Infinity };
const FIRST_COME: OrderingSettings = { kind: 'arrival' };
const STRICT: FairnessSettings = { kind: 'global-strict' };
/** Dispatches within which waiting requests must be served beside endless ones. */
const TURNS_MAX = 1_000;
/** Milliseconds between two turns: together a hundred seconds. */
const TURN_MS = 100;
const SHORT_TOKENS = 16;
const LONG_TOKENS = 16_384;

/** A machine that waits without end, with one band. */
function machine(fairness: FairnessSettings, ordering: OrderingSettings): QueueMachine {
  const settings: FlowControlSettings = {
    limits: NO_LIMITS,
    ttlMs: Infinity,
    noEndpointTtlMs: Infinity,
    maxExpectedWaitMs: Infinity,
    bands: [],
    template: undefined,
    negativeTemplate: undefined,
    fallback: { limits: NO_LIMITS, fairness, ordering },
    usageLimit: { kind: 'static', threshold: 1 },
    tenantLimits: [],
    replicas: 1,
    enableEviction: false,
    sessions: { mode: 'off', smallPrompt: 0.02, stretch: 0.1, maxWaitMs: 300_000 },
  };
  return new QueueMachine(settings, 0, { requests: 1_024, flows: 64 });
}

/** A request of `flow` whose first token is due half a second after its arrival. */
function request(flow: string, tokens: number, nowMs: number, reference: number): QueuedRequest {
  return {
    priority: 0,
    flow,
    candidates: undefined,
    promptTokens: tokens,
    uncachedTokens: tokens,
    maxTokens: 32,
    bytes: 4 * tokens,
    deadlineMs: Infinity,
    firstTokenDueMs: nowMs + 500,
    stickySlot: -1,
    reference,
  };
}

function enqueue(queue: QueueMachine, one: QueuedRequest, nowMs: number): void {
  must(queue.enqueue(one, nowMs) !== NO_HANDLE, () => `the queues refuse a request: ${queue.refusal.cause}`);
}

/** Dispatches at most one request and ends it at once. @returns its reference; undefined = none went */
function next(queue: QueueMachine, nowMs: number): number | undefined {
  let went: number | undefined;
  let ended = NO_HANDLE;
  queue.dispatch(
    (handle, reference) => {
      [ended, went] = [handle, reference];
      return 'dispatched';
    },
    nowMs,
    1,
  );
  if (went !== undefined) queue.end(ended, 32, nowMs);
  return went;
}

/**
 * Requests 1, 2, … of one kind keep coming while those with reference 0 wait.
 * @returns turns until their last request has gone; undefined = beyond the bound
 */
function turnsBeside(
  queue: QueueMachine,
  waiting: number,
  coming: (nowMs: number, reference: number) => QueuedRequest,
) {
  let left = waiting;
  for (let turn = 1; turn <= TURNS_MAX; turn++) {
    const nowMs = turn * TURN_MS;
    enqueue(queue, coming(nowMs, turn), nowMs);
    if (next(queue, nowMs) === 0 && --left === 0) return turn;
  }
  return undefined;
}

/** Settings of a policy, and the rules that hold for all policies. */
interface PolicyRules<Settings> {
  /** @throws PluginFault when the settings have a fault */
  readonly settings: () => Settings;
  readonly checks: readonly PluginCheck[];
  /** Whether the settings are right, so that queues can be made with them. */
  readonly usable: boolean;
}

function policyRules<Settings>(
  point: string,
  make: () => Settings | undefined,
  fault: (settings: Settings) => string | undefined,
): PolicyRules<Settings> {
  const settings = () => {
    const made = make();
    if (made === undefined) throw new PluginFault('the definition makes no settings');
    const why = fault(made);
    if (why !== undefined) throw new PluginFault(why);
    return made;
  };
  const known: PluginCheck = { name: `${point}: the settings are those of a known policy`, run: () => void settings() };
  try {
    settings();
  } catch {
    return { settings, checks: [known], usable: false };
  }
  const same = () => must(isDeepStrictEqual(settings(), settings()), () => 'two calls make different settings');
  const stable: PluginCheck = { name: `${point}: the same parameters make the same settings`, run: same };
  return { settings, checks: [known, stable], usable: true };
}

/** Rules of ordering policies. Those about the queues come once the settings are right. */
export function orderingChecks(definition: PluginDefinition, parameters: unknown): readonly PluginCheck[] {
  const make = () => definition.orderingSettings?.(parsed(definition, parameters));
  const { settings, checks, usable } = policyRules(ORDERING, make, orderingFault);
  if (!usable) return checks;
  const long: PluginCheck = {
    name: `${ORDERING}: a long request leaves although short ones keep coming`,
    run() {
      const queue = machine(STRICT, settings());
      enqueue(queue, request('a', LONG_TOKENS, 0, 0), 0);
      enqueue(queue, request('a', SHORT_TOKENS, 0, TURNS_MAX + 1), 0);
      const turns = turnsBeside(queue, 1, (nowMs, reference) => request('a', SHORT_TOKENS, nowMs, reference));
      must(turns !== undefined, () => `it still waits after ${(TURNS_MAX * TURN_MS) / 1_000} seconds`);
    },
  };
  return [...checks, long];
}

/** The flow with the largest weight, or any flow when no weight is named. */
function heaviestFlow(settings: FairnessSettings): string {
  const weights = 'weights' in settings ? Object.entries(settings.weights) : [];
  const [flow, weight] = weights.reduce((most, each) => (each[1] > most[1] ? each : most), ['greedy', 1]);
  return weight > 1 ? flow : 'greedy';
}

/** Rules of fairness policies, as above. */
export function fairnessChecks(definition: PluginDefinition, parameters: unknown): readonly PluginCheck[] {
  const make = () => definition.fairnessSettings?.(parsed(definition, parameters));
  const { settings, checks, usable } = policyRules(FAIRNESS, make, fairnessFault);
  if (!usable) return checks;
  const turns: PluginCheck = {
    name: `${FAIRNESS}: a flow without a weight gets its turns beside the heaviest one`,
    run() {
      const heaviest = heaviestFlow(settings());
      const queue = machine(settings(), FIRST_COME);
      for (let i = 0; i < 8; i++) enqueue(queue, request(heaviest, SHORT_TOKENS, 0, TURNS_MAX + 1), 0);
      for (let i = 0; i < 3; i++) enqueue(queue, request('modest', SHORT_TOKENS, 0, 0), 0);
      const needed = turnsBeside(queue, 3, (nowMs, reference) => request(heaviest, SHORT_TOKENS, nowMs, reference));
      must(needed !== undefined, () => `its three requests have not left after ${TURNS_MAX} turns`);
    },
  };
  return [...checks, turns];
}

/** Rules of usage limit policies. */
export function usageLimitChecks(definition: PluginDefinition, parameters: unknown): readonly PluginCheck[] {
  const make = () => definition.usageLimitSettings?.(parsed(definition, parameters));
  const { settings, checks, usable } = policyRules(USAGE_LIMIT, make, usageLimitFault);
  if (!usable) return checks;
  const falling: PluginCheck = {
    name: `${USAGE_LIMIT}: no priority may fill more of the pool than the highest`,
    run() {
      for (const saturation of [0, 0.5, 0.9]) {
        const ceilings = new Ceilings(settings()).at([10, 5, 0], saturation);
        must(
          ceilings.every((ceiling) => ceiling <= ceilings[0]!),
          () => `the limits are ${ceilings}`,
        );
      }
    },
  };
  return [...checks, falling];
}
