import { z } from 'zod';
import { CORE } from '../core/core-names.js';
import { once } from '../runtime/once.js';
import { ConfigurationDocument } from './document.js';
import { ConfigurationError } from './error.js';
import { validate, violations } from './validation.js';

/** Shape of a pools file; made where there is one. */
export const poolsFile = once(() => {
  const name = z
    .string()
    .regex(/^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/, 'must be 1 to 63 letters, digits, ".", "_" or "-"');
  const text = z.string().min(1).max(1024);
  const targetPort = z.int().min(1).max(65_535);

  const poolEntry = z.strictObject({
    name: name.describe('Value of the header x-pointsman-pool and of the metric label pool.'),
    configFile: text.optional().describe('EndpointPickerConfig of the pool; the default configuration when absent.'),
    configuration: z.record(z.string(), z.unknown()).optional().describe('EndpointPickerConfig itself.'),
    candidateFile: text
      .optional()
      .describe(
        'Configuration that decides in shadow beside that of the pool, as --candidate-config; the file is followed.',
      ),
    endpointsFile: text.optional().describe('Endpoints of the pool in a file.'),
    inferencePool: z
      .strictObject({
        name: text.describe('Name of the InferencePool.'),
        namespace: text.optional().describe('Namespace of the InferencePool; that of the picker when absent.'),
        group: z
          .enum(['inference.networking.k8s.io', 'inference.networking.x-k8s.io'])
          .optional()
          .describe('API group of the InferencePool; inference.networking.k8s.io when absent.'),
      })
      .optional()
      .describe('InferencePool that has the endpoints.'),
    selector: z
      .strictObject({
        labels: text.describe('Label selector, as of kubectl get --selector.'),
        targetPorts: z.array(targetPort).min(1).max(8).describe('Ports of each pod that are endpoints.'),
        namespace: text.optional().describe('Namespace of the pods; that of the picker when absent.'),
      })
      .optional()
      .describe('Labels of the pods that are the endpoints.'),
    models: z
      .array(text)
      .max(1000)
      .default([])
      .describe('Models whose requests are for this pool; one that ends with * stands for all that begin so.'),
    port: targetPort.optional().describe('ext_proc port whose requests are all for this pool.'),
    maxEndpoints: z
      .int()
      .min(1)
      .max(CORE.ENDPOINTS_MAX)
      .default(64)
      .describe('Endpoint slots of the pool, rounded up to a multiple of 64.'),
    indexBlocks: z
      .int()
      .min(1024)
      .max(2 ** 28)
      .default(262_144)
      .describe('Different blocks that the prefix index of the pool can hold.'),
  });

  return z.strictObject({
    default: name.optional().describe('Pool of the requests that nothing else says the pool of.'),
    pools: z.array(poolEntry).describe('The pools, in any order.'),
  });
});

/** Bound on the models of all pools that stand for all names with a beginning: a request is compared with each. */
const BEGINNINGS_MAX = 256;

/** One pool of a pools file. */
export type PoolEntry = z.output<ReturnType<typeof poolsFile>>['pools'][number];

/** The pools of `--pools`. */
export interface PoolsFile {
  readonly default: string | undefined;
  readonly pools: readonly PoolEntry[];
  readonly document: ConfigurationDocument;
}

/** Bounds and names of the process that a pools file is checked against. */
export interface PoolsFileLimits {
  /** Name of the process's own pool; undefined = it has none. */
  readonly own: string | undefined;
  /** Bound on the pools. */
  readonly max: number;
}

/**
 * Reads a pools file, YAML or JSON.
 * @throws ConfigurationError with one line: place, field, fault and remedy
 */
export function readPoolsFile(content: string, file: string, limits: PoolsFileLimits): PoolsFile {
  const document = ConfigurationDocument.ofFile(content, file);
  const read = validate(poolsFile(), document.data, document);
  for (const error of conflicts(document, read, limits)) throw error;
  return { default: read.default, pools: read.pools, document };
}

/** A pools file with all of its errors. */
export interface PoolsFileFindings {
  readonly errors: readonly ConfigurationError[];
  /** Undefined when the shape of the file is wrong. */
  readonly read: PoolsFile | undefined;
}

/** Looks through a pools file: all errors of its shape, else all errors between its entries. */
export function poolsFileFindings(content: string, file: string, limits: PoolsFileLimits): PoolsFileFindings {
  try {
    const document = ConfigurationDocument.ofFile(content, file);
    const parsed = poolsFile().safeParse(document.data);
    if (!parsed.success) return { errors: violations(poolsFile(), document.data, document), read: undefined };
    const read = { default: parsed.data.default, pools: parsed.data.pools, document };
    return { errors: [...conflicts(document, read, limits)], read };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return { errors: [error], read: undefined };
  }
}

function* conflicts(
  document: ConfigurationDocument,
  read: z.output<ReturnType<typeof poolsFile>>,
  { own, max }: PoolsFileLimits,
): Generator<ConfigurationError> {
  if (read.pools.length > max) {
    yield document.error(['pools'], `${read.pools.length} pools are above --max-pools=${max}: raise the flag`);
  }
  const names = new Set(own === undefined ? [] : [own]);
  const models = new Set<string>();
  const ports = new Set<number>();
  for (const [index, pool] of read.pools.entries()) {
    const at = (field: string) => ['pools', index, field];
    yield* repeated(document, names, pool.name, at('name'));
    for (const [i, model] of pool.models.entries()) yield* repeated(document, models, model, [...at('models'), i]);
    if (pool.port !== undefined) yield* repeated(document, ports, pool.port, at('port'));
    yield* doubleSources(document, pool, at);
  }
  const beginnings = [...models].filter((model) => model.endsWith('*')).length;
  if (beginnings > BEGINNINGS_MAX) {
    yield document.error(
      ['pools'],
      `${beginnings} models end with *, at most ${BEGINNINGS_MAX} may: name models in full`,
    );
  }
  if (read.default !== undefined && !names.has(read.default)) {
    yield document.error(['default'], `there is no pool ${JSON.stringify(read.default)}: name one of pools`);
  }
}

function* repeated<Value>(
  document: ConfigurationDocument,
  seen: Set<Value>,
  value: Value,
  path: readonly (string | number)[],
): Generator<ConfigurationError> {
  if (seen.has(value)) yield document.error(path, `${JSON.stringify(value)} belongs to another pool already`);
  seen.add(value);
}

function* doubleSources(
  document: ConfigurationDocument,
  pool: PoolEntry,
  at: (field: string) => (string | number)[],
): Generator<ConfigurationError> {
  const sources = (['endpointsFile', 'inferencePool', 'selector'] as const).filter(
    (field) => pool[field] !== undefined,
  );
  if (sources.length > 1) yield document.error(at(sources[1]!), `${sources.join(' and ')} exclude each other`);
  if (pool.configFile !== undefined && pool.configuration !== undefined) {
    yield document.error(at('configuration'), 'configFile and configuration exclude each other');
  }
}
