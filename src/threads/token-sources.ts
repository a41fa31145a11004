import { RenderSource } from '../request/tokens/render-source.js';
import type { TokenSource } from '../request/tokens/token-source.js';
import type { EndpointDirectory } from '../scheduling/endpoint-directory.js';
import type { TokenSettings } from '../scheduling/types.js';

/** Where a shard gets the tokens of prompts from; undefined = they are estimated. */
export function createTokenSource(
  settings: TokenSettings | undefined,
  directory: EndpointDirectory,
): TokenSource | undefined {
  if (settings === undefined) return undefined;
  return new RenderSource(settings, endpointsInTurn(directory), () => performance.now());
}

/** Base URLs of the endpoints, one after the other. */
function endpointsInTurn(directory: EndpointDirectory): () => string | undefined {
  let turn = 0;
  return () => {
    const slots = directory.slots();
    const endpoint = slots.length === 0 ? undefined : directory.at(slots[turn++ % slots.length]!);
    return endpoint && `http://${endpoint.address}`;
  };
}
