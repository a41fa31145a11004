import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { connect as connectTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { credentials, status } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import { selfSignedCertificate } from '../../dist/src/ingress/certificate.js';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { dialPicker } from '../ingress/proxy-client.ts';
import { TEST_CERTIFICATE, TEST_KEY } from '../ingress/tls-material.ts';
import { eventually } from '../tools/gateway/client.ts';
import { askAndEnd, type ServeProcess, Setting, startServe } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A picker whose ext_proc port speaks TLS. */
async function start(...flags: string[]): Promise<ServeProcess> {
  const setting = await Setting.create([{ name: 'server', port: 20_000 }]);
  cleanups.push(() => setting.remove());
  const plain = setting.flags.filter((flag) => !flag.startsWith('--secure-serving'));
  const serve = await startServe([...plain, ...flags]);
  cleanups.push(() => serve.kill());
  return serve;
}

async function folderWith(key: string, cert: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'pointsman-certificate-'));
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  await write(folder, key, cert);
  return folder;
}

async function write(folder: string, key: string, cert: string): Promise<void> {
  for (const [name, text] of [
    ['tls.crt', cert],
    ['tls.key', key],
  ] as const) {
    await writeFile(join(folder, `${name}.next`), text);
    await rename(join(folder, `${name}.next`), join(folder, name));
  }
}

/** Connects with TLS, without looking at the certificate. */
async function handshake(
  port: number,
  options: { readonly maxVersion?: 'TLSv1.2'; readonly ciphers?: string } = {},
): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: ['h2'], ...options });
  cleanups.push(() => socket.destroy());
  await once(socket, 'secureConnect');
  // The end of the process may reach it as a reset.
  socket.on('error', () => undefined);
  return socket;
}

async function servedFingerprint(port: number): Promise<string> {
  return (await handshake(port)).getPeerCertificate().fingerprint256;
}

async function askSecurely(port: number, channel: ReturnType<typeof credentials.createSsl>): Promise<string> {
  const client = dialPicker(port, channel);
  cleanups.push(() => client.close());
  const { replies } = await askAndEnd(client, 'hello');
  return decodeReply(replies[0]!).kind;
}

describe('secure serving', () => {
  it('secure serving is the default, with a certificate of its own for a proxy that does not look at it', async () => {
    const serve = await start();
    const unverified = credentials.createSsl(null, null, null, { rejectUnauthorized: false });
    expect(await askSecurely(serve.grpcPort, unverified)).toBe('requestHeaders');
  });

  it('secure serving uses the pair of --cert-path, which a proxy can verify', async () => {
    const serve = await start(`--cert-path=${await folderWith(TEST_KEY, TEST_CERTIFICATE)}`);
    const verified = credentials.createSsl(Buffer.from(TEST_CERTIFICATE));
    expect(await askSecurely(serve.grpcPort, verified)).toBe('requestHeaders');
  });

  it('secure serving takes no version below --tls-min-version', async () => {
    const serve = await start('--tls-min-version=VersionTLS13');
    expect((await handshake(serve.grpcPort)).getProtocol()).toBe('TLSv1.3');
    await expect(handshake(serve.grpcPort, { maxVersion: 'TLSv1.2' })).rejects.toThrow(/alert|version/);
  });

  it('secure serving does not wait for a handshake that never comes when it drains', async () => {
    const serve = await start('--drain-timeout=10m');
    const silent = connectTcp(serve.grpcPort, '127.0.0.1');
    await once(silent, 'connect');
    // The end of the process may reach it as a reset.
    silent.on('error', () => undefined);
    cleanups.push(() => silent.destroy());
    serve.child.kill('SIGTERM');
    expect(await serve.ended).toBe(0);
  });
});

describe.each([1, 2])('--enable-cert-reload with %i shard(s)', (shards) => {
  it('--enable-cert-reload gives new connections the new certificate; a wrong pair is refused', async () => {
    const folder = await folderWith(TEST_KEY, TEST_CERTIFICATE);
    const serve = await start(`--cert-path=${folder}`, '--enable-cert-reload', `--shards=${shards}`);
    const client = dialPicker(serve.grpcPort, credentials.createSsl(Buffer.from(TEST_CERTIFICATE)));
    cleanups.push(() => client.close());
    expect((await askAndEnd(client, 'before')).code).toBe(0);
    const before = await servedFingerprint(serve.grpcPort);

    await write(folder, 'no key', 'no certificate');
    await eventually('the broken pair is reported', () => serve.log().includes('the certificate stays as it was'));
    expect(await servedFingerprint(serve.grpcPort)).toBe(before);

    const next = await selfSignedCertificate();
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    await write(folder, String(privateKey.export({ type: 'pkcs8', format: 'pem' })), TEST_CERTIFICATE);
    await eventually('the wrong key is reported', () => serve.log().includes('the key is that of another certificate'));
    expect(await servedFingerprint(serve.grpcPort)).toBe(before);

    await write(folder, next.key, next.cert);
    await eventually('the change is logged', () => serve.log().includes('new connections get the new certificate'));
    await eventually('every shard serves it', async () => {
      const served = await Promise.all(Array.from({ length: 8 }, () => servedFingerprint(serve.grpcPort)));
      return served.every((fingerprint) => fingerprint !== before);
    });
    expect((await askAndEnd(client, 'after')).code).toBe(0);
    expect(await askSecurely(serve.grpcPort, credentials.createSsl(Buffer.from(next.cert)))).toBe('requestHeaders');
  });
});

describe('cipher suites of TLS 1.2', () => {
  const serving = () => start();

  it.each(['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-CHACHA20-POLY1305'])('%s is offered', async (ciphers) => {
    const { grpcPort } = await serving();
    const socket = await handshake(grpcPort, { maxVersion: 'TLSv1.2', ciphers });
    expect(socket.getCipher().name).toBe(ciphers);
  });

  it.each(['ECDHE-ECDSA-AES128-SHA', 'ECDHE-ECDSA-AES256-SHA384'])(
    '%s, without AEAD, is not offered',
    async (ciphers) => {
      const { grpcPort } = await serving();
      await expect(handshake(grpcPort, { maxVersion: 'TLSv1.2', ciphers })).rejects.toThrow(/alert|handshake/);
    },
  );
});

describe.each(['lean', 'grpc-js'])('--client-ca-file over %s', (transport) => {
  it('proxies with a certificate of the authority are served, and no others', async () => {
    const folder = await folderWith(TEST_KEY, TEST_CERTIFICATE);
    const [server, client] = [Buffer.from(TEST_CERTIFICATE), await selfSignedCertificate()];
    const authority = join(folder, 'clients.pem');
    await writeFile(authority, client.cert);
    const serve = await start(`--cert-path=${folder}`, `--client-ca-file=${authority}`, `--transport=${transport}`);
    const { grpcPort } = serve;
    const own = credentials.createSsl(server, Buffer.from(client.key), Buffer.from(client.cert));
    expect(await askSecurely(grpcPort, own)).toBe('requestHeaders');
    const stranger = await selfSignedCertificate();
    for (const pair of [stranger, undefined]) {
      const channel = credentials.createSsl(server, toBuffer(pair?.key), toBuffer(pair?.cert));
      const proxy = dialPicker(grpcPort, channel);
      cleanups.push(() => proxy.close());
      const { replies, code } = await askAndEnd(proxy, 'hello');
      expect([replies.length, code]).toEqual([0, status.UNAVAILABLE]);
    }
    expect(await askSecurely(grpcPort, own)).toBe('requestHeaders');
  });
});

describe('the address that a port is opened on', () => {
  it('--bind-address opens all ports on it, and that of one port goes first', async () => {
    const serve = await start('--bind-address=127.0.0.2', '--metrics-bind-address=127.0.0.3');
    const reaches = (host: string, port: number) =>
      new Promise<boolean>((resolve) => {
        const socket = connectTcp(port, host);
        cleanups.push(() => socket.destroy());
        socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      });
    const { grpcPort, healthPort, metricsPort } = serve;
    const hosts = ['127.0.0.1', '127.0.0.2', '127.0.0.3'];
    const reached = (port: number) => Promise.all(hosts.map((host) => reaches(host, port)));
    expect(await reached(grpcPort)).toEqual([false, true, false]);
    expect(await reached(healthPort)).toEqual([false, true, false]);
    expect(await reached(metricsPort)).toEqual([false, false, true]);
  });
});

function toBuffer(pem: string | undefined): Buffer | null {
  return pem === undefined ? null : Buffer.from(pem);
}
