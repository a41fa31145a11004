import { resolve } from 'node:path';
import { z } from 'zod';
import type { Operation } from '../core/operations.js';
import { once } from '../runtime/once.js';
import { durationMilliseconds, parseDuration } from '../scheduling/duration.js';
import { duration } from '../scheduling/duration-schema.js';
import { canLearn } from '../scheduling/learned-profile.js';
import type { ObjectiveTimes } from '../scheduling/wanted-times.js';
import type { Path } from './document.js';

/**
 * off: nothing is learned · shadow: learned, not used · auto: used when the guard allows · always: used without a guard
 */
export type AdaptationMode = 'off' | 'shadow' | 'auto' | 'always';

/**
 * marginal-cost: one scorer in the place of load and cache scorers · weights: those scorers with fitted weights ·
 * rules: the known rule with the best recent reward
 */
export type AdaptationDrive = 'marginal-cost' | 'weights' | 'rules';

/** Prior of the cost model, and its constants that are not learned. Times in milliseconds. */
export interface CostModelSettings {
  readonly firstOutputTargetMs: number;
  readonly perTokenTargetMs: number;
  readonly missPrice: number;
  readonly slots: number;
  readonly prior: {
    readonly baseMs: number;
    readonly prefillMsPerKiloToken: number;
    readonly waitingMs: number;
    readonly stepMs: number;
    readonly growthMs: number;
    readonly outputTokens: number;
  };
}

/** Conditions for decisions by learned costs. */
export interface GuardSettings {
  /** Shortest length of an epoch. */
  readonly epochMs: number;
  /** Loss against the static configuration that is accepted, as a share of its cost. */
  readonly budget: number;
  /** Training samples before anything is tried. */
  readonly samples: number;
  /** Rank correlation of predicted and observed times before anything is tried. */
  readonly correlation: number;
  /** Shortest wait after a fallback; it doubles each time up to twelvefold. */
  readonly pauseMs: number;
}

export interface AdaptationSettings {
  readonly mode: AdaptationMode;
  readonly drive: AdaptationDrive;
  readonly model: CostModelSettings;
  readonly guard: GuardSettings;
  /** Label of endpoints that says what machine they run on. */
  readonly hardwareLabel: string;
  /** Targets by objective, for requests without headers of their own; 0 = the targets of the section. */
  readonly objectiveTimes: ObjectiveTimes;
  /** File of the learned state; undefined = the state is not saved. */
  readonly stateFile: string | undefined;
}

/** Bounds on learned times, in milliseconds: a prior beyond them counts as they do. */
export const BASE_MS_MAX = 500;
export const WAITING_MS_MAX = 30;

/** Training samples before anything is tried, in a configuration that does not say. */
const SAMPLES = 250;

/** The section `adaptation` as it stands in the file. */
export const adaptationConfig = once(() => {
  const positiveDuration = duration.refine((text) => (parseDuration(text) ?? 1) > 0, {
    error: 'must be longer than 0',
  });

  const positiveOrZero = duration.refine((text) => (parseDuration(text) ?? 0) >= 0, { error: 'must not be negative' });

  const prior = z
    .strictObject({
      baseLatency: positiveOrZero
        .default('25ms')
        .describe('Time to a first output that nothing delays; at most 500ms.'),
      prefillPerThousandTokens: positiveDuration
        .default('55ms')
        .describe('Prefill time of 1,000 tokens that are not cached.'),
      perWaitingRequest: positiveOrZero
        .default('5ms')
        .describe('Delay by each request that the engine has waiting; at most 30ms.'),
      perOutputToken: positiveDuration.default('13ms').describe('Time per output token on an endpoint without load.'),
      perOutputTokenAndLoad: positiveDuration
        .default('4ms')
        .describe('What 100,000 tokens in flight add to every output token.'),
      outputTokens: z.int().min(1).default(200).describe('Output tokens of a usual request.'),
    })
    .prefault({});

  const guard = z
    .strictObject({
      epoch: positiveDuration.default('20s').describe('Shortest time for which one way of deciding is kept.'),
      budget: z
        .number()
        .gt(0)
        .max(1)
        .default(0.05)
        .describe('Loss against the configured weights that may be risked, as a share of their cost.'),
      samples: z
        .int()
        .min(1)
        .optional()
        .describe(`Finished requests to learn from before anything is tried; ${SAMPLES} if absent.`),
      labels: z.int().min(1).optional().describe('Deprecated name of samples.'),
      correlation: z
        .number()
        .min(-1)
        .max(1)
        .default(0.3)
        .describe('Rank correlation of predicted and observed times to first output before anything is tried.'),
      pause: positiveDuration
        .default('5m')
        .describe('Wait before the next try after a fallback; it doubles with every further one, up to twelvefold.'),
    })
    .prefault({});

  return z.strictObject({
    mode: z
      .enum(['off', 'shadow', 'auto', 'always'])
      .default('shadow')
      .describe(
        'off = nothing is learned; shadow = costs are learned and reported, the configured weights decide; auto = ' +
          'learned ' +
          'costs decide as far as the guard finds them no worse; always = they decide without a guard.',
      ),
    drive: z
      .enum(['marginal-cost', 'weights', 'rules'])
      .default('marginal-cost')
      .describe(
        'How learned costs decide: marginal-cost = by themselves; weights = through the scorers of the profile, with ' +
          'the ' +
          ('weights that come nearest to them; rules = not by costs, but by whichever of four known rules has done ' +
            'best of late.'),
      ),
    timeToFirstToken: positiveDuration
      .default('2s')
      .describe(
        'What a request should take to its first output; with timePerOutputToken the exchange rate of the two.',
      ),
    timePerOutputToken: positiveDuration.default('60ms').describe('What each further output token should take.'),
    objectives: z
      .record(
        z.string().min(1),
        z.strictObject({
          timeToFirstToken: positiveDuration.optional().describe('What its requests should take to the first output.'),
          timePerOutputToken: positiveDuration.optional().describe('What each further output token should take.'),
        }),
      )
      .default({})
      .describe(
        'Targets by name of the objective (x-llm-d-inference-objective), for requests that bring none in their own ' +
          'headers.',
      ),
    missPrice: z
      .number()
      .min(0.1)
      .max(10)
      .default(1.5)
      .describe(
        'How much more a token outside the cache costs than its own prefill: what it evicts, and the next turn.',
      ),
    runningRequests: z
      .int()
      .min(1)
      .default(256)
      .describe('Requests that every endpoint runs at once at least (max-num-seqs of vLLM).'),
    hardwareLabel: z
      .string()
      .min(1)
      .default('llm-d.ai/accelerator-variant')
      .describe(
        'Label of endpoints that names their hardware: endpoints with one value of it share coefficients, and a new ' +
          'one is ' +
          'taken to be as fast as they are. Endpoints without it have the coefficients of the pool.',
      ),
    prior: prior.describe('What is assumed until something has been learned.'),
    guard: guard.describe('When learned costs may decide.'),
    stateFile: z
      .string()
      .min(1)
      .optional()
      .describe(
        "File that keeps what was learned over a restart, from the configuration's folder; absent = it is learned " +
          'again.',
      ),
  });
});

export type AdaptationConfig = z.output<ReturnType<typeof adaptationConfig>>;

/** The section with every default filled in and no deprecated name. `warn` is told of a deprecated field. */
export function resolveAdaptation(
  config: AdaptationConfig | undefined,
  folder: string,
  warn: (path: Path, message: string) => void = () => undefined,
): {
  readonly settings: AdaptationSettings;
  readonly effective: AdaptationConfig;
} {
  const given = config ?? adaptationConfig().parse({});
  const samples = samplesOf(given.guard, warn);
  warnBeyond(given.prior, warn);
  const { labels: _, samples: __, ...guarded } = given.guard;
  const effective = { ...given, guard: { ...guarded, samples } };
  const { prior: assumed } = effective;
  return {
    effective,
    settings: {
      mode: effective.mode,
      drive: effective.drive,
      model: {
        firstOutputTargetMs: durationMilliseconds(effective.timeToFirstToken),
        perTokenTargetMs: durationMilliseconds(effective.timePerOutputToken),
        missPrice: effective.missPrice,
        slots: effective.runningRequests,
        prior: {
          baseMs: durationMilliseconds(assumed.baseLatency),
          prefillMsPerKiloToken: durationMilliseconds(assumed.prefillPerThousandTokens),
          waitingMs: durationMilliseconds(assumed.perWaitingRequest),
          stepMs: durationMilliseconds(assumed.perOutputToken),
          growthMs: durationMilliseconds(assumed.perOutputTokenAndLoad),
          outputTokens: assumed.outputTokens,
        },
      },
      guard: {
        epochMs: durationMilliseconds(guarded.epoch),
        budget: guarded.budget,
        samples,
        correlation: guarded.correlation,
        pauseMs: durationMilliseconds(guarded.pause),
      },
      hardwareLabel: effective.hardwareLabel,
      objectiveTimes: new Map(
        Object.entries(effective.objectives).map(([name, { timeToFirstToken, timePerOutputToken }]) => [
          name,
          { ttftMs: milliseconds(timeToFirstToken), tpotMs: milliseconds(timePerOutputToken) },
        ]),
      ),
      stateFile: effective.stateFile === undefined ? undefined : resolve(folder, effective.stateFile),
    },
  };
}

function samplesOf(
  { samples, labels }: AdaptationConfig['guard'],
  warn: (path: Path, message: string) => void,
): number {
  if (labels !== undefined) {
    const used = samples === undefined ? '' : ', and ignored because that is set';
    warn(['adaptation', 'guard', 'labels'], `is deprecated: use adaptation.guard.samples${used}`);
  }
  return samples ?? labels ?? SAMPLES;
}

function warnBeyond(prior: AdaptationConfig['prior'], warn: (path: Path, message: string) => void): void {
  const bounds = { baseLatency: BASE_MS_MAX, perWaitingRequest: WAITING_MS_MAX } as const;
  for (const [name, most] of Object.entries(bounds) as [keyof typeof bounds, number][]) {
    if (durationMilliseconds(prior[name]) <= most) continue;
    warn(['adaptation', 'prior', name], `counts as ${most}ms, the most that is learned; give ${most}ms or less`);
  }
}

function milliseconds(text: string | undefined): number {
  return text === undefined ? 0 : durationMilliseconds(text);
}

/**
 * Reason why a mode that lets learned costs decide changes no pick; undefined = it changes some, or does not let them.
 * @param programs of the profiles
 */
export function idleLearning(mode: AdaptationMode, programs: readonly (readonly Operation[])[]): string | undefined {
  if ((mode !== 'auto' && mode !== 'always') || programs.some(canLearn)) return undefined;
  const decidesAnyway = programs.some((program) => program.some(({ code }) => code === 'OP_SCORE_MARGINAL_COST'));
  const why = decidesAnyway
    ? 'marginal-cost-scorer, which a profile names, decides by learned costs in any mode but off'
    : 'no profile has a scorer of load or cache in whose place learned costs could decide';
  return `"${mode}" changes no pick: ${why}`;
}

/** The settings of a configuration that does not mention adaptation. */
export function defaultAdaptation(): AdaptationSettings {
  return resolveAdaptation(undefined, '').settings;
}
