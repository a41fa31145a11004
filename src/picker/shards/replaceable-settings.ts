import type { CurrentSettings } from '../../core/current-settings.js';
import type { StreamSettings } from '../../ingress/exchange.js';
import { createDialects, type ParserName } from '../../request/dialects.js';
import type { ConfiguredSettings } from '../messages.js';

/** The settings of a shard from the configuration, with what its streams make of them. */
export type ShardCurrent = ConfiguredSettings & StreamSettings;

/** The settings of a shard that a reload of the configuration replaces as a whole. */
export class ReplaceableSettings implements CurrentSettings<ShardCurrent> {
  #current: ShardCurrent;

  constructor(settings: ConfiguredSettings) {
    this.#current = withStreamSettings(settings);
  }

  get current(): ShardCurrent {
    return this.#current;
  }

  /** Takes effect for requests that begin from now on: those under way hold their dialect and their charges. */
  replace(settings: ConfiguredSettings): void {
    this.#current = withStreamSettings(settings);
  }
}

function withStreamSettings(settings: ConfiguredSettings): ShardCurrent {
  return {
    ...settings,
    dialects: createDialects(settings.parsers as readonly ParserName[]),
    evicts: settings.flowControl?.evicts ?? false,
  };
}
