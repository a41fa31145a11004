import type { CostModelSettings } from '../../../src/config/adaptation.js';
import type { Coefficients } from '../../../src/core/coefficients.js';
import { CORE } from '../../../src/core/core-names.js';
import type { EndpointSettings } from './fleet-settings.js';
import type { StepTime, StepWork } from './step-time.js';

/** Inputs of marginal cost computed from the engines' own parameters. */
export interface TrueCosts {
  readonly coefficients: Coefficients;
  /** Slowness by endpoint: its times relative to those of the first. */
  readonly speeds: readonly number[];
}

/** A usual load, between which and an empty engine the growth of a step is read off. */
const DECODES = 32;
const CONTEXT = 2_000;

/**
 * The coefficients of an engine's own step time, and the speeds of the endpoints beside the first one.
 * @param outputTokens mean of the traffic
 */
export function trueCosts(
  endpoints: readonly EndpointSettings[],
  settings: CostModelSettings,
  outputTokens: number,
): TrueCosts {
  const [first] = endpoints;
  const stepMs = decodeStep(first!.stepTime, 1, 0);
  const coefficients = {
    // A request comes, on average, in the middle of a step.
    baseMs: stepMs / 2,
    prefillMsPerKiloToken: prefillMs(first!),
    waitingMs: 0,
    stepMs,
    growthMs:
      (decodeStep(first!.stepTime, DECODES, CONTEXT) - stepMs) /
      ((DECODES * (CONTEXT + CORE.SLOT_TOKENS)) / CORE.KV_TOKENS),
    missPrice: settings.missPrice,
    outputTokens,
    firstOutputTargetMs: settings.firstOutputTargetMs,
    perTokenTargetMs: settings.perTokenTargetMs,
    slots: first!.limits.maxSequences,
    evictionPrice: 1,
  };
  return { coefficients, speeds: endpoints.map((endpoint) => slowness(endpoint) / slowness(first!)) };
}

/** By the mean of prefill and output, which machines of one kind slow down alike. */
function slowness(endpoint: EndpointSettings): number {
  return Math.sqrt(prefillMs(endpoint) * decodeStep(endpoint.stepTime, DECODES, CONTEXT)) / endpoint.speed;
}

/** Milliseconds per 1,000 tokens of a full chunk, without what a step costs anyway. */
function prefillMs({ stepTime, limits }: EndpointSettings): number {
  const tokens = limits.maxBatchedTokens;
  const pairs = (tokens * tokens) / 2;
  const chunk: StepWork = {
    tokens,
    prefillTokens: tokens,
    prefillPairs: pairs,
    decodes: 0,
    decodeContext: 0,
    rows: 1,
  };
  return (stepTime(chunk) / tokens) * 1e3;
}

function decodeStep(stepTime: StepTime, decodes: number, context: number): number {
  const decodeContext = decodes * context;
  return stepTime({ tokens: decodes, prefillTokens: 0, prefillPairs: 0, decodes, decodeContext, rows: decodes });
}
