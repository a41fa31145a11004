// Namespaces of Linux (network, mounts, processes) of one run: what happens inside is gone with its first process.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';

/** Address of the machine inside, on the bridge of the pods. */
export const HOST_ADDRESS = '10.132.0.1';
const BRIDGE = 'pods';
/** Where a pod looks for the token of its service account. */
const SERVICE_ACCOUNT = '/run/secrets/kubernetes.io/serviceaccount';
/** Pods that one run can make; their addresses are not used twice. */
const PODS_MAX = 60_000;

/**
 * Runs `script` once more in namespaces of its own. Its standard input stays open as long as this process lives.
 * @param limitMs after which all is ended
 * @returns its exit code
 */
export async function runInside(script: string, args: readonly string[], folder: string, limitMs: number) {
  const namespaces = ['--net', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child'];
  const command = [...namespaces, process.execPath, script, ...args];
  const child = spawn('unshare', command, {
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { ...process.env, TMPDIR: folder },
  });
  // Every way of ending unshare ends the first process inside, and with it the kernel ends all others there.
  const stop = () => child.kill('SIGKILL');
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, stop);
  process.once('exit', stop);
  const timer = setTimeout(() => {
    process.stderr.write(`ended after ${limitMs / 60_000} minutes\n`);
    stop();
  }, limitMs);
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (exit) => resolve(exit ?? 1));
  });
  clearTimeout(timer);
  return code;
}

/** To be called inside: a network of its own with a bridge, and a folder /run that no other process sees. */
export function prepareInside(): void {
  run('mount', '-t', 'tmpfs', 'tmpfs', '/run');
  run('mkdir', '-p', SERVICE_ACCOUNT);
  run('ip', 'link', 'set', 'lo', 'up');
  run('ip', 'link', 'add', BRIDGE, 'type', 'bridge');
  run('ip', 'addr', 'add', `${HOST_ADDRESS}/16`, 'dev', BRIDGE);
  run('ip', 'link', 'set', BRIDGE, 'up');
  // The process outside holds the other end; an end of it, however sudden, is the end of all inside.
  process.stdin.on('end', () => process.exit(1)).resume();
}

/** Network of one pod: a namespace with one address on the bridge. */
export class PodNetwork {
  static #made = 0;
  readonly #name: string;
  readonly address: string;

  constructor() {
    PodNetwork.#made += 1;
    const number = PodNetwork.#made;
    if (number > PODS_MAX) throw new Error(`more than ${PODS_MAX} pods in one run`);
    this.#name = `pod${number}`;
    this.address = `10.132.${1 + Math.floor(number / 250)}.${1 + (number % 250)}`;
    const inside = ['-n', this.#name];
    run('ip', 'netns', 'add', this.#name);
    run('ip', 'link', 'add', `veth${number}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', this.#name);
    run('ip', 'link', 'set', `veth${number}`, 'master', BRIDGE, 'up');
    run('ip', ...inside, 'addr', 'add', `${this.address}/16`, 'dev', 'eth0');
    run('ip', ...inside, 'link', 'set', 'eth0', 'up');
    run('ip', ...inside, 'link', 'set', 'lo', 'up');
    run('ip', ...inside, 'route', 'add', 'default', 'via', HOST_ADDRESS);
  }

  /** Starts a program in the namespace; `account` is a folder that it sees as that of its service account. */
  spawn(argv: readonly string[], env: NodeJS.ProcessEnv, account: string, log: number): ChildProcess {
    const script = `mount --bind "$0" ${SERVICE_ACCOUNT} && exec "$@"`;
    return spawn('ip', ['netns', 'exec', this.#name, 'sh', '-c', script, account, ...argv], {
      env,
      stdio: ['ignore', log, log],
    });
  }

  remove(): void {
    run('ip', 'netns', 'del', this.#name);
  }
}

function run(command: string, ...args: readonly string[]): void {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'], timeout: 30_000 });
}
