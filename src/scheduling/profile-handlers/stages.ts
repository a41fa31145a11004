import type { Rejection } from '../decision.js';
import {
  type HandledRequest,
  noProfile,
  type PickWork,
  type ProfilePick,
  type ProfileRuns,
  type StageDecider,
  type StagesUsed,
} from '../profile-handler.js';

/** An optional stage: the profile that picks its endpoint, and the decider whether to use it. */
export interface Stage {
  readonly profile: string;
  readonly decide: StageDecider;
}

/** Input for an optional stage. */
export interface StageCircumstances {
  /** The decode pick for the decider; undefined before it is made. */
  readonly decode?: ProfilePick | undefined;
  /** Pick of an earlier stage, for topology plugins. */
  readonly earlier?: ProfilePick | undefined;
  /** Whether a wanted stage without an endpoint ends the request. */
  readonly must?: boolean;
}

/** The stage's pick; undefined when it is not wanted, or has no endpoint and is not required. */
export function optionalStage(
  runs: ProfileRuns,
  stage: Stage,
  work: Exclude<PickWork, 'answer'>,
  { decode, earlier, must = false }: StageCircumstances,
): ProfilePick | Rejection | undefined {
  if (!runs.profiles.includes(stage.profile) || !stage.decide({ runs, decode })) return undefined;
  const pick = runs.run(stage.profile, work, earlier);
  return pick.kind === 'rejected' && !must && isForWantOfEndpoints(pick) ? undefined : pick;
}

/** The filters left none, or there is none; without room, or by a fault of the picker, the request does not go on. */
function isForWantOfEndpoints({ reason, leftWaiting }: Rejection): boolean {
  if (leftWaiting === true) return false;
  return reason === 'rejected-saturated' || reason === 'rejected-no-endpoints';
}

/** Runs the profile that answers the request; it must exist. */
export function answerStage(runs: ProfileRuns, profile: string, earlier?: ProfilePick): ProfilePick | Rejection {
  if (!runs.profiles.includes(profile)) return noProfile(`there is no profile "${profile}"`);
  return runs.run(profile, 'answer', earlier);
}

/** The stages that took part, in the terms of llm-d-router's metrics. */
export function stagesUsed(prefill: ProfilePick | undefined, encode: ProfilePick | undefined): StagesUsed {
  if (prefill === undefined) return encode === undefined ? 'decode-only' : 'encode-decode';
  return encode === undefined ? 'prefill-decode' : 'encode-prefill-decode';
}

/** Advice about profiles that a handler requires and a configuration lacks. */
export function missingProfiles(
  profiles: readonly string[],
  answering: string,
  optional: readonly (readonly [profile: string, wanted: boolean])[],
): readonly string[] {
  const lacks = (name: string) => !profiles.includes(name);
  return [
    ...(lacks(answering) ? [`there is no profile "${answering}": every request is turned away (429)`] : []),
    ...optional
      .filter(([name, wanted]) => wanted && lacks(name))
      .map(([name]) => `there is no profile "${name}": its decider is never asked`),
  ];
}

export type Handled = HandledRequest | Rejection;
