import type { CurrentSettings } from '../../contract/current-settings.js';
import type { StreamSettings } from '../../ingress/exchange.js';
import { createDialects, type ParserName } from '../../request/dialects.js';
import type { ReloadableSettings } from '../messages.js';

/** Configured settings of a shard, with the stream settings derived from them. */
export type ShardCurrent = ReloadableSettings & StreamSettings;

/** The settings of a shard that a reload of the configuration replaces as a whole. */
export class ReplaceableSettings implements CurrentSettings<ShardCurrent> {
  #current: ShardCurrent;

  constructor(settings: ReloadableSettings) {
    this.#current = withStreamSettings(settings);
  }

  get current(): ShardCurrent {
    return this.#current;
  }

  /** Takes effect for requests that begin later. Requests under way keep their dialect and their charges. */
  replace(settings: ReloadableSettings): void {
    this.#current = withStreamSettings(settings);
  }
}

function withStreamSettings(settings: ReloadableSettings): ShardCurrent {
  return {
    ...settings,
    dialects: createDialects(settings.parsers as readonly ParserName[]),
    evicts: settings.flowControl?.evicts ?? false,
  };
}
