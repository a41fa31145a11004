import type { PoolState } from '../../src/contract/endpoint.js';
import { type EndpointsFile, readEndpointsFile } from '../../src/pool/discovery/endpoints-file.js';
import { readUtf8Text, TEXT_BYTES_MAX } from '../../src/runtime/plain-file.js';
import { readProblem } from '../../src/runtime/read-problem.js';

/** The pool that an endpoints file describes. */
export interface PoolFile {
  readonly pool: PoolState;
  /** One line for each entry that is left out. */
  readonly problems: readonly string[];
}

/**
 * Reads an endpoints file. Host names stay as they are: nothing is looked up.
 * @throws {Error} when it cannot be read
 */
export function readPoolFile(path: string): PoolFile {
  const file = readEndpointsFile(textOf(path), path);
  return { pool: poolState(file), problems: file.problems };
}

function textOf(path: string): string {
  try {
    return readUtf8Text(path, TEXT_BYTES_MAX);
  } catch (error) {
    throw new Error(`${path}: ${readProblem(error)}`);
  }
}

function poolState(file: EndpointsFile): PoolState {
  const endpoints = file.endpoints.map(({ id, name, namespace, host, port, labels }) => {
    const address = 'ip' in host ? host.ip : host.hostName;
    return { id, name, namespace, address, port, labels };
  });
  return { endpoints, objectives: file.objectives, rewrites: file.rewrites };
}
