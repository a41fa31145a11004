// Tasks of the job threads: short work that would block the control thread's event loop. Named as Piscina calls them.
import { type EndpointsFile, readEndpointsFile } from '../../pool/discovery/endpoints-file.js';
import type { TokenisedTask, TokeniseTask } from '../../request/tokens/local-source.js';

/** Turns a prompt into tokens. The first task loads the library. */
export async function tokenise(task: TokeniseTask): Promise<TokenisedTask> {
  const { tokeniseBody } = await import('../../request/tokens/tokenise-job.js');
  return tokeniseBody(task);
}

/** Reads and checks a large endpoints file. */
export function readEndpoints({ text, path }: { readonly text: string; readonly path: string }): EndpointsFile {
  return readEndpointsFile(text, path);
}
