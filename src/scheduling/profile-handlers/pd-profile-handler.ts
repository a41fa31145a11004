import { z } from 'zod';
import { definePlugin } from '../plugin.js';
import type { ProfilePick, ProfileRuns } from '../profile-handler.js';
import { primaryPort } from './primary-port.js';
import { RANK_HEADER } from './stage-headers.js';
import { answerStage, type Handled, missingProfiles, optionalStage, stagesUsed } from './stages.js';

export const pdProfileHandler = definePlugin({
  type: 'pd-profile-handler',
  kinds: ['profile-handler'],
  stability: 'Beta',
  deprecated: { replacement: 'disagg-profile-handler' },
  doc:
    'Picks a decode endpoint and, when its decider says so, a prefill endpoint. Sets no header with the ' +
    'prefill endpoint; a disagg-headers-handler beside it does.',
  parameters: () =>
    z.strictObject({
      decodeProfile: z.string().default('decode').describe('Profile of the endpoint that answers.'),
      prefillProfile: z.string().default('prefill').describe('Profile of the endpoint that reads the prompt.'),
      deciderPluginName: z
        .string()
        .default('prefix-based-pd-decider')
        .refine((name) => name !== '', { error: 'decider plugin name is not defined' })
        .describe('Decider of the prefill.'),
      primaryPort: primaryPort(
        0,
        'Port of the decode endpoint for the proxy, whose own address goes into x-data-parallel-host-port; 0 = its ' +
          'own.',
      ),
      prefixMatchInfoProducerName: z
        .string()
        .default('')
        .describe('Producer of the prefix matches that the decider looks at; all share one index. Empty = any.'),
      prefixPluginType: z.string().optional().describe('Deprecated, has no effect.'),
      prefixPluginName: z.string().optional().describe('Deprecated, has no effect.'),
    }),
  consumes: ({ prefixMatchInfoProducerName }) => [
    { key: 'prefix-match', producer: prefixMatchInfoProducerName || undefined },
    { key: 'prompt-tokens' },
  ],
  advise: (given) => [
    ...(['prefixPluginType', 'prefixPluginName'] as const)
      .filter((field) => given[field] !== undefined)
      .map((field) => `${field} is deprecated and has no effect`),
    ...(given.primaryPort === 0 ? [] : ['primaryPort is deprecated: not needed with Istio >= 1.28.1']),
  ],
  references: ({ deciderPluginName }) => [
    { name: deciderPluginName, path: ['deciderPluginName'], kinds: ['decider'] as const },
  ],
  handlerAdvice: ({ decodeProfile, prefillProfile }, profiles) =>
    missingProfiles(profiles, decodeProfile, [[prefillProfile, true]]),
  profileHandler: ({ decodeProfile, prefillProfile, deciderPluginName, primaryPort: port }, context) => {
    const stage = { profile: prefillProfile, decide: context.decider(deciderPluginName) };
    const handle = (runs: ProfileRuns): Handled => {
      const primary = answerStage(runs, decodeProfile);
      if (primary.kind === 'rejected') return primary;
      const prefill = optionalStage(runs, stage, 'prefill', { decode: primary, earlier: primary });
      if (prefill?.kind === 'rejected') return prefill;
      return { kind: 'handled', primary, stages: stagesUsed(prefill, undefined), ...ranked(primary, port) };
    };
    return { handle };
  },
});

/** Names the picked rank in a header, and sends the request to the primary port of its host. */
export function ranked({ endpoints }: ProfilePick, port: number) {
  if (port === 0) return {};
  return { port, headers: new Map([[RANK_HEADER, endpoints[0]!.address]]) };
}
