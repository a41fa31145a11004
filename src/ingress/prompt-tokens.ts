import type { PromptTokens } from '../core/token-chain.js';
import type { RequestBody } from '../request/request-body.js';
import type { UnderstoodRequest } from '../request/understand.js';
import type { StreamServices } from './exchange.js';

/**
 * Asks for the tokens of a prompt.
 * @param preparation is begun when there is a source to ask, which its signal aborts
 * @returns undefined without a source to ask; a promise of undefined when the search found nothing
 */
export function askForTokens(
  { tokens, recorder }: StreamServices,
  body: RequestBody,
  { modelPlace }: UnderstoodRequest,
  preparation: { begin(): AbortSignal },
): Promise<PromptTokens | undefined> | undefined {
  const { prompt } = body.dialect;
  if (tokens === undefined || prompt === undefined || modelPlace === undefined || !tokens.reads(prompt)) {
    return undefined;
  }
  const signal = preparation.begin();
  return tokens.tokenise({ prompt, chunks: body.chunks, modelPlace }, signal).then((tokenised) => {
    if (!signal.aborted) recorder.tokenised(tokenised.outcome);
    return tokenised.outcome === 'tokenised' ? tokenised.tokens : undefined;
  });
}
