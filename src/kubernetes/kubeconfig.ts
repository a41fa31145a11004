import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import { PEM_BYTES_MAX, readPlainText } from '../runtime/plain-file.js';
import { errorText } from './error-text.js';

/** A credential plugin (`exec` of a kubeconfig user). */
export interface ExecPlugin {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly provideClusterInfo: boolean;
}

/** PEM text or the file that holds it. */
export type PemSource = { readonly text: string } | { readonly file: string } | undefined;

/** The server and identity that a kubeconfig selects. */
export interface SelectedContext {
  readonly server: string;
  readonly namespace: string | undefined;
  readonly ca: PemSource;
  readonly serverName: string | undefined;
  readonly insecure: boolean;
  readonly token: string | undefined;
  readonly tokenFile: string | undefined;
  readonly certificate: PemSource;
  readonly key: PemSource;
  readonly exec: ExecPlugin | undefined;
}

type Fields = Record<string, unknown>;

/** A named entry of one file, with the folder that its relative paths start from. */
interface Entry {
  readonly fields: Fields;
  readonly folder: string;
  readonly place: string;
}

/** Entries of all files: the first file that names a thing wins, as in kubectl. */
interface Merged {
  currentContext: string | undefined;
  readonly contexts: Map<string, Entry>;
  readonly clusters: Map<string, Entry>;
  readonly users: Map<string, Entry>;
}

/**
 * Reads and merges kubeconfig files and selects their current context.
 * @throws Error that names the file and the field
 */
export function readKubeconfig(files: readonly string[]): SelectedContext {
  const merged: Merged = { currentContext: undefined, contexts: new Map(), clusters: new Map(), users: new Map() };
  for (const file of files) merge(merged, file);
  const where = files.join(', ');
  if (merged.currentContext === undefined) throw new Error(`${where}: current-context is missing; set it`);
  const context = entry(merged.contexts, 'context', merged.currentContext, where);
  const cluster = entry(merged.clusters, 'cluster', text(context, 'cluster') ?? '', context.place);
  const user = text(context, 'user');
  const identity = user === undefined ? undefined : entry(merged.users, 'user', user, context.place);
  return { ...clusterFields(cluster), namespace: text(context, 'namespace'), ...identityFields(identity) };
}

function merge(merged: Merged, file: string): void {
  let document: Fields;
  try {
    document = (parse(readPlainText(file, PEM_BYTES_MAX)) ?? {}) as Fields;
  } catch (error) {
    throw new Error(`kubeconfig ${file} cannot be read: ${errorText(error)}`);
  }
  const current = document['current-context'];
  if (typeof current === 'string' && current !== '') merged.currentContext ??= current;
  for (const kind of ['context', 'cluster', 'user'] as const) {
    const list = document[`${kind}s`];
    for (const one of Array.isArray(list) ? (list as Fields[]) : []) {
      const name = String(one?.name);
      const entries = merged[`${kind}s`];
      const place = `${file}: ${kind}s "${name}"`;
      if (!entries.has(name)) entries.set(name, { fields: fieldsOf(one?.[kind]), folder: dirname(file), place });
    }
  }
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

function entry(entries: ReadonlyMap<string, Entry>, kind: string, name: string, place: string): Entry {
  const found = entries.get(name);
  if (found === undefined) throw new Error(`${place}: the ${kind} "${name}" is named and not defined`);
  return found;
}

function text({ fields, place }: Entry, field: string): string | undefined {
  const value = fields[field];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') throw new Error(`${place}: ${field} must be a text`);
  return value;
}

function path(from: Entry, field: string): string | undefined {
  const value = text(from, field);
  return value === undefined ? undefined : resolve(from.folder, value);
}

/** The `…-data` field (base64), else the file of the plain one. */
function pem(from: Entry, field: string): PemSource {
  const data = text(from, `${field}-data`);
  if (data !== undefined) return { text: Buffer.from(data, 'base64').toString('utf8') };
  const file = path(from, field);
  return file === undefined ? undefined : { file };
}

function clusterFields(cluster: Entry) {
  const server = text(cluster, 'server');
  if (server === undefined || !URL.canParse(server) || !/^https?:/.test(server))
    throw new Error(`${cluster.place}: server must be an http:// or https:// address`);
  if (text(cluster, 'proxy-url') !== undefined)
    throw new Error(`${cluster.place}: proxy-url is not supported; name the API server without a proxy`);
  return {
    server,
    ca: pem(cluster, 'certificate-authority'),
    serverName: text(cluster, 'tls-server-name'),
    insecure: cluster.fields['insecure-skip-tls-verify'] === true,
  };
}

function identityFields(user: Entry | undefined) {
  if (user === undefined) {
    return { token: undefined, tokenFile: undefined, certificate: undefined, key: undefined, exec: undefined };
  }
  for (const field of ['auth-provider', 'username', 'as']) {
    if (user.fields[field] !== undefined)
      throw new Error(`${user.place}: ${field} is not supported; use token, tokenFile, a client certificate or exec`);
  }
  return {
    token: text(user, 'token'),
    tokenFile: path(user, 'tokenFile'),
    certificate: pem(user, 'client-certificate'),
    key: pem(user, 'client-key'),
    exec: execPlugin(user),
  };
}

const EXEC_VERSION = 'client.authentication.k8s.io/v1';

function execPlugin(user: Entry): ExecPlugin | undefined {
  if (user.fields.exec === undefined || user.fields.exec === null) return undefined;
  const from = { ...user, fields: fieldsOf(user.fields.exec), place: `${user.place}: exec` };
  const command = text(from, 'command');
  if (command === undefined) throw new Error(`${from.place}: command is missing`);
  const apiVersion = text(from, 'apiVersion') ?? EXEC_VERSION;
  if (!/^client\.authentication\.k8s\.io\/v1(beta1)?$/.test(apiVersion))
    throw new Error(`${from.place}: apiVersion must be ${EXEC_VERSION}`);
  const env = (Array.isArray(from.fields.env) ? (from.fields.env as Fields[]) : []).map(
    ({ name, value }) => [String(name), String(value)] as const,
  );
  return {
    apiVersion,
    // A command with a slash is relative to its file, as in kubectl; a bare name is searched in PATH.
    command: command.includes('/') ? resolve(user.folder, command) : command,
    args: Array.isArray(from.fields.args) ? from.fields.args.map(String) : [],
    env: Object.fromEntries(env),
    provideClusterInfo: from.fields.provideClusterInfo === true,
  };
}
