import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { credentials } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import { selfSignedCertificate } from '../../dist/src/ingress/certificate.js';
import { PREFACE, settings } from '../ingress/http2/frames.ts';
import { dialPicker } from '../ingress/proxy-client.ts';
import { TEST_CERTIFICATE, TEST_KEY } from '../ingress/tls-material.ts';
import { eventually } from '../tools/gateway/client.ts';
import { askAndEnd, metric, PROGRAM, type ServeProcess, Setting, startServe } from './serving.ts';

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

/** A connection without TLS. */
async function open(port: number, bytes?: Buffer): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  cleanups.push(() => socket.destroy());
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  if (bytes !== undefined) socket.write(bytes);
  return socket;
}

async function answered(port: number, channel: ReturnType<typeof credentials.createSsl>): Promise<number> {
  const client = dialPicker(port, channel);
  cleanups.push(() => client.close());
  return (await askAndEnd(client, 'hello')).replies.length;
}

const refused = ({ metricsPort }: ServeProcess, reason: string) =>
  metric(metricsPort, 'pointsman_shard_refused_connections_total', `shard="1",reason="${reason}"`);

/** Lines of the log with this text. */
const lines = (serve: ServeProcess, text: string) =>
  serve
    .log()
    .split('\n')
    .filter((line) => line.includes(text));

/** Flags and credentials of a picker that asks for certificates of its clients. */
async function withClientCertificates() {
  const folder = await mkdtemp(join(tmpdir(), 'pointsman-handshakes-'));
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  const client = await selfSignedCertificate();
  await writeFile(join(folder, 'tls.crt'), TEST_CERTIFICATE);
  await writeFile(join(folder, 'tls.key'), TEST_KEY);
  await writeFile(join(folder, 'clients.pem'), client.cert);
  const server = Buffer.from(TEST_CERTIFICATE);
  return {
    flags: [`--cert-path=${folder}`, `--client-ca-file=${join(folder, 'clients.pem')}`],
    pair: { key: client.key, cert: client.cert },
    channel: () => credentials.createSsl(server, Buffer.from(client.key), Buffer.from(client.cert)),
    stranger: async () => {
      const { key, cert } = await selfSignedCertificate();
      return credentials.createSsl(server, Buffer.from(key), Buffer.from(cert));
    },
    without: () => credentials.createSsl(server),
  };
}

const unverified = () => credentials.createSsl(null, null, null, { rejectUnauthorized: false });

describe.each([
  ['lean', false],
  ['lean', true],
  ['grpc-js', false],
] as const)('unfinished TLS handshakes over %s, client certificates %s', (transport, certificates) => {
  it('unfinished TLS handshakes leave the port to a proxy, and are closed after ten seconds', async () => {
    const asked = certificates ? await withClientCertificates() : undefined;
    const serve = await start(`--transport=${transport}`, '--max-connections=16', ...(asked?.flags ?? []));
    // Half of them send the beginning of a ClientHello.
    const record = Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]);
    const held = await Promise.all(
      Array.from({ length: 1_024 }, (_, i) => open(serve.grpcPort, i % 2 === 0 ? undefined : record)),
    );
    expect(await answered(serve.grpcPort, (asked?.channel ?? unverified)())).toBeGreaterThan(0);
    await eventually('they are counted', async () => {
      return ((await metric(serve.metricsPort, 'pointsman_shard_tls_handshakes', 'shard="1"')) ?? 0) > 1_000;
    });
    await eventually('all are closed', () => held.every(({ closed }) => closed), 30_000);
    await eventually('their end is counted', async () => (await refused(serve, 'handshake_timeout'))! > 1_000);
    expect(lines(serve, 'no TLS handshake within 10 s')).toHaveLength(1);
  }, 60_000);
});

describe('the metrics port with TLS', () => {
  it('the metrics port with TLS answers beside connections that say nothing', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'pointsman-metrics-'));
    cleanups.push(() => rm(folder, { recursive: true, force: true }));
    await writeFile(join(folder, 'tls.crt'), TEST_CERTIFICATE);
    await writeFile(join(folder, 'tls.key'), TEST_KEY);
    await writeFile(join(folder, 'token'), 'secret');
    const serve = await start(`--metrics-cert-dir=${folder}`, `--metrics-auth-token-file=${join(folder, 'token')}`);
    for (let i = 0; i < 100; i++) await open(serve.metricsPort);
    const [response] = (await once(
      get({
        host: '127.0.0.1',
        port: serve.metricsPort,
        path: '/metrics',
        rejectUnauthorized: false,
        headers: { authorization: 'Bearer secret' },
      }),
      'response',
    )) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    response.resume();
    const plain = await open(serve.metricsPort, Buffer.from('GET /metrics HTTP/1.1\r\n\r\n'));
    if (!plain.closed) await once(plain, 'close');
    await eventually('it is told', () => lines(serve, 'plain text on the TLS port of the metrics').length === 1);
  });
});

describe('plain text on the TLS port', () => {
  it('plain text on the TLS port is closed at once, counted, and one line with the remedy in the log', async () => {
    const serve = await start();
    for (let i = 0; i < 5; i++) {
      const socket = await open(serve.grpcPort, Buffer.concat([PREFACE, settings()]));
      if (!socket.closed) await once(socket, 'close');
    }
    await eventually('each is counted', async () => (await refused(serve, 'plain_text')) === 5);
    const found = lines(serve, 'plain text on the TLS port');
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(/provider\.name=istio.*--secure-serving=false/);
    expect(await answered(serve.grpcPort, unverified())).toBeGreaterThan(0);
  });

  it('plain text on the TLS port is named by pointsman doctor', async () => {
    const serve = await start();
    const socket = await open(serve.grpcPort, PREFACE);
    if (!socket.closed) await once(socket, 'close');
    await eventually('it is counted', async () => (await refused(serve, 'plain_text')) === 1);
    const knocking = setInterval(() => void open(serve.grpcPort, PREFACE), 200);
    cleanups.push(() => clearInterval(knocking));
    const { code, stdout } = await doctor(`http://127.0.0.1:${serve.metricsPort}`);
    expect(code).toBe(2);
    expect(stdout).toMatch(/error +TLS +connections of plain text .*: \d+ just now/);
    expect(stdout).toContain('--secure-serving=false');
  });
});

describe('renegotiation in TLS 1.2', () => {
  it.each([false, true])('renegotiation in TLS 1.2 is refused, client certificates %s', async (certificates) => {
    const asked = certificates ? await withClientCertificates() : undefined;
    const serve = await start(...(asked?.flags ?? []));
    const options = {
      host: '127.0.0.1',
      port: serve.grpcPort,
      rejectUnauthorized: false,
      maxVersion: 'TLSv1.2',
    } as const;
    const socket = connectTls({ ...options, ...asked?.pair, ALPNProtocols: ['h2'] });
    cleanups.push(() => socket.destroy());
    socket.on('error', () => undefined);
    await once(socket, 'secureConnect');
    const refusal = await new Promise<Error | null>((resolve) => {
      socket.once('close', () => resolve(new Error('closed')));
      socket.once('error', resolve);
      socket.renegotiate({ rejectUnauthorized: false }, resolve);
    });
    expect(refusal).toBeInstanceOf(Error);
    expect(await answered(serve.grpcPort, (asked?.channel ?? unverified)())).toBeGreaterThan(0);
  });
});

describe('certificates of clients', () => {
  it('certificates of clients that are refused are counted, with one line that says what is wrong', async () => {
    const { flags, channel, stranger, without } = await withClientCertificates();
    const serve = await start(...flags);
    expect(await answered(serve.grpcPort, await stranger())).toBe(0);
    await eventually('a foreign one is counted', async () => (await refused(serve, 'client_certificate'))! >= 1);
    const before = (await refused(serve, 'client_certificate'))!;
    expect(await answered(serve.grpcPort, without())).toBe(0);
    await eventually('a missing one is counted', async () => (await refused(serve, 'client_certificate'))! > before);
    const found = lines(serve, 'certificates of clients were refused');
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(/"peer":"[^"]*127\.0\.0\.1","error":"DEPTH_ZERO_SELF_SIGNED_CERT"/);
    expect(await answered(serve.grpcPort, channel())).toBeGreaterThan(0);
    expect(await refused(serve, 'handshake_failed')).toBe(0);
  });
});

function doctor(url: string): Promise<{ readonly code: number; readonly stdout: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, 'doctor', '--seconds=2', '--picker', url], (error, stdout) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout });
    });
  });
}
