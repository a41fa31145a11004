import { join } from 'node:path';
import { type LoadOptions, loadDocument, runningWarnings } from '../config/load.js';
import { type PoolEntry, readPoolsFile } from '../config/pools-file.js';
import type { Logger } from '../operations/log.js';
import type { ProcessCluster } from '../picker/control/process-cluster.js';
import type { FollowedPools, PickerOptions, PoolDefinition } from '../picker/picker-options.js';
import type { EndpointSource } from '../pool/discovery/kubernetes/kubernetes.js';
import { candidateOf } from './candidate.js';
import type { ServeFlags } from './flags.js';
import { createCluster } from './kubernetes-cluster.js';
import { entryBounds, entryDocument, entryFiles, entryLoad, entrySource, sourceError } from './pool-entry.js';
import { replicaSettings } from './replica-settings.js';

/** Settings of the process for each of its pools. */
export interface PoolBase {
  readonly flags: ServeFlags;
  readonly load: LoadOptions;
  readonly log: Logger;
  /** Options of the process, which hold for a pool unless its entry replaces them. */
  readonly options: () => Omit<PickerOptions, 'pools'>;
}

/**
 * The file of `--pools`; undefined = the flag is not given.
 * @param own name of the process's own pool, if it has one
 */
export function followedPools(base: PoolBase, own: string | undefined): FollowedPools | undefined {
  const { flags } = base;
  const file = flags.pools;
  if (file === undefined) return undefined;
  return {
    file,
    watched: true,
    read: (text) => {
      const read = readPoolsFile(text, file, { own, max: flags.maxPools });
      return {
        defaultPool: read.default ?? own,
        pools: read.pools.map((entry, index) => definitionOf(base, entry, `${file}: pools[${index}]`)),
      };
    },
  };
}

function definitionOf(base: PoolBase, entry: PoolEntry, place: string): PoolDefinition {
  const { name, models, port, ...rest } = entry;
  return {
    route: { name, models },
    port,
    identity: JSON.stringify({ port, ...rest }),
    options: () => poolOptions(base, entry, place),
  };
}

async function poolOptions(base: PoolBase, entry: PoolEntry, place: string): Promise<PickerOptions> {
  const { flags, log } = base;
  const process = base.options();
  const files = entryFiles(entry, flags.pools!);
  const load = entryLoad(base.load, files);
  const configuration = loadDocument(entryDocument(entry, files, place), load);
  for (const warning of runningWarnings(configuration)) log.warn({ pool: entry.name }, warning);
  for (const note of configuration.notes) log.info({ pool: entry.name }, note);
  const problem = sourceError(entry, configuration, place);
  if (problem !== undefined) throw problem;
  const source = entrySource(entry);
  const poolLog = log.child({ pool: entry.name });
  const candidate = candidateOf(files.candidate, configuration, load, `${place}.candidateFile`);
  const { usage } = process.observe;
  return {
    ...process,
    hasOwnPool: true,
    pools: undefined,
    listen: { ...process.listen, socket: undefined },
    bounds: entryBounds(process.bounds, entry),
    decide: { ...process.decide, shadowEvery: candidate === undefined ? 0 : flags.candidateEvery },
    observe: {
      ...process.observe,
      poolName: entry.name,
      usage: usage && { ...usage, folder: join(usage.folder, entry.name) },
    },
    replica: replicaSettings(flags, configuration.replication, entry.name),
    configuration,
    candidate,
    followed: files.config === undefined ? undefined : { file: files.config, watched: flags.watchConfig, load },
    kubernetes: source && (await clusterOf(entry, source, process.cluster, poolLog)),
    stateDir: process.stateDir && join(process.stateDir, entry.name),
    warmUpMs: 0,
    idleWarmUpMs: 0,
    log: poolLog,
  };
}

function clusterOf(
  { name, inferencePool, selector }: PoolEntry,
  source: EndpointSource,
  cluster: ProcessCluster,
  log: Logger,
) {
  const namespace = inferencePool?.namespace ?? selector?.namespace;
  const settings = { namespace, source, poolName: name, election: false, reviews: false, podName: undefined };
  return createCluster(settings, cluster, log);
}
