import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { isNatsUrl, type ReplicationConfig } from '../config/replication.js';
import type { ReplicaSettings } from '../picker/control/replication-control.js';
import { readPlainText, SECRET_BYTES_MAX } from '../runtime/plain-file.js';
import { readProblem } from '../runtime/read-problem.js';
import type { ServeFlags } from './flags.js';

/**
 * Settings of replication by flags and configuration; undefined = off. The flag's address takes precedence over the
 * configuration's.
 * @throws {Error} one line, when the address or a file cannot be used
 */
export function replicaSettings(
  {
    replicationUrl,
    replicationCpuPercent,
    podName,
  }: Pick<ServeFlags, 'replicationUrl' | 'replicationCpuPercent' | 'podName'>,
  section: ReplicationConfig | undefined,
  poolName: string,
): ReplicaSettings | undefined {
  const given = replicationUrl ?? section?.nats;
  if (given === undefined) return undefined;
  const { url, user, password } = address(given);
  const file = section?.credentialsFile;
  const [fileUser, filePassword] = file === undefined ? [] : credentials(file);
  return {
    url,
    user: user ?? fileUser,
    password: password ?? filePassword,
    group: section?.group ?? poolName,
    // A pod keeps its name over a restart of its container, so messages of the new process replace those of the old
    // one.
    replica: podName ?? `${hostname()}-${randomBytes(4).toString('hex')}`,
    jetStream: section?.jetStream === true,
    cpuShare: replicationCpuPercent / 100,
    hashKey: section?.hashKeyFile === undefined ? '' : hashKey(section.hashKeyFile),
  };
}

function address(given: string): { readonly url: string; readonly user?: string; readonly password?: string } {
  const parsed = URL.canParse(given) ? new URL(given) : undefined;
  const { username = '', password = '' } = parsed ?? {};
  if (parsed !== undefined) parsed.username = parsed.password = '';
  const url = parsed?.toString() ?? given;
  if (!isNatsUrl(url)) throw new Error('--replication-url: must be like nats://[user:password@]host:4222');
  if (username === '') return { url };
  return { url, user: decodeURIComponent(username), password: decodeURIComponent(password) };
}

function credentials(path: string): readonly [string, string] {
  const text = secret(path, 'replication.credentialsFile');
  const colon = text.indexOf(':');
  if (colon <= 0) throw new Error(`replication.credentialsFile: ${path} must hold user:password`);
  return [text.slice(0, colon), text.slice(colon + 1)];
}

function hashKey(path: string): string {
  const key = secret(path, 'replication.hashKeyFile');
  if (key === '') throw new Error(`replication.hashKeyFile: ${path} is empty: put a secret into it`);
  return key;
}

function secret(path: string, field: string): string {
  try {
    return readPlainText(path, SECRET_BYTES_MAX).trim();
  } catch (error) {
    throw new Error(`${field}: ${path} ${readProblem(error)}`);
  }
}
