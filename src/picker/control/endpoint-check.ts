import { get } from 'node:http';
import type { Endpoint } from '../../contract/endpoint.js';

/**
 * What a look at a model server finds. answers: it is there · unwell: its health page says 5xx · refused: nothing
 * listens · silent: no answer in time, or no way to the host
 */
export type EndpointFound = 'answers' | 'unwell' | 'refused' | 'silent';

/** Longest wait for an answer to a check. */
const CHECK_MS = 1_000;

/** Errors without any answer of a server. */
const NO_ANSWERS: Readonly<Record<string, EndpointFound>> = {
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'silent',
  EHOSTDOWN: 'silent',
  ENETUNREACH: 'silent',
  ETIMEDOUT: 'silent',
  ABORT_ERR: 'silent',
};

/**
 * Looks at a model server. GET /health reports whether vLLM, SGLang and TensorRT-LLM are well. A server without that
 * page, or without plain HTTP, answers with any first byte.
 */
export function checkEndpoint({ address, port }: Pick<Endpoint, 'address' | 'port'>): Promise<EndpointFound> {
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(CHECK_MS);
    const request = get({ host: address, port, path: '/health', agent: false, signal }, (response) => {
      response.resume();
      resolve((response.statusCode ?? 500) < 500 ? 'answers' : 'unwell');
      request.destroy();
    });
    request.on('error', ({ code = '' }: NodeJS.ErrnoException) => resolve(NO_ANSWERS[code] ?? 'answers'));
  });
}

/** Whether a model server takes connections and is well. */
export async function takesConnections(endpoint: Pick<Endpoint, 'address' | 'port'>): Promise<boolean> {
  return (await checkEndpoint(endpoint)) === 'answers';
}
