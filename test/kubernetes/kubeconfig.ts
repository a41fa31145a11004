import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Cluster } from './cluster.ts';

/** Writes a kubeconfig for a cluster and a token. @returns its path, and what removes it */
export function writeKubeconfig({ access }: Cluster, token = access.token): { file: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-kubeconfig-'));
  const file = join(folder, 'config');
  const authority = Buffer.from(access.ca).toString('base64');
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    clusters: [{ name: 'test', cluster: { server: access.url, 'certificate-authority-data': authority } }],
    users: [{ name: 'test', user: { token } }],
  };
  writeFileSync(file, stringify(content));
  return { file, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
