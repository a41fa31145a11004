import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../../../bin/pointsman.js', import.meta.url));

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

function run(...flags: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [PROGRAM, ...flags]);
  stops.push(() => child.kill('SIGKILL'));
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, stdout, stderr })));
}

async function busyPort(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.push(() => server.close());
  return String((server.address() as { port: number }).port);
}

describe('pointsman demo', () => {
  test('--once ends with 0 after a load whose later turns find their prompts cached, spread over all servers', async () => {
    const { code, stdout } = await run('demo', '--once', '--port', '0', '--speedup', '20');
    const rows = [...stdout.matchAll(/^ +(\d) +24 +0 +\d+ ms +(\d+) % +(\d+) +(\d+) +(\d+) +(\d+)$/gm)];
    const cached = rows.map((row) => Number(row[2]));
    expect(rows.map((row) => row[1])).toEqual(['1', '2', '3']);
    expect(cached[1]).toBeGreaterThan(cached[0]! + 30);
    expect(cached[2]).toBeGreaterThan(90);
    for (const row of rows) expect(row.slice(3).every((count) => Number(count) > 0)).toBe(true);
    expect(code).toBe(0);
  });

  test('a busy port is one clear line and exit code 1', async () => {
    const port = await busyPort();
    const { code, stderr } = await run('demo', '--once', '--port', port);
    expect(stderr).toBe(`pointsman: port ${port} is in use; choose another with --port\n`);
    expect(code).toBe(1);
  });

  test('a picker that cannot be started is one clear line and exit code 1', async () => {
    const { code, stderr } = await run('demo', '--once', '--port', '0', '--picker', '/nowhere/picker');
    expect(stderr).toBe('pointsman: the picker did not start: spawn /nowhere/picker ENOENT\n');
    expect(code).toBe(1);
  });

  test('a flag with a bad value is refused', async () => {
    const { code, stderr } = await run('demo', '--servers', 'many');
    expect(stderr).toBe('pointsman: --servers: expected a number from 1 to 10000, got "many"\n');
    expect(code).toBe(1);
  });
});

describe('pointsman gateway', () => {
  test('a busy port is one clear line and exit code 1', async () => {
    const port = await busyPort();
    const { code, stderr } = await run('gateway', '--port', port);
    expect(stderr).toBe(`pointsman: port ${port} is in use; choose another with --port\n`);
    expect(code).toBe(1);
  });

  test('failing open without endpoints is refused', async () => {
    const { code, stderr } = await run('gateway', '--port', '0', '--fail-open');
    expect(stderr).toContain('--fail-open needs the model servers');
    expect(code).toBe(1);
  });
});
