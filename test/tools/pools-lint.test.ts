import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pointsman } from '../serve/program.ts';

const HEAD = 'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n';
const ENDPOINTS = 'endpoints:\n- {name: a, address: 10.0.0.1, port: "8000"}\n';
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pointsman-pools-lint-'));
  file('good.yaml', `${HEAD}plugins:\n- type: queue-scorer\n`);
  file('wrong.yaml', `${HEAD}plugins:\n- type: queu-scorer\n`);
  file('endpoints.yaml', ENDPOINTS);
});
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

function lint(pools: string, ...flags: string[]) {
  const { status, stdout, stderr } = pointsman('lint', '--pools', file('pools.yaml', pools), ...flags);
  const lines = stdout.split('\n').map((line) => line.replaceAll(`${folder}/`, ''));
  return { status, stderr, lines, errors: lines.filter((line) => line.includes('error: ')) };
}

describe('pointsman lint --pools', () => {
  it('lint --pools ends with 0 for a good file and shows the program of each pool', () => {
    const { status, lines } = lint(`pools:
- {name: chat, configFile: good.yaml, endpointsFile: endpoints.yaml, models: [m]}
- {name: code, selector: {labels: app=code, targetPorts: [8000]}, configuration: {plugins: [{type: queue-scorer}]}}
`);
    expect(lines.filter((line) => /^(pool |\d+ pools)/.test(line))).toEqual([
      '2 pools: 0 errors, 0 warnings',
      'pool chat',
      'pool code',
    ]);
    expect(status).toBe(0);
  });

  it('lint --pools names every unknown field with its place', () => {
    const { status, errors } = lint('defalt: a\npools:\n- {name: a, endpointFile: x}\n');
    expect(errors).toEqual([
      expect.stringMatching(/^pools\.yaml:3:\d+: error: pools\[0\]\.endpointFile: unknown field "endpointFile"/),
      expect.stringMatching(/^pools\.yaml:1:1: error: defalt: unknown field "defalt"/),
    ]);
    expect(status).toBe(1);
  });

  it('lint --pools names all names, models and ports that two pools claim', () => {
    const { status, errors } = lint(`pools:
- {name: a, endpointsFile: endpoints.yaml, models: [m], port: 9012}
- {name: a, endpointsFile: endpoints.yaml, models: [m], port: 9012}
`);
    expect(errors.map((line) => line.replace(/^.*error: /, ''))).toEqual([
      'pools[1].name: "a" belongs to another pool already',
      'pools[1].models[0]: "m" belongs to another pool already',
      'pools[1].port: 9012 belongs to another pool already',
    ]);
    expect(status).toBe(1);
  });

  it('lint --pools takes the name of the own pool as a default and as taken', () => {
    const pools = 'default: own\npools:\n- {name: a, endpointsFile: endpoints.yaml}\n';
    expect(lint(pools).errors).toEqual([expect.stringContaining('default: there is no pool "own"')]);
    expect(lint(pools, '--pool-name', 'own').errors).toEqual([]);
    expect(lint(pools.replace('name: a', 'name: own'), '--pool-name=own').errors).toEqual([
      expect.stringContaining('pools[0].name: "own" belongs to another pool already'),
    ]);
  });

  it('lint --pools names missing files at the entry that names them', () => {
    const { errors } = lint('pools:\n- {name: a, configFile: none.yaml, endpointsFile: nowhere.yaml}\n');
    expect(errors).toEqual([
      expect.stringMatching(/^pools\.yaml:2:\d+: error: pools\[0\]\.configFile: there is no none\.yaml/),
      expect.stringMatching(/^pools\.yaml:2:\d+: error: pools\[0\]\.endpointsFile: there is no nowhere\.yaml/),
    ]);
  });

  it('lint --pools lints a configuration that two pools name once, with its path', () => {
    const { errors } = lint(`pools:
- {name: a, configFile: wrong.yaml, endpointsFile: endpoints.yaml}
- {name: b, configFile: wrong.yaml, endpointsFile: endpoints.yaml}
`);
    expect(errors).toEqual([
      expect.stringMatching(/^wrong\.yaml:4:9: error: plugins\[0\]\.type: unknown plugin type "queu-scorer"/),
    ]);
  });

  it('lint --pools names the entry of a configuration that stands in the file', () => {
    const { errors } = lint(
      'pools:\n- {name: a, endpointsFile: endpoints.yaml, configuration: {plugins: [{type: queu-scorer}]}}\n',
    );
    expect(errors).toEqual([expect.stringContaining('pools[0].configuration:')]);
  });

  it('lint --pools names a pool without a source of endpoints, and one with labels that cannot be read', () => {
    const { errors } = lint(`pools:
- {name: a}
- {name: b, selector: {labels: "app in (", targetPorts: [8000]}}
`);
    expect(errors).toEqual([
      expect.stringContaining('pools[0]: no source of endpoints'),
      expect.stringMatching(/^pools\.yaml:3:\d+: error: pools\[1\]\.selector\.labels: /),
    ]);
  });

  it('lint --pools bounds the pools by --max-pools', () => {
    const { errors } = lint(
      'pools:\n- {name: a, endpointsFile: endpoints.yaml}\n- {name: b, endpointsFile: endpoints.yaml}\n',
      '--max-pools=1',
    );
    expect(errors).toEqual([expect.stringContaining('2 pools are above --max-pools=1')]);
  });

  it('lint --pools gives findings and effective configurations as data', () => {
    const pools = file('data.yaml', 'pools:\n- {name: a, configFile: good.yaml, endpointsFile: endpoints.yaml}\n');
    const { stdout } = pointsman('lint', '--json', '--pools', pools);
    expect(JSON.parse(stdout)).toMatchObject({
      errors: [],
      pools: [{ name: 'a', effective: { kind: 'EndpointPickerConfig' } }],
    });
  });

  it('lint without --pools says which flag a pools file has', () => {
    const { status, stdout } = pointsman('lint', file('alone.yaml', 'pools: []\n'));
    expect(stdout).toContain('this is a pools file, no configuration: give it as --pools');
    expect(status).toBe(1);
  });

  it('the JSON Schema of pools files is printed by schema --pools', () => {
    const { stdout } = pointsman('schema', '--pools');
    const { title, properties } = JSON.parse(stdout) as { title: string; properties: Record<string, unknown> };
    expect({ title, fields: Object.keys(properties) }).toEqual({ title: 'Pools', fields: ['default', 'pools'] });
  });
});
