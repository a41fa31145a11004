import { BASE_MS_MAX, type CostModelSettings, WAITING_MS_MAX } from '../config/adaptation.js';
import type { HardwareCoefficients } from '../core/coefficients.js';
import { AnchoredRidge, type Forgetting, type RidgeState, type RidgeTerm } from './ridge.js';

type Prior = CostModelSettings['prior'];

/** Lower bounds of predictions when errors are weighed. */
const FIRST_OUTPUT_FLOOR_MS = 20;
const PER_TOKEN_FLOOR_MS = 5;

/** Thousands of tokens to prefill below which a request says nothing of the price of prefill. */
const LITTLE_WORK = 0.5;

/** State of the two estimators as plain data. */
export interface EstimatorsState {
  readonly firstOutput: RidgeState;
  readonly perToken: RidgeState;
}

/** Estimators of the time to first output (θ0, c, w) and of the time per output token (d, g). */
export interface CostEstimators {
  readonly firstOutput: AnchoredRidge;
  readonly perToken: AnchoredRidge;
}

/**
 * @param spread factor on the distance that times may have from the prior, compared with those of an average endpoint
 * @param forgetting 'observed' keeps what the traffic says nothing of; 'all' returns it to the prior, which may move
 */
export function makeEstimators(prior: Prior, spread: number, forgetting: Forgetting): CostEstimators {
  return {
    firstOutput: new AnchoredRidge(firstOutputTerms(prior, spread), FIRST_OUTPUT_FLOOR_MS, forgetting),
    perToken: new AnchoredRidge(
      [
        within(prior.stepMs, 5 * spread, 15 / prior.stepMs ** 2),
        within(prior.growthMs, 8 * spread, 15 / prior.growthMs ** 2),
      ],
      PER_TOKEN_FLOOR_MS,
      forgetting,
    ),
  };
}

export function coefficientsOf({ firstOutput, perToken }: CostEstimators): HardwareCoefficients {
  const [baseMs, prefillMsPerKiloToken, waitingMs] = firstOutput.theta;
  const [stepMs, growthMs] = perToken.theta;
  return {
    baseMs: baseMs!,
    prefillMsPerKiloToken: prefillMsPerKiloToken!,
    waitingMs: waitingMs!,
    stepMs: stepMs!,
    growthMs: growthMs!,
  };
}

/** Coefficients of an endpoint whose first outputs are slower by a factor than its speed says. */
export function withFirstOutputs(own: HardwareCoefficients, factor: number): HardwareCoefficients {
  const { baseMs, prefillMsPerKiloToken, waitingMs } = own;
  return {
    ...own,
    baseMs: baseMs * factor,
    prefillMsPerKiloToken: prefillMsPerKiloToken * factor,
    waitingMs: waitingMs * factor,
  };
}

/**
 * Teaches θ0, c and w. Little work rides along in a step that output takes anyway, so that its price is no price of
 * prefill: c is taken as known there.
 */
export function learnFirstOutput(
  ridge: AnchoredRidge,
  inputs: readonly number[],
  observedMs: number,
  forget: number,
  weight = 1,
): void {
  const [base, work, waiting] = inputs;
  if (work! >= LITTLE_WORK) ridge.learn(inputs, observedMs, forget, weight);
  else ridge.learn([base!, 0, waiting!], observedMs - work! * ridge.theta[1]!, forget, weight);
}

/**
 * Continues from a saved state with `share` of its weight.
 * @returns false, with both reset, when the state does not fit
 */
export function restoreEstimators(
  { firstOutput, perToken }: CostEstimators,
  state: EstimatorsState,
  share: number,
): boolean {
  if (firstOutput.restore(state.firstOutput, share) && perToken.restore(state.perToken, share)) return true;
  firstOutput.reset();
  perToken.reset();
  return false;
}

function firstOutputTerms(prior: Prior, spread: number): RidgeTerm[] {
  return [
    { prior: prior.baseMs, low: 0, high: BASE_MS_MAX * spread, anchor: 50 / 200 ** 2 },
    // About one observation: the prior loses its weight with the first ones.
    within(prior.prefillMsPerKiloToken, 10 * spread, 1 / prior.prefillMsPerKiloToken ** 2),
    // Bounded: a higher price leads to a spiral of queue, avoidance, misses and more queue.
    { prior: Math.min(prior.waitingMs, WAITING_MS_MAX), low: 0, high: WAITING_MS_MAX * spread, anchor: 50 / 200 ** 2 },
  ];
}

/** A term within a factor of its prior. */
function within(prior: number, factor: number, anchor: number): RidgeTerm {
  return { prior, low: prior / factor, high: prior * factor, anchor };
}
