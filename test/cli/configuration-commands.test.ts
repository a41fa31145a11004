import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { schemaText } from '../../dist/cli/schema.js';
import { pointsman } from './program.ts';

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
