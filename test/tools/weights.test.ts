import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CostModel } from '../../dist/src/adaptation/cost-model.js';
import { encodeState } from '../../dist/src/adaptation/saved-state.js';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { loadConfiguration } from '../../dist/src/config/load.js';
import { measured, row, usual } from '../adaptation/samples.ts';

const program = fileURLToPath(new URL('../../bin/pointsman.js', import.meta.url));
let folder: string;
let stateFile: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pointsman-weights-'));
  stateFile = join(folder, 'learned.json');
  const model = new CostModel(usual.model);
  const random = row(1);
  for (let i = 0; i < 500; i++) {
    model.learn(measured({ baseMs: 40, prefillMs: 30, stepMs: 20, growthMs: 6, noise: 0.1 }, random));
  }
  writeFileSync(stateFile, encodeState(model.save(), usual.model, 0));
});
afterAll(() => rmSync(folder, { recursive: true }));

function weights(...argv: string[]) {
  return spawnSync(process.execPath, [program, 'weights', 'export', ...argv], { encoding: 'utf8' });
}

describe('pointsman weights export', () => {
  it('pointsman weights export prints a configuration that decides by what was learned and learns no more', () => {
    const configFile = join(folder, 'configuration.yaml');
    writeFileSync(
      configFile,
      'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n- type: queue-scorer\n- type: ' +
        'prefix-cache-scorer\n' +
        '- type: lora-affinity-scorer\nschedulingProfiles:\n- name: default\n  plugins:\n' +
        '  - {pluginRef: queue-scorer, weight: 2}\n  - {pluginRef: prefix-cache-scorer, weight: 3}\n' +
        `  - {pluginRef: lora-affinity-scorer}\nadaptation: {mode: auto, stateFile: ${JSON.stringify(stateFile)}}\n`,
    );
    const { status, stdout, stderr } = weights('--config-file', configFile);
    expect(stderr).toBe('');
    expect(status).toBe(0);
    const { scheduling, adaptation } = loadConfiguration(
      { text: stdout },
      { registry: builtinPlugins, allowExperimental: false },
    );
    const codes = scheduling.profiles[0]!.operations.map(({ code, weight }) => [code, weight]);
    expect(codes).toEqual([
      ['OP_SCORE_ADAPTER', 1],
      ['OP_SCORE_MARGINAL_COST', 5],
      ['OP_PICK_MAX_SCORE', 1],
    ]);
    expect(adaptation).toMatchObject({ mode: 'off', stateFile: undefined });
    expect(Math.abs(adaptation.model.prior.prefillMsPerKiloToken / 30 - 1)).toBeLessThan(0.1);
    expect(Math.abs(adaptation.model.prior.stepMs / 20 - 1)).toBeLessThan(0.15);
  });

  it('pointsman weights export replaces every plugin whose scorer learned costs replace', () => {
    const configFile = join(folder, 'precise.yaml');
    writeFileSync(
      configFile,
      'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n- type: precise-prefix-cache-scorer\n' +
        ('- type: precise-prefix-cache-producer\n- type: queue-scorer\nschedulingProfiles:\n- name: default\n  ' +
          'plugins:\n') +
        '  - {pluginRef: precise-prefix-cache-scorer, weight: 3}\n  - {pluginRef: queue-scorer, weight: 2}\n' +
        `adaptation: {mode: auto, stateFile: ${JSON.stringify(stateFile)}}\n`,
    );
    const { stdout } = weights('--config-file', configFile);
    const { scheduling } = loadConfiguration({ text: stdout }, { registry: builtinPlugins, allowExperimental: true });
    const scorers = scheduling.profiles[0]!.operations.filter(({ code }) => code.startsWith('OP_SCORE_'));
    expect(scorers.map(({ code, weight }) => [code, weight])).toEqual([['OP_SCORE_MARGINAL_COST', 5]]);
  });

  it.each([
    ['without a state file', [], 'pointsman: --state-file is needed'],
    [
      'with one that does not exist',
      ['--state-file', '/no/such/file'],
      'pointsman: the state file /no/such/file does not exist: create it or correct the path',
    ],
  ])('pointsman weights export ends with one line %s', (_what, argv, message) => {
    const { status, stderr } = weights(...argv);
    expect(status).toBe(1);
    expect(stderr).toContain(message);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });
});
