import { BroadcastChannel } from 'node:worker_threads';
import { endpointColumns, hookColumn } from '../../core/hook-columns.js';
import type { CoreInstance } from '../../core/memory.js';
import { poolClockMs } from '../../runtime/pool-clock.js';
import type { GatedScheduler, HookColumnFiller } from '../../scheduling/decision.js';
import type { EndpointDirectory } from '../../scheduling/endpoint-directory.js';
import type { EndpointFactsTable } from '../../scheduling/endpoint-facts.js';
import { CustomScheduler } from '../../scheduling/hooks/custom-scheduler.js';
import { HookPlugins, HookScheduler, type HookServices } from '../../scheduling/hooks/hook-plugins.js';
import type { PluginLog } from '../../scheduling/hooks/hooks.js';
import { PoolViews } from '../../scheduling/hooks/pool-views.js';
import type { PluginDefinition } from '../../scheduling/plugin.js';
import type { ProfileHandler } from '../../scheduling/profile-handler.js';
import { makeProfileHandler } from '../../scheduling/profile-handlers/make-profile-handler.js';
import { SINGLE_PROFILE_HANDLER } from '../../scheduling/profile-handlers/single-profile.js';
import type { HandlerSettings } from '../../scheduling/program.js';
import type { PluginSettings, RestartSettings } from '../messages.js';

type Receive = (message: unknown) => void;

/**
 * Channels between the instances of a plugin on the shards of one picker.
 * @param group name that these shards share
 */
class PluginChannels {
  readonly #group: string;
  readonly #open: BroadcastChannel[] = [];

  constructor(group: string) {
    this.#group = group;
  }

  /** Joins the channel of a plugin. @returns a function that sends to all other shards */
  join(plugin: string, receive: Receive): (message: unknown) => void {
    const channel = new BroadcastChannel(`pointsman ${this.#group} ${plugin}`);
    channel.onmessage = (event) => receive((event as { data: unknown }).data);
    channel.unref();
    this.#open.push(channel);
    return (message) => channel.postMessage(message);
  }

  /** Leaves all channels. */
  close(): void {
    for (const channel of this.#open) channel.close();
    this.#open.length = 0;
  }
}

export interface ShardPluginOptions {
  readonly core: CoreInstance;
  readonly directory: EndpointDirectory;
  readonly facts: EndpointFactsTable;
  readonly random: () => number;
  readonly log: PluginLog;
  /** Counts a failure of a plugin. */
  readonly failed: (plugin: string) => void;
  readonly count: HookServices['count'];
  readonly observe: HookServices['observe'];
  readonly prompts: HookServices['prompts'];
}

/**
 * The definitions of all plugins that a pool can have on a shard, by type. Without plugins of others, without hook
 * plugins and with the default profile handler a shard needs none of them: they and their schemas are not loaded then.
 * @throws ConfigurationError as loadPluginModules
 */
export async function shardDefinitions({
  plugins: { modules, configured },
  handler,
}: Pick<RestartSettings, 'plugins' | 'handler'>): Promise<ReadonlyMap<string, PluginDefinition>> {
  const isPlain = configured.length === 0 && handler.type === SINGLE_PROFILE_HANDLER;
  if (isPlain && modules.length === 0) return new Map();
  const [{ loadPluginModules }, { schedulingPlugins }] = await Promise.all([
    import('../../config/plugin-modules.js'),
    import('../../scheduling/registry.js'),
  ]);
  const definitions = [...schedulingPlugins, ...(await loadPluginModules(modules, schedulingPlugins))];
  return new Map(definitions.map((definition) => [definition.type, definition]));
}

/** The hook plugins of one shard. */
export class ShardPlugins {
  readonly #settings: PluginSettings;
  readonly #definitions: ReadonlyMap<string, PluginDefinition>;
  readonly #channels: PluginChannels;
  readonly #services: HookServices;
  /** Undefined when the configuration has no hook plugins. */
  readonly plugins: HookPlugins | undefined;
  readonly profileHandler: ProfileHandler;

  /** @throws with one line, when a plugin does not start. */
  constructor(
    settings: PluginSettings,
    handler: HandlerSettings,
    definitions: ReadonlyMap<string, PluginDefinition>,
    { core, directory, facts, random, log, failed, count, observe, prompts }: ShardPluginOptions,
  ) {
    this.#settings = settings;
    this.#definitions = definitions;
    this.#channels = new PluginChannels(settings.group);
    this.#services = {
      views: new PoolViews(directory, endpointColumns(core), facts),
      column: (index) => hookColumn(core, index),
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
    const plugins = new HookPlugins(settings.configured, definitions, this.#services);
    this.plugins = plugins.count > 0 ? plugins : undefined;
    this.profileHandler = makeProfileHandler(handler, definitions);
  }

  /** Fills the hook plugins' columns for a profile; undefined when no plugin has a column. */
  get fillColumns(): HookColumnFiller | undefined {
    const { plugins } = this;
    return plugins === undefined ? undefined : (input, profile) => plugins.fill(input, profile);
  }

  /** The scheduler of the shard: the profiles or a plugin's scheduler, with the hook plugins around it. */
  scheduler(profiles: GatedScheduler): GatedScheduler {
    const inner = this.#custom(profiles) ?? profiles;
    return this.plugins === undefined ? inner : new HookScheduler(inner, this.plugins);
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
