import { dirname, resolve } from 'node:path';
import { ConfigurationDocument } from '../config/document.js';
import { ConfigurationError } from '../config/error.js';
import { type LoadedConfiguration, type LoadOptions, readDocument } from '../config/load.js';
import type { PoolEntry } from '../config/pools-file.js';
import type { Bounds } from '../contract/bounds.js';
import type { EndpointSource } from '../pool/discovery/kubernetes/kubernetes.js';
import { selectedLabels } from './flag-values.js';

/**
 * Charges for each endpoint slot: more requests than an engine runs at once (vLLM's default is 256 of them on large
 * GPUs).
 */
const CHARGES_PER_ENDPOINT = 64;
const CHARGES_MIN = 1_024;
const CHARGES_MAX = 16_384;

/** The paths of an entry of a pools file, from the folder of that file. */
export interface EntryFiles {
  readonly folder: string;
  readonly config: string | undefined;
  readonly candidate: string | undefined;
  readonly endpoints: string | undefined;
}

/** @param poolsFile path of the pools file */
export function entryFiles({ configFile, candidateFile, endpointsFile }: PoolEntry, poolsFile: string): EntryFiles {
  const folder = dirname(resolve(poolsFile));
  const absolute = (path: string | undefined) => (path === undefined ? undefined : resolve(folder, path));
  return {
    folder,
    config: absolute(configFile),
    candidate: absolute(candidateFile),
    endpoints: absolute(endpointsFile),
  };
}

/**
 * The configuration of an entry: its own, that of its file, or the default one.
 * @param place of the entry, for messages
 * @throws ConfigurationError
 */
export function entryDocument(
  { configuration }: PoolEntry,
  { config, folder }: EntryFiles,
  place: string,
): ConfigurationDocument {
  if (configuration === undefined) return readDocument({ file: config });
  const text = JSON.stringify({ apiVersion: 'llm-d.ai/v1alpha1', kind: 'EndpointPickerConfig', ...configuration });
  return new ConfigurationDocument(text, `${place}.configuration`, folder);
}

/** Options for loading the configuration of an entry. */
export function entryLoad<Options extends LoadOptions>(options: Options, { endpoints }: EntryFiles): Options {
  return { ...options, endpointsFile: endpoints };
}

/** Kubernetes objects that name the endpoints; undefined = the endpoints come from elsewhere. */
export function entrySource({ inferencePool, selector }: PoolEntry): EndpointSource | undefined {
  if (selector !== undefined) {
    return { kind: 'selector', labels: selectedLabels(selector.labels), ports: selector.targetPorts };
  }
  if (inferencePool === undefined) return undefined;
  const { name, group = 'inference.networking.k8s.io' } = inferencePool;
  return { kind: 'pool', name, group };
}

/** Error of an entry that has no source of endpoints, or two; undefined = it has one. */
export function sourceError(
  { inferencePool, selector }: PoolEntry,
  { discovery }: LoadedConfiguration,
  place: string,
): ConfigurationError | undefined {
  const inCluster = inferencePool !== undefined || selector !== undefined;
  if (inCluster === (discovery === undefined)) return undefined;
  const wrong = inCluster ? 'two sources of endpoints' : 'no source of endpoints';
  return new ConfigurationError(
    `${place}: ${wrong}: give one of endpointsFile, inferencePool, selector, or a discovery plugin in ` +
      'dataLayer.discovery ' +
      'of the configuration',
  );
}

/** The bounds of the process, with those of an entry in their place. */
export function entryBounds(bounds: Bounds, { maxEndpoints, indexBlocks }: PoolEntry): Bounds {
  const maxCharges = Math.min(CHARGES_MAX, Math.max(CHARGES_MIN, CHARGES_PER_ENDPOINT * maxEndpoints));
  return { ...bounds, maxEndpoints, indexBlocks, maxCharges };
}
