import type { PromptTokens } from '../core/token-chain.js';
import type { RequestBody } from '../request/request-body.js';
import type { UnderstoodRequest } from '../request/understand.js';
import type { StreamServices } from './stream-services.js';

/**
 * Ask for the tokens of a prompt.
 * @param begin called when there is somebody to ask: the signal by which the search is given up
 * @returns undefined when nobody can tell; a promise of undefined when they could not be found
 */
export function askForTokens(
  { tokens, recorder }: StreamServices,
  body: RequestBody,
  { modelPlace }: UnderstoodRequest,
  begin: () => AbortSignal,
): Promise<PromptTokens | undefined> | undefined {
  const { prompt } = body.dialect;
  if (tokens === undefined || prompt === undefined || modelPlace === undefined || !tokens.reads(prompt)) {
    return undefined;
  }
  const signal = begin();
  return tokens.tokenise({ prompt, chunks: body.chunks, modelPlace }, signal).then((tokenised) => {
    if (!signal.aborted) recorder.tokenised(tokenised.outcome);
    return tokenised.outcome === 'tokenised' ? tokenised.tokens : undefined;
  });
}
