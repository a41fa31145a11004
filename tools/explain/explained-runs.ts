import type { Decision } from '../../src/core/decision-data.js';
import type { PickedEndpoint, Rejection, ScheduleInput } from '../../src/scheduling/decision.js';
import type { EndpointDirectory } from '../../src/scheduling/endpoint-directory.js';
import { noPick } from '../../src/scheduling/no-pick.js';
import type { PickWork, ProfilePick, ProfileRuns } from '../../src/scheduling/profile-handler.js';
import type { ExplainedProfile } from './explained-request.js';

/** A profile that was run, and what the core decided. */
export interface ExplainedRun {
  readonly explained: ExplainedProfile;
  readonly decision: Pick<Decision, 'slots' | 'matchedBlocks' | 'totalBlocks'>;
}

/** Runs a profile. `earlier`: slot that an earlier profile picked, with which topology plugins compare. */
export type RunProfile = (profile: string, work: PickWork | undefined, earlier: number | undefined) => ExplainedRun;

/** The profiles of one request as a handler runs them, each explained; nothing is charged. */
export class ExplainedRuns implements ProfileRuns {
  readonly input: ScheduleInput;
  readonly promptTokens: number;
  readonly profiles: readonly string[];
  readonly #run: RunProfile;
  readonly #directory: EndpointDirectory;
  readonly #blockTokens: number;
  readonly #ran: ExplainedProfile[] = [];

  constructor(
    input: ScheduleInput,
    promptTokens: number,
    profiles: readonly string[],
    run: RunProfile,
    directory: EndpointDirectory,
    blockTokens: number,
  ) {
    this.input = input;
    this.promptTokens = promptTokens;
    this.profiles = profiles;
    this.#run = run;
    this.#directory = directory;
    this.#blockTokens = blockTokens;
  }

  run(profile: string, work: PickWork, earlier?: ProfilePick): ProfilePick | Rejection {
    const { explained, decision } = this.#run(profile, work, earlier?.endpoints[0]?.slot);
    this.#ran.push(explained);
    if (explained.status !== 'decided') return noPick(explained.status, explained.leftNoneBy);
    const { slots, matchedBlocks, totalBlocks } = decision;
    return {
      kind: 'picked',
      profile,
      endpoints: [...slots].map((slot): PickedEndpoint => this.#directory.at(slot)!),
      matchedBlocks,
      totalBlocks,
      matchedTokens: Math.min(matchedBlocks * this.#blockTokens, this.promptTokens),
    };
  }

  /** Nothing is charged. */
  abandon(): void {}

  /** Profiles that ran, in their order, then the others, each alone. */
  all(): ExplainedProfile[] {
    const names = new Set(this.#ran.map(({ name }) => name));
    const others = this.profiles.filter((name) => !names.has(name));
    return [...this.#ran, ...others.map((name) => this.#run(name, undefined, undefined).explained)];
  }
}
