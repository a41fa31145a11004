import { loadPluginModules } from '../../config/plugin-modules.js';
import { endpointColumns, hostColumn } from '../../core/host-columns.js';
import type { CoreInstance } from '../../core/memory.js';
import { poolClockMs } from '../../core/pool-clock.js';
import type { GatedScheduler, HostColumnFiller } from '../../scheduling/decision.js';
import type { EndpointDirectory } from '../../scheduling/endpoint-directory.js';
import { CustomScheduler } from '../../scheduling/host/custom-scheduler.js';
import type { PluginLog } from '../../scheduling/host/hooks.js';
import { HostPlugins, type HostServices } from '../../scheduling/host/host-plugins.js';
import { HostedScheduler } from '../../scheduling/host/hosted-scheduler.js';
import { PoolViews } from '../../scheduling/host/pool-views.js';
import type { PluginDefinition } from '../../scheduling/plugin.js';
import type { ProfileHandler } from '../../scheduling/profile-handler.js';
import { makeProfileHandler } from '../../scheduling/profile-handlers/make-profile-handler.js';
import type { HandlerSettings } from '../../scheduling/program.js';
import { schedulingPlugins } from '../../scheduling/registry.js';
import type { PluginSettings } from '../messages.js';
import { PluginChannels } from './plugin-channel.js';

export interface ShardPluginOptions {
  readonly core: CoreInstance;
  readonly directory: EndpointDirectory;
  readonly random: () => number;
  readonly log: PluginLog;
  /** Counts a failure of a plugin. */
  readonly failed: (plugin: string) => void;
  readonly count: HostServices['count'];
  readonly observe: HostServices['observe'];
  readonly prompts: HostServices['prompts'];
}

/** The definitions of all plugins that can run on a shard, by type. @throws ConfigurationError as loadPluginModules */
export async function shardDefinitions(modules: readonly string[]): Promise<ReadonlyMap<string, PluginDefinition>> {
  const definitions = [...schedulingPlugins, ...(await loadPluginModules(modules, schedulingPlugins))];
  return new Map(definitions.map((definition) => [definition.type, definition]));
}

/** The host plugins of one shard. */
export class ShardPlugins {
  readonly #settings: PluginSettings;
  readonly #definitions: ReadonlyMap<string, PluginDefinition>;
  readonly #channels: PluginChannels;
  readonly #services: HostServices;
  /** Undefined when the configuration has none. */
  readonly plugins: HostPlugins | undefined;
  readonly profileHandler: ProfileHandler;

  /** @throws with one line, when a plugin does not start. */
  constructor(
    settings: PluginSettings,
    handler: HandlerSettings,
    definitions: ReadonlyMap<string, PluginDefinition>,
    { core, directory, random, log, failed, count, observe, prompts }: ShardPluginOptions,
  ) {
    this.#settings = settings;
    this.#definitions = definitions;
    this.#channels = new PluginChannels(settings.group);
    this.#services = {
      views: new PoolViews(directory, endpointColumns(core)),
      column: (index) => hostColumn(core, index),
      clock: poolClockMs,
      now: () => performance.now(),
      random,
      log,
      failed,
      count,
      observe,
      prompts,
      share: (plugin, receive) => this.#channels.join(plugin, receive),
    };
    const plugins = new HostPlugins(settings.configured, definitions, this.#services);
    this.plugins = plugins.count > 0 ? plugins : undefined;
    this.profileHandler = makeProfileHandler(handler, definitions);
  }

  /** Fills the host plugins' columns for a profile; undefined when there is nothing to fill. */
  get fillColumns(): HostColumnFiller | undefined {
    const { plugins } = this;
    return plugins === undefined ? undefined : (input, profile) => plugins.fill(input, profile);
  }

  /** The scheduler of the shard: that of the profiles, or a plugin's, with the host plugins around it. */
  scheduler(profiles: GatedScheduler): GatedScheduler {
    const inner = this.#custom(profiles) ?? profiles;
    return this.plugins === undefined ? inner : new HostedScheduler(inner, this.plugins);
  }

  #custom(profiles: GatedScheduler): GatedScheduler | undefined {
    for (const settings of this.#settings.configured) {
      const definition = this.#definitions.get(settings.type);
      if (definition?.scheduler === undefined) continue;
      return new CustomScheduler(settings, definition, profiles, this.#services);
    }
    return undefined;
  }

  close(): void {
    this.plugins?.close();
    this.#channels.close();
  }
}
