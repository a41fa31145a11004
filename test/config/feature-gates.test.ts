import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import type { GateEntry } from '../../dist/src/config/feature-gates.js';
import { loadConfiguration } from '../../dist/src/config/load.js';

function gates(written: string, featureGates: readonly GateEntry[]): Readonly<Record<string, boolean>> {
  const text = `apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\nfeatureGates: [${written}]\n`;
  const options = { allowExperimental: false, registry: builtinPlugins, featureGates };
  return Object.fromEntries(loadConfiguration({ text }, options).gates);
}

describe('feature gates of the command line', () => {
  it('they go before those of the configuration', () => {
    expect(gates('flowControl', [{ name: 'flowControl', on: false }])).toMatchObject({ flowControl: false });
    expect(gates('flowControl=false', [{ name: 'flowControl', on: true }])).toMatchObject({ flowControl: true });
  });

  it('gates that they do not name stay as they are written', () => {
    const above = [{ name: 'haPopulateNonLeaderDatastore', on: false }];
    expect(gates('flowControl', above)).toEqual({ flowControl: true, haPopulateNonLeaderDatastore: false });
  });
});
