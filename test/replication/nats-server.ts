import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../dist/src/serve/port.js';
import { eventually } from '../tools/gateway/client.ts';

function find(): string | undefined {
  const candidates = [
    process.env.NATS_SERVER_BIN,
    fileURLToPath(new URL('../../.tools/nats/nats-server', import.meta.url)),
  ].filter((path) => path !== undefined && existsSync(path));
  if (candidates[0] !== undefined) return candidates[0];
  return spawnSync('nats-server', ['--version']).status === 0 ? 'nats-server' : undefined;
}

/** The nats-server to test with; undefined = none was found. */
export const natsBinary = find();

/**
 * Why the tests with NATS are skipped; the empty string when they run. With POINTSMAN_REQUIRE_NATS=1 they never are.
 */
export const skipReason =
  natsBinary === undefined && process.env.POINTSMAN_REQUIRE_NATS !== '1'
    ? ' (skipped: no nats-server found; run scripts/install-nats.sh or set NATS_SERVER_BIN)'
    : '';

/** A nats-server of its own process. */
export class NatsServer {
  readonly port: number;
  readonly #args: readonly string[];
  #child: ChildProcess | undefined;

  private constructor(port: number, args: readonly string[]) {
    this.port = port;
    this.#args = args;
  }

  /** @param args further arguments of nats-server */
  static async start(args: readonly string[] = []): Promise<NatsServer> {
    const server = new NatsServer(await freePort(), args);
    await server.restart();
    return server;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  /** Starts the process on the port that it had before. */
  async restart(): Promise<void> {
    if (natsBinary === undefined)
      throw new Error('POINTSMAN_REQUIRE_NATS=1, but no nats-server: run scripts/install-nats.sh');
    const args = ['-a', '127.0.0.1', '-p', String(this.port), ...this.#args];
    const child = spawn(natsBinary, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child = child;
    let text = '';
    child.stderr!.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    await eventually('nats-server is ready', () => text.includes('Server is ready') || child.exitCode !== null);
    if (child.exitCode !== null) throw new Error(text);
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
}
