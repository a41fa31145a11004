import type { TokenSettings } from '../../contract/token-settings.js';
import type { TokenSource } from '../../request/tokens/token-source.js';
import type { EndpointDirectory } from '../../scheduling/endpoint-directory.js';

/**
 * Token source of a shard's prompts; undefined = tokens are estimated, and nothing of it is loaded.
 * @throws with one line when the tokeniser's files cannot be used
 */
export async function createTokenSource(
  settings: TokenSettings | undefined,
  directory: EndpointDirectory,
): Promise<TokenSource | undefined> {
  if (settings === undefined) return undefined;
  if (settings.kind === 'render') {
    const { RenderSource } = await import('../../request/tokens/render-source.js');
    return new RenderSource(settings, endpointsInTurn(directory), () => performance.now());
  }
  const [{ LocalSource }, { startTokeniserThreads }] = await Promise.all([
    import('../../request/tokens/local-source.js'),
    import('../jobs/job-pool.js'),
  ]);
  const source = new LocalSource(settings, startTokeniserThreads(settings.threads));
  await source.prepare();
  return source;
}

/** Base URLs of the endpoints in turn. */
function endpointsInTurn(directory: EndpointDirectory): () => string | undefined {
  let turn = 0;
  return () => {
    const slots = directory.slots();
    const endpoint = slots.length === 0 ? undefined : directory.at(slots[turn++ % slots.length]!);
    return endpoint && `http://${endpoint.address}`;
  };
}
