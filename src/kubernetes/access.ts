import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { PEM_BYTES_MAX, readPlainText, SECRET_BYTES_MAX } from '../runtime/plain-file.js';
import { type ExecPlugin, type PemSource, readKubeconfig, type SelectedContext } from './kubeconfig.js';

/** Credentials of a request and the authorities that it trusts. */
export interface Credentials {
  readonly token: string | undefined;
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** Source of in-cluster credentials; other values for tests. */
export interface AccessOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Gives the user's folder; throws for a user who has none. */
  readonly home?: () => string;
  /** Folder of the mounted service account. */
  readonly mounted?: string;
  /** Milliseconds of a clock that never steps back. */
  readonly now?: () => number;
}

const MOUNTED_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';
/** The kubelet renews a mounted token well before its end. */
const TOKEN_AGE_MS_MAX = 60_000;
const CA_AGE_MS_MAX = 300_000;
const EXEC_MS_MAX = 30_000;
/** Time before the expiry of a plugin's credential at which it is renewed. */
const EXPIRY_MARGIN_MS = 10_000;

/**
 * The server and the identity: `KUBECONFIG`, else the mounted service account, else `~/.kube/config`. Reads nothing
 * else yet.
 * @throws Error that names the file and field, or all three places when there is none
 */
export function clusterAccess(options: AccessOptions = {}): ClusterAccess {
  const { env = process.env, home = homedir, mounted = MOUNTED_FOLDER } = options;
  const listed = (env.KUBECONFIG ?? '').split(delimiter).filter((file) => file !== '');
  const present = listed.filter((file) => existsSync(file));
  if (listed.length > 0 && present.length === 0) throw new Error(`KUBECONFIG: no such file: ${listed.join(', ')}`);
  if (present.length > 0) return new ClusterAccess(readKubeconfig(present), options.now);
  if (env.KUBERNETES_SERVICE_HOST) return new ClusterAccess(mountedContext(env, mounted), options.now);
  const usual = usualFile(home);
  if (usual !== undefined && existsSync(usual)) return new ClusterAccess(readKubeconfig([usual]), options.now);
  throw new Error(
    'no Kubernetes API server is known: run in a pod with a mounted service account token, set KUBECONFIG, ' +
      `or write ${usual ?? '~/.kube/config'}`,
  );
}

/** The kubeconfig of the user; undefined for one without a folder: neither `HOME` nor `/etc/passwd` names it. */
function usualFile(home: () => string): string | undefined {
  try {
    return join(home(), '.kube', 'config');
  } catch {
    return undefined;
  }
}

function mountedContext(env: NodeJS.ProcessEnv, folder: string): SelectedContext {
  const host = env.KUBERNETES_SERVICE_HOST!;
  const tokenFile = join(folder, 'token');
  if (!existsSync(tokenFile))
    throw new Error(`${tokenFile} does not exist: the pod needs automountServiceAccountToken: true`);
  const namespaceFile = join(folder, 'namespace');
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${env.KUBERNETES_SERVICE_PORT ?? '443'}`,
    namespace: existsSync(namespaceFile) ? readPlainText(namespaceFile, SECRET_BYTES_MAX).trim() : undefined,
    ca: { file: join(folder, 'ca.crt') },
    serverName: undefined,
    insecure: false,
    token: undefined,
    tokenFile,
    certificate: undefined,
    key: undefined,
    exec: undefined,
  };
}

/** The API server, and the credentials as they are at the time of a request. */
export class ClusterAccess {
  readonly server: URL;
  /** Namespace of the context or of the mounted service account. */
  readonly namespace: string | undefined;
  readonly serverName: string | undefined;
  readonly insecure: boolean;
  readonly #context: SelectedContext;
  readonly #now: () => number;
  readonly #token: ReadFile | undefined;
  readonly #ca: ReadFile | undefined;
  #plugin: { readonly credentials: Partial<Credentials>; readonly untilMs: number } | undefined;
  #running: Promise<Partial<Credentials>> | undefined;

  constructor(context: SelectedContext, now: () => number = () => performance.now()) {
    this.#context = context;
    this.server = new URL(context.server);
    this.namespace = context.namespace;
    this.serverName = context.serverName;
    this.insecure = context.insecure;
    this.#now = now;
    // A token file goes before a token, as in client-go: the file is the one that is renewed.
    this.#token = context.tokenFile === undefined ? undefined : new ReadFile(context.tokenFile, TOKEN_AGE_MS_MAX, now);
    this.#ca =
      context.ca !== undefined && 'file' in context.ca ? new ReadFile(context.ca.file, CA_AGE_MS_MAX, now) : undefined;
  }

  /** @throws Error that names the faulty file or command */
  async credentials(): Promise<Credentials> {
    const { token, ca, certificate, key, exec } = this.#context;
    const own = {
      token: this.#token?.text() ?? token,
      ca: this.#ca?.text() ?? textOf(ca),
      cert: textOf(certificate),
      key: textOf(key),
    };
    return exec === undefined ? own : { ...own, ...(await this.#fromPlugin(exec)) };
  }

  /** Notes that the server does not take the token: the next request reads it again. */
  rejected(): void {
    this.#token?.forget();
    this.#plugin = undefined;
  }

  /** Notes that the server's certificate is not trusted: the next request reads the authority again. */
  untrusted(): void {
    this.#ca?.forget();
  }

  #fromPlugin(plugin: ExecPlugin): Promise<Partial<Credentials>> {
    if (this.#plugin !== undefined && this.#now() < this.#plugin.untilMs) {
      return Promise.resolve(this.#plugin.credentials);
    }
    this.#running ??= runPlugin(plugin, this.#clusterInfo(plugin))
      .then(({ expiresMs, credentials }) => {
        const leftMs = expiresMs === undefined ? Number.POSITIVE_INFINITY : expiresMs - Date.now() - EXPIRY_MARGIN_MS;
        this.#plugin = { credentials, untilMs: this.#now() + leftMs };
        return credentials;
      })
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  #clusterInfo({ provideClusterInfo }: ExecPlugin): object {
    if (!provideClusterInfo) return {};
    const ca = this.#ca?.text() ?? textOf(this.#context.ca);
    const authority = ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') };
    return { cluster: { server: this.#context.server, ...authority } };
  }
}

/** Text of a file, read again when it is older than a time or was found wrong. */
class ReadFile {
  readonly #path: string;
  readonly #ageMsMax: number;
  readonly #now: () => number;
  #text = '';
  #readMs = Number.NEGATIVE_INFINITY;

  constructor(path: string, ageMsMax: number, now: () => number) {
    this.#path = path;
    this.#ageMsMax = ageMsMax;
    this.#now = now;
  }

  text(): string {
    if (this.#now() - this.#readMs < this.#ageMsMax) return this.#text;
    this.#text = readPlainText(this.#path, PEM_BYTES_MAX).trim();
    this.#readMs = this.#now();
    return this.#text;
  }

  forget(): void {
    this.#readMs = Number.NEGATIVE_INFINITY;
  }
}

function textOf(source: PemSource): string | undefined {
  if (source === undefined) return undefined;
  return 'text' in source ? source.text : readPlainText(source.file, PEM_BYTES_MAX);
}

interface ExecCredential {
  readonly status?: {
    readonly token?: string;
    readonly clientCertificateData?: string;
    readonly clientKeyData?: string;
    readonly expirationTimestamp?: string;
  };
}

function runPlugin(plugin: ExecPlugin, spec: object) {
  const { apiVersion, command, args } = plugin;
  const info = { apiVersion, kind: 'ExecCredential', spec: { ...spec, interactive: false } };
  const env = { ...process.env, ...plugin.env, KUBERNETES_EXEC_INFO: JSON.stringify(info) };
  return new Promise<{ credentials: Partial<Credentials>; expiresMs: number | undefined }>((resolve, reject) => {
    execFile(command, [...args], { env, timeout: EXEC_MS_MAX, maxBuffer: 1024 * 1024 }, (error, stdout, stderr) => {
      const failed = (reason: string) => reject(new Error(`the credential plugin ${command} ${reason}`));
      if (error !== null) return failed(`failed: ${stderr.trim().split('\n').at(-1) || error.message}`);
      try {
        const { status } = JSON.parse(stdout) as ExecCredential;
        const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = status ?? {};
        if (token === undefined && cert === undefined) return failed('printed neither a token nor a certificate');
        const expiresMs = expirationTimestamp === undefined ? undefined : Date.parse(expirationTimestamp);
        resolve({ credentials: cert === undefined ? { token } : { token, cert, key }, expiresMs });
      } catch {
        failed('printed no ExecCredential');
      }
    });
  });
}
