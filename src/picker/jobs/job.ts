// What job threads run: short tasks that would hold the control thread's loop. Piscina calls them by name.
import { type EndpointsFile, readEndpointsFile } from '../../pool/discovery/endpoints-file.js';
import type { TokeniseTask } from '../../request/tokens/local-source.js';

/** Cut a prompt into tokens; the library is loaded with the first one. */
export async function tokenise(task: TokeniseTask): Promise<Uint32Array> {
  const { tokeniseBody } = await import('../../request/tokens/tokenise-job.js');
  return tokeniseBody(task);
}

/** Read and check a large endpoints file. */
export function readEndpoints({ text, path }: { readonly text: string; readonly path: string }): EndpointsFile {
  return readEndpointsFile(text, path);
}
