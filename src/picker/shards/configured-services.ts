import { createDialects, type Dialects, type ParserName } from '../../request/dialects.js';
import type { ConfiguredSettings } from '../messages.js';

/** What a shard has from the configuration, replaced as a whole when it is loaded again. */
export class ConfiguredServices {
  settings: ConfiguredSettings;
  dialects: Dialects;

  constructor(settings: ConfiguredSettings) {
    this.settings = settings;
    this.dialects = dialectsOf(settings);
  }

  /** Takes effect for requests that begin from now on: those under way hold their dialect and their charges. */
  replace(settings: ConfiguredSettings): void {
    this.settings = settings;
    this.dialects = dialectsOf(settings);
  }
}

function dialectsOf({ parsers }: ConfiguredSettings): Dialects {
  return createDialects(parsers as readonly ParserName[]);
}
