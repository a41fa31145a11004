import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { freePort } from '../../dist/src/serve/port.js';
import { missingLine } from '../documents/blocks.ts';
import { eventually } from './gateway/client.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const page = readFileSync(join(root, 'docs/tutorial.md'), 'utf8');

interface Step {
  readonly command: string;
  readonly stays: boolean;
  /** Lines of the output in their order; undefined = nothing is said of it. */
  readonly shown: string | undefined;
}

/** The commands of the page with what it shows behind them. Those before the build are those of the README. */
function steps(): Step[] {
  const blocks = [...page.matchAll(/^```(sh background|sh|text)\n(.*?)^```$/gms)].map(([, kind, text]) => ({
    kind,
    text: text!,
  }));
  return blocks.flatMap(({ kind, text }, index) => {
    if (kind === 'text' || text.includes('npm ci')) return [];
    const next = blocks[index + 1];
    return [{ command: text, stays: kind === 'sh background', shown: next?.kind === 'text' ? next.text : undefined }];
  });
}

const linesOf = (shown: string) => shown.split('\n').filter((line) => line.replace('…', '').trim() !== '');

describe('docs/tutorial.md', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-tutorial-'));
  for (const name of ['bin', 'dist', 'examples', 'node_modules', 'package.json']) {
    symlinkSync(join(root, name), join(folder, name));
  }
  const running: ChildProcess[] = [];
  afterAll(async () => {
    for (const child of running.reverse()) {
      const ended = new Promise((resolve) => child.once('close', resolve));
      // The whole group: the shell and what it runs.
      process.kill(-child.pid!, 'SIGKILL');
      await ended;
    }
    rmSync(folder, { recursive: true });
  });

  const environment = {
    ...process.env,
    npm_config_cache: join(folder, '.npm'),
    PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}`,
  };

  function shell(command: string): { child: ChildProcess; output: () => string } {
    const child = spawn('bash', ['-c', command], { cwd: folder, env: environment, detached: true });
    let text = '';
    child.stdout!.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    child.stderr!.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    return { child, output: () => text };
  }

  it('the commands of docs/tutorial.md do what the page shows', async () => {
    const ports = new Map<string, string>();
    for (const port of ['8081', '8082', '8083', '9002', '9003', '9090', '9091'])
      ports.set(port, String(await freePort()));
    const put = (text: string) => [...ports].reduce((given, [from, to]) => given.replaceAll(from, to), text);
    const servers: string[] = [];
    for (const { command, stays, shown } of steps()) {
      // The page leaves some ports at their defaults, which another test may hold.
      const given = put(command)
        .replace('demo --', `demo --port=${ports.get('8081')} --`)
        .replace('serve ', `serve --grpc-port=${ports.get('9002')} --grpc-health-port=${ports.get('9003')} `)
        .replace('gateway --port', `gateway --picker 127.0.0.1:${ports.get('9002')} --port`);
      const { child, output } = shell(given);
      const ended = new Promise((resolve) => child.once('close', resolve));
      if (stays) running.push(child);
      else await ended;
      const first = servers.length === 0 ? shown?.replace('36321, 34955', '…') : shown;
      if (first !== undefined) {
        if (stays) await eventually(given, () => missingLine(output(), linesOf(put(first))) === undefined, 60_000);
        expect(missingLine(output(), linesOf(put(first))), `${given}\n${output()}`).toBeUndefined();
      }
      if (servers.length === 0) {
        servers.push(...(/simulated, on (\d+), (\d+)/.exec(output())?.slice(1) ?? []));
        ports.set('36321', servers[0]!);
        ports.set('34955', servers[1]!);
      }
      if (given.includes('for i in')) {
        const pods = [...output().matchAll(/x-inference-pod: (\S+)/g)].map(([, pod]) => pod);
        expect(pods).toHaveLength(4);
        expect(new Set(pods).size).toBe(given.includes('round-robin-picker') ? 2 : 1);
      }
    }
  }, 120_000);

  it('the tutorial has commands and shows what most of them say', () => {
    expect(steps().length).toBeGreaterThan(10);
    expect(steps().filter(({ shown }) => shown !== undefined).length).toBeGreaterThan(7);
  });
});
