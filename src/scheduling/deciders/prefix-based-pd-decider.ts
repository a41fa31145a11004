import { z } from 'zod';
import { definePlugin } from '../plugin.js';

/** A number of tokens; the text of the error is llm-d-router's. */
function tokens(field: string) {
  return z
    .int()
    .refine((value) => value >= 0, { error: `${field} parameter of prefix disaggregation decider cannot be negative` })
    .default(0);
}

export const prefixBasedPdDecider = definePlugin({
  type: 'prefix-based-pd-decider',
  kinds: ['decider'],
  stability: 'Beta',
  doc:
    'Decides that the prefill runs on an endpoint of its own when enough of the prompt is not cached where it is ' +
    'decoded.',
  parameters: () =>
    z.strictObject({
      nonCachedTokens: tokens('nonCachedTokens').describe(
        'Prompt tokens that the decode endpoint does not hold, from which on a prefill endpoint is used. 0 = never.',
      ),
      promptTokens: tokens('promptTokens').describe(
        'Shorter prompts are never sent to a prefill endpoint. 0 = no bound.',
      ),
    }),
  consumes: () => [{ key: 'prefix-match' }, { key: 'prompt-tokens' }],
  advise: ({ nonCachedTokens }) =>
    nonCachedTokens === 0 ? ['nonCachedTokens is 0: no request is sent to a prefill endpoint'] : [],
  decider:
    ({ nonCachedTokens, promptTokens }) =>
    ({ runs, decode }) => {
      if (nonCachedTokens === 0 || decode === undefined || runs.promptTokens < promptTokens) return false;
      return runs.promptTokens - decode.matchedTokens >= nonCachedTokens;
    },
});
