import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { missingProducers } from '../../dist/src/scheduling/data-graph.js';
import { type DataNeed, definePlugin, type PluginDefinition } from '../../dist/src/scheduling/plugin.js';

function define(type: string, options: Partial<PluginDefinition> = {}, needs: readonly DataNeed[] = []) {
  return definePlugin({
    type,
    kinds: ['producer'],
    stability: 'Beta',
    doc: '',
    parameters: z.strictObject({}),
    ...options,
    consumes: () => needs,
  });
}

const configured = (definition: PluginDefinition, name = definition.type) => ({ name, definition, parameters: {} });

const tokens = define('tokens', { produces: ['prompt-tokens'], defaultProducerOf: ['prompt-tokens'] });
const matches = define('matches', { produces: ['prefix-match'], defaultProducerOf: ['prefix-match'] }, [
  { key: 'prompt-tokens' },
]);
const scorer = define('scorer', {}, [{ key: 'prefix-match', producer: 'matches' }]);
const registry = [scorer, matches, tokens];

describe('missing producers', () => {
  it('missing producers are found with what they need themselves', () => {
    expect(missingProducers([configured(scorer)], registry)).toEqual([matches, tokens]);
  });

  it('missing producers are none when everything is there', () => {
    expect(missingProducers([configured(scorer), configured(matches), configured(tokens, 't')], registry)).toEqual([]);
  });

  it('missing producers are added once for many consumers', () => {
    expect(missingProducers([configured(scorer), configured(scorer, 'b')], registry)).toEqual([matches, tokens]);
  });

  it('missing producers are added beside a producer of another name', () => {
    expect(missingProducers([configured(scorer), configured(matches, 'other')], registry)).toEqual([matches, tokens]);
  });

  it('missing producers are an error when no type produces the fact by default', () => {
    expect(() => missingProducers([configured(scorer)], [scorer, tokens])).toThrow(
      'plugin "scorer" takes prefix-match from "matches", which is not defined in plugins',
    );
    expect(() => missingProducers([configured(matches)], [matches])).toThrow(
      'plugin "matches" needs prompt-tokens, which no plugin produces',
    );
  });

  it('missing producers are an error when the named plugin produces something else', () => {
    expect(() => missingProducers([configured(scorer), configured(tokens, 'matches')], registry)).toThrow(
      'plugin "scorer" takes prefix-match from "matches", but a tokens does not produce it',
    );
  });
});
