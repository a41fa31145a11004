import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { EnvoyFinding } from '../../dist/tools/envoy/finding.js';
import { startGateway } from '../../dist/tools/gateway/gateway.js';
import { movedSettings } from '../../dist/tools/preflight/envoy-admin.js';
import { type Verdict, verdictOf, verdictText } from '../../dist/tools/preflight/verdict.js';
import { PROGRAM, Setting, startPicker } from '../picker/serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Runs the preflight without blocking this process, which is picker and gateway. */
function preflight(
  ...argv: string[]
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, 'preflight', ...argv], (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

describe('pointsman preflight --gateway', () => {
  it('the embedded gateway passes every probe, and repeats a request once at most whose kept connection breaks', async () => {
    const setting = await Setting.create([], 'plugins:\n- {type: queue-scorer}\n');
    cleanups.push(() => setting.remove());
    const { picker, ports } = await startPicker(setting.flags);
    cleanups.push(() => picker.stop(0));
    const gateway = await startGateway({
      ...{ host: '127.0.0.1', port: 0, failOpen: false, endpoints: [] },
      picker: { host: '127.0.0.1', port: ports.grpcPort },
    });
    cleanups.push(() => gateway.stop());
    const { code, stdout, stderr } = await preflight(
      `--gateway=http://127.0.0.1:${gateway.port}`,
      `--picker=http://127.0.0.1:${ports.metricsPort}`,
      `--endpoints-file=${join(setting.folder, 'endpoints.yaml')}`,
      ...['--seconds=1', '--concurrency=30', '--json'],
    );
    expect(stderr).toMatch(/^test endpoint on 127\.0\.0\.1:\d+\n$/);
    const { probes } = JSON.parse(stdout) as { probes: readonly Verdict[] };
    const texts = new Map(probes.map(({ ok, probe, text }) => [probe, `${ok ? 'ok' : 'failed'}: ${text}`]));
    expect(texts.get('bodies')).toBe('ok: 1 KB to 4 MB arrive whole');
    expect(texts.get('30 at once')).toBe('ok: all run at the same time and are answered');
    expect(texts.get('failures')).toMatch(/^(ok: |failed: .* tries with a 503 1, with a reset 2$)/);
    expect(probes.filter(({ ok, probe }) => !ok && probe !== 'failures')).toEqual([]);
    expect(code).toBe(texts.get('failures')!.startsWith('ok') ? 0 : 1);
  });

  it('a port without a gateway fails the first probe at once, whatever --wait, and blames no setting', async () => {
    const { code, stdout } = await preflight('--gateway=http://127.0.0.1:9', '--wait=3600', '--json');
    expect(code).toBe(1);
    const { probes } = JSON.parse(stdout);
    const text = 'nothing listens there (ECONNREFUSED): start the gateway, or correct --gateway';
    expect(probes).toMatchObject([{ probe: 'way', ok: false, text, settings: [] }]);
  });

  it.each(['endpoints-file', 'token-file'])(
    'a --%s that is not there ends the command before a request',
    async (flag) => {
      const { code, stderr } = await preflight('--gateway=http://127.0.0.1:9', `--${flag}=/nowhere/file`);
      const text = `pointsman: --${flag}: /nowhere/file does not exist: create it or correct the path\n`;
      expect([code, stderr]).toEqual([1, text]);
    },
  );

  it('a --config-file that cannot be loaded ends the command before a request', async () => {
    const { code, stderr } = await preflight('--gateway=http://127.0.0.1:9', '--config-file=/nowhere/picker.yaml');
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^pointsman: --config-file: .*\/nowhere\/picker\.yaml.*\n$/),
    ]);
  });

  it('the help of the gateway part is shown without an address', async () => {
    const { code, stdout } = await preflight('--gateway', '--help');
    expect([code, stdout]).toEqual([0, expect.stringContaining('--admin <url>')]);
  });

  it('an admin port that does not answer ends the command with one line', async () => {
    const { code, stderr } = await preflight('--gateway=http://127.0.0.1:9', '--admin=http://127.0.0.1:9');
    expect(code).toBe(1);
    expect(stderr).toMatch(/pointsman: --admin: http:\/\/127\.0\.0\.1:9\/config_dump: [^\n]+\n$/);
  });
});

function found(setting: string, severity: EnvoyFinding['severity'] = 'error'): EnvoyFinding {
  return { setting, severity, path: ['a'], limits: 'too small', remedy: 'raise it' };
}

describe('the setting behind a failed probe', () => {
  const result = { probe: 'p', ok: false, text: 'bad', suspects: ['timeout', 'message_timeout'] };

  it('the setting is the one whose counter moved and which the dump finds too small', () => {
    const verdict = verdictOf(result, ['message_timeout'], [found('timeout'), found('message_timeout')]);
    expect(verdict.settings).toEqual(['message_timeout']);
  });

  it('the setting is a suspect that the dump finds too small when no counter moved', () => {
    expect(verdictOf(result, [], [found('max_requests'), found('timeout')]).settings).toEqual(['timeout']);
  });

  it('errors of the dump are named before warnings', () => {
    const both = [found('message_timeout', 'warning'), found('timeout')];
    expect(verdictOf(result, [], both).settings).toEqual(['timeout']);
  });

  it('every suspect is named without a dump, with the way to know more', () => {
    const verdict = verdictOf(result, [], []);
    expect(verdict.settings).toEqual(['timeout', 'message_timeout']);
    expect(verdictText([verdict], undefined)).toContain(
      'limited by one of timeout, message_timeout; --admin shows its value',
    );
  });

  it('a passed probe has none, whatever moved', () => {
    expect(verdictOf({ ...result, ok: true }, ['timeout'], [found('timeout')]).settings).toEqual([]);
  });

  it('counters that stay where they were name nothing', () => {
    const counters = new Map([
      ['cluster.ext_proc.upstream_rq_pending_overflow', 3],
      ['cluster.model_servers.upstream_rq_timeout', 1],
    ]);
    expect(movedSettings(counters, counters)).toEqual([]);
    expect(movedSettings(new Map([['cluster.ext_proc.upstream_rq_pending_overflow', 3]]), counters)).toEqual([
      'timeout',
    ]);
  });
});
