// The public face of a whole picker (`pointsman/picker`): run one, or one per pool, inside another program.
import { stringify } from 'yaml';
import { startShardThreads } from '../picker/shards/shard-threads.js';
import { createPicker } from './create-picker.js';
import { parseServeFlags } from './flags.js';

/** Options of an embedded picker. */
export interface EmbedOptions {
  /**
   * The EndpointPickerConfig, as a plain object or as YAML or JSON text; `apiVersion` and `kind` may be left out.
   * Absent: the flags name a file, or the default configuration holds.
   */
  readonly configuration?: Readonly<Record<string, unknown>> | string | undefined;
  /**
   * Modules that export `plugins`: URLs, paths from the working directory, or names of packages. Every shard loads them
   * on its own thread. A module may name itself (`import.meta.url`) if it starts its picker on the main thread only,
   * and does not await it at its top level: the picker waits for the module.
   */
  readonly plugins?: readonly (string | URL)[] | undefined;
  /** Further flags of `pointsman serve`, such as `--grpc-port=0`; a port of 0 takes a free one. */
  readonly flags?: readonly string[] | undefined;
  /** Called when no shard can be started any more. Left out, the error is thrown uncaught. */
  readonly failed?: ((error: Error) => void) | undefined;
}

/** A picker that serves. */
export interface EmbeddedPicker {
  readonly grpcPort: number;
  readonly healthPort: number;
  readonly metricsPort: number;
  /** Not ready at once; open streams may finish within `drainMs` (0), then everything is closed. */
  stop(drainMs?: number): Promise<void>;
}

/**
 * Starts a picker in this process. Several may run side by side, each with its own ports, shards and memory.
 * @throws {Error} one line that names the flag, or the field of the configuration and the remedy.
 */
export async function embedPicker(options: EmbedOptions = {}): Promise<EmbeddedPicker> {
  const flags = parseServeFlags([...configurationFlags(options), ...(options.flags ?? [])], process.env);
  if ('help' in flags) throw new Error('--help: an embedded picker has nobody to show it to');
  const failed = options.failed ?? thrownLater;
  const { picker } = await createPicker(flags, failed, startShardThreads(flags.shards));
  const ports = await picker.start();
  return { ...ports, stop: (drainMs = 0) => picker.stop(drainMs) };
}

function configurationFlags({ configuration, plugins = [] }: EmbedOptions): string[] {
  const modules = plugins.map((module) => `--plugin=${module instanceof URL ? module.href : module}`);
  if (configuration === undefined) return modules;
  const text = typeof configuration === 'string' ? configuration : stringify(configuration);
  return [...modules, `--config-text=${text}`];
}

function thrownLater(error: Error): void {
  setImmediate(() => {
    throw error;
  });
}
