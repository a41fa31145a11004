import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { loadConfiguration } from '../../dist/src/config/load.js';
import { shareOf } from '../../dist/src/contract/bounds.js';
import { shardSettings } from '../../dist/src/picker/control/shard-settings.js';
import type { PickerOptions } from '../../dist/src/picker/picker-options.js';
import { BOUNDS, DECIDE, OBSERVE } from '../serve/default-sections.ts';

const configuration = loadConfiguration({}, { allowExperimental: false, registry: builtinPlugins });
const options = { bounds: BOUNDS, decide: DECIDE, observe: OBSERVE, configuration, pluginModules: [] };

describe('settings of a shard', () => {
  it('the sections of the flags reach a shard as the objects that they are', () => {
    const settings = shardSettings(options as unknown as PickerOptions);
    expect(settings.bounds).toBe(BOUNDS);
    expect(settings.decide).toBe(DECIDE);
    expect(settings.observe).toBe(OBSERVE);
  });

  it('the settings of a shard can be sent to its thread', () => {
    const settings = shardSettings(options as unknown as PickerOptions);
    expect(structuredClone(settings)).toEqual(settings);
  });

  it.each([
    [10_000, 3, 3_334],
    [2, 4, 1],
  ])('the share of a shard in a bound of %i is rounded up for %i shards', (bound, shards, share) => {
    expect(shareOf(bound, { shards })).toBe(share);
  });
});
