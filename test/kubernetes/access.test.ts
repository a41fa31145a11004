import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { clusterAccess } from '../../dist/src/kubernetes/access.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pointsman-access-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, content: string | object): string {
  const file = join(folder, name);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, typeof content === 'string' ? content : stringify(content));
  return file;
}

function kubeconfig(user: object, cluster: object = {}, namespace?: string) {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'u', ...(namespace && { namespace }) } }],
    clusters: [{ name: 'c', cluster: { server: 'https://server:6443', ...cluster } }],
    users: [{ name: 'u', user }],
  };
}

const none = () => ({ env: {}, home: () => folder, mounted: join(folder, 'mounted') });

describe('the API server and the identity', () => {
  it('the API server and the identity come from KUBECONFIG, whose first file that names a thing wins', async () => {
    const one = write('one', { 'current-context': 'here', contexts: kubeconfig({}).contexts });
    const two = write('two', kubeconfig({ token: 'from two' }, {}, 'llm'));
    const access = clusterAccess({ ...none(), env: { KUBECONFIG: `${one}:${two}` } });
    expect(access.server.href).toBe('https://server:6443/');
    expect(access.namespace).toBeUndefined();
    expect((await access.credentials()).token).toBe('from two');
  });

  it('the API server and the identity come from the mounted service account in a pod, IPv6 in brackets', async () => {
    write('mounted/token', 'mounted token\n');
    write('mounted/namespace', 'llm\n');
    write('mounted/ca.crt', 'the authority');
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
    const access = clusterAccess({ ...none(), env });
    expect(access.server.host).toBe('[fd00::1]');
    expect(access.namespace).toBe('llm');
    expect(await access.credentials()).toMatchObject({ token: 'mounted token', ca: 'the authority' });
  });

  it('the API server and the identity come from ~/.kube/config otherwise', async () => {
    write('.kube/config', kubeconfig({ token: 'at home' }));
    expect((await clusterAccess(none()).credentials()).token).toBe('at home');
  });

  it('the API server and the identity come from a pod or KUBECONFIG also where the user has no home', async () => {
    const home = () => {
      throw new Error('uv_os_homedir returned ENOENT (no such file or directory)');
    };
    write('mounted/token', 'mounted token\n');
    const inPod = clusterAccess({ ...none(), home, env: { KUBERNETES_SERVICE_HOST: '10.0.0.1' } });
    expect(inPod.server.host).toBe('10.0.0.1');
    const listed = write('listed', kubeconfig({ token: 'listed' }));
    expect((await clusterAccess({ ...none(), home, env: { KUBECONFIG: listed } }).credentials()).token).toBe('listed');
    expect(() => clusterAccess({ ...none(), home })).toThrow(/set KUBECONFIG, or write ~\/\.kube\/config/);
  });

  it('the API server and the identity are missing with all three places named', () => {
    expect(() => clusterAccess(none())).toThrow(/mounted service account token, set KUBECONFIG, or write .*\.kube/);
  });

  it('the API server and the identity take files from beside their kubeconfig, inline data first', async () => {
    write('pki/ca.crt', 'authority of the file');
    write('pki/client.crt', 'certificate');
    const user = {
      'client-certificate': 'pki/client.crt',
      'client-key-data': Buffer.from('the key').toString('base64'),
    };
    write('.kube/config', kubeconfig(user, { 'certificate-authority': '../pki/ca.crt' }));
    write('.kube/pki/client.crt', 'certificate beside it');
    expect(await clusterAccess(none()).credentials()).toEqual({
      token: undefined,
      ca: 'authority of the file',
      cert: 'certificate beside it',
      key: 'the key',
    });
  });
});

describe('a kubeconfig that cannot be used', () => {
  it.each([
    ['an unknown way to log in', kubeconfig({ 'auth-provider': { name: 'gcp' } }), /users "u": auth-provider is not/],
    ['a proxy', kubeconfig({}, { 'proxy-url': 'http://p' }), /clusters "c": proxy-url is not supported/],
    ['no server', kubeconfig({}, { server: 'server' }), /clusters "c": server must be an http/],
    ['no context', {}, /current-context is missing/],
    ['a cluster that is not there', { ...kubeconfig({}), clusters: [] }, /the cluster "c" is named and not defined/],
    [
      'an old credential plugin',
      kubeconfig({ exec: { command: 'x', apiVersion: 'y/v1alpha1' } }),
      /apiVersion must be/,
    ],
  ])('a kubeconfig that cannot be used says where: %s', (_what, content, message) => {
    write('.kube/config', content);
    expect(() => clusterAccess(none())).toThrow(message);
  });
});

describe('a token file', () => {
  it('a token file is read again after 60 s, and at once when the server does not take the token', async () => {
    let now = 0;
    write('token', 'one');
    write('.kube/config', kubeconfig({ tokenFile: join(folder, 'token') }));
    const access = clusterAccess({ ...none(), now: () => now });
    const token = async () => (await access.credentials()).token;
    expect(await token()).toBe('one');
    write('token', 'two');
    now = 59_999;
    expect(await token()).toBe('one');
    now = 60_000;
    expect(await token()).toBe('two');
    write('token', 'three');
    access.rejected();
    expect(await token()).toBe('three');
  });
});

describe('a credential plugin', () => {
  function plugin(script: string) {
    const file = write('.kube/plugin.sh', `#!/bin/sh\n${script}\n`);
    chmodSync(file, 0o755);
    write('.kube/config', kubeconfig({ exec: { command: './plugin.sh', env: [{ name: 'WHO', value: 'picker' }] } }));
    return clusterAccess(none());
  }
  const credential = (status: object) => JSON.stringify({ kind: 'ExecCredential', status });

  it('a credential plugin gives a token, is run once until it expires, and anew after a refusal', async () => {
    const status = { token: 'T', expirationTimestamp: new Date(Date.now() + 3_600_000).toISOString() };
    const access = plugin(`echo run >> "${folder}/runs"; printf '%s' '${credential(status)}' | sed s/T/"$WHO"/`);
    expect((await access.credentials()).token).toBe('picker');
    await access.credentials();
    const runs = async () => (await import('node:fs')).readFileSync(join(folder, 'runs'), 'utf8').trim().split('\n');
    expect(await runs()).toHaveLength(1);
    access.rejected();
    await access.credentials();
    expect(await runs()).toHaveLength(2);
  });

  it('a credential plugin that has expired is run again', async () => {
    const status = { token: 't', expirationTimestamp: new Date(Date.now() - 1_000).toISOString() };
    const access = plugin(`echo run >> "${folder}/runs"; echo '${credential(status)}'`);
    await access.credentials();
    await access.credentials();
    const { readFileSync } = await import('node:fs');
    expect(readFileSync(join(folder, 'runs'), 'utf8')).toBe('run\nrun\n');
  });

  it.each([
    ['fails', 'echo "no login" >&2; exit 1', /plugin\.sh failed: no login/],
    ['prints something else', 'echo hello', /printed no ExecCredential/],
    ['prints no credential', 'echo "{}"', /printed neither a token nor a certificate/],
  ])('a credential plugin that %s is named', async (_what, script, message) => {
    await expect(plugin(script).credentials()).rejects.toThrow(message);
  });
});
