// What job threads run: short tasks that would hold the control thread's loop. Piscina calls them by name.
import { type EndpointsFile, readEndpointsFile } from '../pool/discovery/endpoints-file.js';

/** Read and check a large endpoints file. */
export function readEndpoints({ text, path }: { readonly text: string; readonly path: string }): EndpointsFile {
  return readEndpointsFile(text, path);
}
