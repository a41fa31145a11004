import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { schemaText } from '../../dist/tools/schema/schema.js';
import { pointsman } from '../serve/program.ts';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'pointsman-commands-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

const HEAD = 'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n';
const GOOD = `${HEAD}plugins:\n- type: queue-scorer\n`;
const IDLE = `${HEAD}plugins:\n- type: queue-scorer\n- type: inflight-load-producer\n`;
const WRONG = `${HEAD}plugins:\n- type: queu-scorer\n`;

describe('pointsman lint', () => {
  it('pointsman lint ends with 0 for a good file and shows its program', () => {
    const { status, stdout } = pointsman('lint', file('good.yaml', GOOD));
    expect(status).toBe(0);
    expect(stdout).toContain('0 errors, 0 warnings');
    expect(stdout).toMatch(
      /profile "default"\n {2}scorer +queue-scorer +weight 1 \(100 %\)\n {2}picker +max-score-picker/,
    );
    expect(stdout).toMatch(/profile handler +single-profile-handler\n/);
  });

  it.each([
    ['{mode: on}', 'on: a turn without room is held, 300 s at most'],
    ['{mode: on, maxWait: 0s}', 'on: a turn without room is held'],
    ['{mode: shadow}', 'shadow: counted, no turn is held'],
    ['{mode: off}', 'off: not counted'],
  ])('pointsman lint says what happens to turns of sessions: %s', (sessions, said) => {
    const section = `featureGates: [flowControl]\nflowControl: {defaultRequestTTL: 600s, sessions: ${sessions}}\n`;
    const { stdout } = pointsman('lint', file('sessions.yaml', GOOD + section));
    expect(/^sessions +(.*)$/m.exec(stdout)?.[1]).toBe(said);
  });

  it('the help of pointsman lint names the flags of every form, and each form has a help', () => {
    const { stdout } = pointsman('lint', '--help');
    for (const flag of ['--envoy', '--pools', '--picker-cluster', '--pool-name', '--max-pools', '--kubernetes']) {
      expect(stdout).toContain(flag);
    }
    expect(pointsman('lint', '--envoy', '--help')).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('Name the settings of an Envoy configuration'),
    });
    expect(pointsman('lint', '--pools', '--help').stdout).toContain('Check a pools file');
  });

  it('an option of a list of names says which there are', () => {
    expect(pointsman('demo', '--mode', 'foo').stderr).toBe(
      'pointsman: --mode: expected one of auto, always, got "foo"\n',
    );
  });

  it('pointsman lint ends with 0 for warnings, with 1 under --strict', () => {
    const path = file('idle.yaml', IDLE);
    expect(pointsman('lint', path)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('idle.yaml:5:3: warning: '),
    });
    expect(pointsman('lint', '--strict', path).status).toBe(1);
  });

  it('pointsman lint ends with 1 for errors and gives them as data', () => {
    const { status, stdout } = pointsman('lint', '--json', file('wrong.yaml', WRONG));
    expect(status).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      errors: [{ field: 'plugins[0].type', line: 4, column: 9 }],
      warnings: [],
    });
  });

  it('pointsman lint ends with 1 for a file that does not exist', () => {
    const { status, stdout } = pointsman('lint', join(folder, 'none.yaml'));
    expect({ status, stdout }).toEqual({ status: 1, stdout: expect.stringContaining('none.yaml') });
  });
});

const ENDPOINTS = `endpoints:
- {name: a, address: 10.0.0.1, port: 80, labels: {llm-d.ai/role: decode}}
- {name: b, address: 10.0.0.2, port: 80, labels: {llm-d.ai/role: decode}}
`;
const fromFile = (path: string, profile: string) => `${HEAD}plugins:
- {type: file-discovery, parameters: {path: ${path}}}
- type: queue-scorer
- type: prefill-filter
- type: decode-filter
schedulingProfiles:
- name: default
  plugins: [${profile}]
dataLayer: {discovery: {pluginRef: file-discovery}}
`;

describe('pointsman lint with endpoints', () => {
  const config = (name: string, profile: string, path = 'lint-endpoints.yaml') => {
    file('lint-endpoints.yaml', ENDPOINTS);
    return file(name, fromFile(path, profile));
  };

  it('lint reads the endpoints file beside the configuration, wherever it is called from', () => {
    const { status, stdout } = pointsman('lint', config('beside.yaml', '{pluginRef: decode-filter}'));
    expect(stdout).not.toContain('error:');
    expect(status).toBe(0);
  });

  it('lint finds a missing file of the configuration, and warns of an absolute one that is not on this machine', () => {
    const own = pointsman('lint', config('missing.yaml', '{pluginRef: queue-scorer}', 'nowhere.yaml'));
    expect(own.status).toBe(1);
    expect(own.stdout).toContain(
      `missing.yaml:4:45: error: plugins[0].parameters.path: there is no ${folder}/nowhere.yaml`,
    );
    const elsewhere = pointsman('lint', config('absolute.yaml', '{pluginRef: queue-scorer}', '/etc/no/endpoints.yaml'));
    expect(elsewhere.status).toBe(0);
    expect(elsewhere.stdout).toContain(
      'warning: plugins[0].parameters.path: there is no /etc/no/endpoints.yaml on this',
    );
  });

  it('lint finds filters that match no endpoint, and that nothing can be routed', () => {
    const { status, stdout } = pointsman('lint', config('prefill.yaml', '{pluginRef: prefill-filter}'));
    expect(status).toBe(1);
    expect(stdout).toContain('warning: filter "prefill-filter" of profile "default" matches no endpoint of');
    expect(stdout).toMatch(/^error: cannot route a chat request: .*"prefill-filter" left none/m);
  });

  it('lint finds negative weights', () => {
    const path = config('negative.yaml', '{pluginRef: queue-scorer, weight: -2}');
    expect(pointsman('lint', path).stdout).toMatch(
      /negative\.yaml:10:\d+: warning: schedulingProfiles\[0\]\.plugins\[0\]\.weight: -2 is negative: "queue-scorer" prefers/,
    );
  });

  it('lint tries the endpoints of --endpoints, and warns of an empty list', () => {
    const path = file('alone.yaml', GOOD);
    expect(pointsman('lint', path, '--endpoints', file('none.yaml', 'endpoints: []\n')).stdout).toContain(
      'none.yaml has no endpoints: every request waits for one or is refused',
    );
    expect(pointsman('lint', path, '--endpoints', join(folder, 'absent.yaml')).status).toBe(1);
  });
});

describe('pointsman explain', () => {
  it('pointsman explain prints a table or data for the request', () => {
    const config = file('good.yaml', GOOD);
    const eps = file(
      'eps.yaml',
      'endpoints:\n- {name: a, address: 10.0.0.1, port: 80}\n- {name: b, address: host-b, port: 81}\n',
    );
    const signals = file('signals.yaml', 'a: {waitingRequests: 1}\nb: {waitingRequests: 0}\n');
    const request = file('request.json', '{"model":"m","prompt":"hello"}');
    const argv = ['explain', config, '--request', request, '--endpoints', eps, '--signals', signals];
    expect(pointsman(...argv)).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/ {2}b +host-b:81 +1 +1 +picked/),
    });
    const { stdout } = pointsman(...argv, '--json', '--header', 'X-LLM-D-Inference-Fairness-Id=team');
    expect(JSON.parse(stdout)).toMatchObject({
      request: { path: '/v1/completions', model: 'm', fairnessId: 'team' },
      profiles: [{ endpoints: [{ rank: null }, { rank: 1 }].map(({ rank }) => (rank === null ? {} : { rank })) }],
    });
  });

  it('pointsman explain knows the plugins of --plugin, as lint does', () => {
    const plugin = fileURLToPath(new URL('../../examples/plugins/short-first-scorer.js', import.meta.url));
    const config = file('custom.yaml', `${HEAD}plugins:\n- {type: short-first-scorer, parameters: {promptBytes: 0}}\n`);
    const eps = file(
      'two.yaml',
      'endpoints:\n- {name: a, address: 10.0.0.1, port: 80}\n- {name: b, address: 10.0.0.2, port: 80}\n',
    );
    const signals = file('load.yaml', 'a: {inFlightRequests: 1, inFlightTokens: 8192}\n');
    const request = file('request.json', '{"model":"m","prompt":"hello"}');
    expect(pointsman('lint', config).status).toBe(1);
    expect(pointsman('lint', config, '--plugin', plugin).stdout).toMatch(/scorer +short-first-scorer +weight 1/);
    const argv = [
      'explain',
      config,
      '--plugin',
      plugin,
      '--request',
      request,
      '--endpoints',
      eps,
      '--signals',
      signals,
    ];
    expect(pointsman(...argv).stdout).toMatch(/ {2}a +10\.0\.0\.1:80 +0\.5 +0\.5\n {2}b +10\.0\.0\.2:80 +1 +1 +picked/);
  });

  it('pointsman explain without endpoints says which flag names them', () => {
    const argv = ['explain', file('good.yaml', GOOD), '--request', file('request.json', '{}')];
    expect(pointsman(...argv)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('--endpoints: name the file'),
    });
  });
});

describe('pointsman schema', () => {
  it('pointsman schema prints the JSON Schema', () => {
    expect(pointsman('schema')).toMatchObject({ status: 0, stdout: schemaText() });
  });
});

describe('pointsman serve --print-effective-config', () => {
  it('pointsman serve --print-effective-config prints the configuration with all defaults, which loads to itself, and ends', () => {
    const { status, stdout } = pointsman(
      'serve',
      `--config-file=${file('good.yaml', GOOD)}`,
      '--print-effective-config',
    );
    expect(status).toBe(0);
    expect(stdout).toContain('- type: max-score-picker\n');
    const again = pointsman('serve', `--config-file=${file('again.yaml', stdout)}`, '--print-effective-config');
    expect(again).toEqual({ status: 0, stdout, stderr: '' });
  });
});
