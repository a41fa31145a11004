import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../dist/src/serve/port.js';
import { Cluster } from './cluster.ts';

/** Folder of `apiserver` and `etcd`; undefined = they are not installed. */
export const kubernetesBinaries = findBinaries();

function findBinaries(): string | undefined {
  const folder = fileURLToPath(new URL('../../.tools/kubernetes/bin', import.meta.url));
  return ['apiserver', 'etcd'].every((name) => existsSync(join(folder, name))) ? folder : undefined;
}

export const ADMIN_TOKEN = 'admin-token';
/** Token of the user `picker`, whom RBAC has to admit. */
export const PICKER_TOKEN = 'picker-token';

export const START_MS_MAX = 90_000;

/** etcd and an API server on free ports of the loopback or another address, with files in a folder of their own. */
export class ApiServer {
  readonly folder = mkdtempSync(join(tmpdir(), 'pointsman-kubernetes-'));
  readonly #address: string;
  #flags: readonly string[];
  #etcd: ChildProcess | undefined;
  #server: ChildProcess | undefined;
  #port = 0;
  #etcdPort = 0;
  #certificates = 'certs';
  readonly #exit = () => this.#endAll();

  constructor(flags: readonly string[] = [], address = '127.0.0.1') {
    this.#flags = flags;
    this.#address = address;
    process.once('exit', this.#exit);
  }

  get url(): string {
    return `https://${this.#address}:${this.#port}`;
  }

  get port(): number {
    return this.#port;
  }

  get caFile(): string {
    return join(this.folder, this.#certificates, 'apiserver.crt');
  }

  get ca(): string {
    return readFileSync(this.caFile, 'utf8');
  }

  /** Requests as an administrator. */
  cluster(token = ADMIN_TOKEN): Cluster {
    return new Cluster({ url: this.url, ca: this.ca, token });
  }

  /** Starts what does not run; the port, the data and the certificate are those of the first start. */
  async start(options: { readonly flags?: readonly string[]; readonly certificates?: string } = {}): Promise<void> {
    this.#flags = options.flags ?? this.#flags;
    this.#certificates = options.certificates ?? this.#certificates;
    this.#port ||= await freePort();
    this.#writeFiles();
    if (this.#etcd === undefined) await this.#startEtcd();
    if (this.#server === undefined) this.#startServer();
    await this.#ready();
  }

  /** Ends the API server and keeps its data; `start` brings it back. SIGKILL, so that open watches break off. */
  async kill(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    await end(server);
  }

  /** Suspends the API server: connections stay open, nothing is answered. */
  suspend(): void {
    this.#server?.kill('SIGSTOP');
  }

  resume(): void {
    this.#server?.kill('SIGCONT');
  }

  async stop(): Promise<void> {
    process.off('exit', this.#exit);
    await this.kill();
    await end(this.#etcd);
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Ends etcd as well and puts back a copy of its data: versions go back, as after a restore from a backup. */
  async restore(backup: string): Promise<void> {
    await this.kill();
    await end(this.#etcd);
    this.#etcd = undefined;
    rmSync(join(this.folder, 'etcd'), { recursive: true, force: true });
    cpSync(backup, join(this.folder, 'etcd'), { recursive: true });
  }

  /** Copies etcd's data; the API server and etcd are stopped for it and have to be started again. */
  async backUp(): Promise<string> {
    await this.kill();
    await end(this.#etcd);
    this.#etcd = undefined;
    const backup = join(this.folder, 'backup');
    cpSync(join(this.folder, 'etcd'), backup, { recursive: true });
    return backup;
  }

  #endAll(): void {
    this.#server?.kill('SIGKILL');
    this.#etcd?.kill('SIGKILL');
    rmSync(this.folder, { recursive: true, force: true });
  }

  #writeFiles(): void {
    const key = join(this.folder, 'service-account.key');
    if (existsSync(key)) return;
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    writeFileSync(key, privateKey.export({ type: 'pkcs8', format: 'pem' }));
    writeFileSync(
      join(this.folder, 'tokens.csv'),
      `${ADMIN_TOKEN},admin,1,"system:masters"\n${PICKER_TOKEN},picker,2,\n`,
    );
    mkdirSync(join(this.folder, 'certs'), { recursive: true });
  }

  async #startEtcd(): Promise<void> {
    this.#etcdPort ||= await freePort();
    const client = `http://127.0.0.1:${this.#etcdPort}`;
    const peer = `http://127.0.0.1:${await freePort()}`;
    this.#etcd = this.#spawn('etcd', [
      ...['--data-dir', join(this.folder, 'etcd'), '--unsafe-no-fsync', '--log-level', 'error'],
      ...['--listen-client-urls', client, '--advertise-client-urls', client],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`],
    ]);
  }

  #startServer(): void {
    const key = join(this.folder, 'service-account.key');
    this.#server = this.#spawn('apiserver', [
      ...['--etcd-servers', `http://127.0.0.1:${this.#etcdPort}`, '--cert-dir', join(this.folder, this.#certificates)],
      ...['--bind-address', this.#address, '--advertise-address', this.#address, '--secure-port', String(this.#port)],
      ...['--service-account-issuer', 'https://kubernetes.default.svc'],
      ...['--service-account-key-file', key, '--service-account-signing-key-file', key],
      ...['--token-auth-file', join(this.folder, 'tokens.csv'), '--authorization-mode', 'RBAC'],
      ...['--service-cluster-ip-range', '10.96.0.0/24', '--endpoint-reconciler-type', 'none'],
      // Nothing here creates the account `default` that the ServiceAccount plugin demands of every pod.
      ...['--disable-admission-plugins', 'ServiceAccount'],
      ...this.#flags,
    ]);
  }

  #spawn(name: string, args: readonly string[]): ChildProcess {
    if (kubernetesBinaries === undefined)
      throw new Error('POINTSMAN_REQUIRE_KUBERNETES=1, but no API server: run scripts/install-kubernetes.sh');
    const log = openSync(join(this.folder, `${name}.log`), 'a');
    return spawn(join(kubernetesBinaries, name), args, { stdio: ['ignore', log, log] });
  }

  async #ready(): Promise<void> {
    const server = this.#server;
    const deadline = performance.now() + START_MS_MAX;
    while (performance.now() < deadline) {
      if (server?.exitCode !== null) break;
      if (existsSync(this.caFile)) {
        const cluster = this.cluster();
        const answer = await cluster.request('GET', '/readyz').catch(() => undefined);
        cluster.close();
        if (answer?.status === 200) return;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const log = readFileSync(join(this.folder, 'apiserver.log'), 'utf8').trim().split('\n').slice(-5).join('\n');
    throw new Error(`the Kubernetes API server did not become ready:\n${log}`);
  }
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGCONT');
  child.kill('SIGKILL');
  await gone;
}
