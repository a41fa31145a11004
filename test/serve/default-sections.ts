// Settings by section as `pointsman serve` has them without flags.
import { boundsOf } from '../../dist/src/serve/bounds-flags.js';
import { decideSettings } from '../../dist/src/serve/decide-flags.js';
import { parseServeFlags, type ServeFlags } from '../../dist/src/serve/flags.js';
import { observeSettings } from '../../dist/src/serve/observe-flags.js';

const flags = parseServeFlags([], {}) as ServeFlags;

export const BOUNDS = boundsOf(flags);
export const DECIDE = decideSettings(flags, 0);
export const OBSERVE = observeSettings(flags, 'default', undefined);
