import type { Rejection, ScheduleInput } from '../../src/scheduling/decision.js';
import type { PluginDefinition } from '../../src/scheduling/plugin.js';
import type { HandledRequest, ProfilePick, ProfileRuns } from '../../src/scheduling/profile-handler.js';
import { parsed } from './definition-checks.js';
import { must, type PluginCheck, shown } from './plugin-check.js';
import { samplePlacement, situations } from './sample-request.js';

const NO_ENDPOINTS: Rejection = {
  kind: 'rejected',
  code: 'ServiceUnavailable',
  message: 'there is no endpoint',
  reason: 'rejected-no-endpoints',
};

/** One request as a handler saw it. */
interface Handled {
  readonly asked: readonly string[];
  readonly picks: readonly ProfilePick[];
  readonly result: HandledRequest | Rejection;
}

function input(): ScheduleInput {
  return {
    scan: -1,
    model: 'm',
    targetModel: 'm',
    cacheSalt: undefined,
    promptBytes: 8_192,
    maxOutputTokens: undefined,
    priority: 0,
    fairnessId: 'default-flow',
    subset: undefined,
    headers: { get: () => undefined },
    path: '/v1/chat/completions',
  };
}

function pickOf(profile: string): ProfilePick {
  const { endpoints } = samplePlacement(situations()[0]!)!;
  return { kind: 'picked', profile, endpoints, matchedBlocks: 0, totalBlocks: 32, matchedTokens: 0 };
}

/** Runs a handler over these profiles, each of which picks or has no endpoint. */
function handle(
  definition: PluginDefinition,
  parameters: unknown,
  profiles: readonly string[],
  picking: boolean,
): Handled {
  const asked: string[] = [];
  const picks: ProfilePick[] = [];
  const runs: ProfileRuns = {
    input: input(),
    promptTokens: 2_048,
    profiles,
    run(profile) {
      asked.push(profile);
      if (!picking || !profiles.includes(profile)) return NO_ENDPOINTS;
      const pick = pickOf(profile);
      picks.push(pick);
      return pick;
    },
    abandon: () => {
      picks.length = 0;
    },
  };
  const decider = () => () => true;
  const handler = definition.profileHandler!(parsed(definition, parameters), { name: definition.type, decider });
  return { asked, picks, result: handler.handle(runs) };
}

/** Rules of profile handlers, over the profiles of common configurations. */
export function handlerChecks(definition: PluginDefinition, parameters: unknown): readonly PluginCheck[] {
  if (definition.profileHandler === undefined) return [];
  const sets = [['default'], ['decode', 'prefill'], ['decode', 'prefill', 'encode']];
  const rule = (name: string, each: (handled: Handled, profiles: readonly string[]) => void, picking = true) => ({
    name: `handler: ${name}`,
    run: () => {
      for (const profiles of sets) each(handle(definition, parameters, profiles, picking), profiles);
    },
  });
  return [
    rule('runs profiles that exist', ({ asked }, profiles) => {
      const unknown = asked.find((profile) => !profiles.includes(profile));
      must(unknown === undefined, () => `it runs ${shown(unknown)}, and there are ${profiles.join(', ')}`);
    }),
    rule('runs each profile at most once', ({ asked }) =>
      must(new Set(asked).size === asked.length, () => `it runs ${asked.join(', ')}`),
    ),
    rule('answers with one of the picks, or a rejection', ({ result, picks }) =>
      must(
        result.kind === 'rejected' || picks.includes(result.primary),
        () => 'the primary pick is none that a profile made',
      ),
    ),
    rule('names its headers in lower case', ({ result }) => {
      const names = result.kind === 'handled' ? [...(result.headers ?? new Map()).keys()] : [];
      const wrong = names.find((name) => name !== name.toLowerCase());
      must(wrong === undefined, () => `a header is called ${shown(wrong)}`);
    }),
    rule(
      'rejects when no profile has an endpoint',
      ({ result }) => must(result.kind === 'rejected', () => 'it answers a placement'),
      false,
    ),
  ];
}

/** Rules of deciders about a stage. */
export function deciderChecks(definition: PluginDefinition, parameters: unknown): readonly PluginCheck[] {
  if (definition.decider === undefined) return [];
  const run = () => {
    const decide = definition.decider!(parsed(definition, parameters));
    const runs: ProfileRuns = {
      input: input(),
      promptTokens: 2_048,
      profiles: ['decode', 'prefill'],
      run: () => NO_ENDPOINTS,
      abandon: () => {},
    };
    for (const decode of [pickOf('decode'), undefined]) {
      const answer: unknown = decide({ runs, decode });
      must(typeof answer === 'boolean', () => `it answers ${shown(answer)}`);
    }
  };
  return [{ name: 'decider: answers true or false, with and without a decode pick', run }];
}
