// Records what Envoy sends on its ext_proc connection: `npm run capture-envoy -- /path/to/envoy …` (without a path the
// installed one). Writes test/ingress/http2/captures/{version}-{scenario}.gz, which a test replays. Envoys of other
// versions: `ENVOY_VERSION=1.38.3 sh scripts/install-envoy.sh`.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants } from 'node:http2';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { findEnvoy } from '../dist/tools/demo/envoy-process.js';
import { ANSWER_HEADERS, startSoakServer } from '../test/envoy/soak/model-server.ts';
import { startPicker } from '../test/envoy/soak/picker.ts';
import { SMALLEST_WINDOWS, startProxy, type Windows } from '../test/envoy/soak/proxy.ts';
import { PROCESS } from '../test/ingress/http2/frames.ts';

const FOLDER = new URL('../test/ingress/http2/captures/', import.meta.url);
/** Time for Envoy to send its last frames after the last answer. */
const QUIET_MS = 500;
const ANSWER_MS = 100;
/** Answer that is reset as soon as it has begun. */
const LONG_ANSWER_MS = 5_000;

interface Asked {
  readonly bytes: number;
  readonly chunks?: number;
  readonly answerBytes?: number;
  readonly trailers?: boolean;
  readonly answerMs?: number;
}

/** A request; resolves when its answer has ended, or it was reset. */
function ask(session: ClientHttp2Session, asked: Asked): ClientHttp2Stream {
  const { bytes, chunks = 1, answerBytes = 200, trailers = false, answerMs = ANSWER_MS } = asked;
  const stream = session.request(
    {
      ':method': 'POST',
      ':path': '/v1/chat/completions',
      'content-type': 'application/json',
      [ANSWER_HEADERS.bytes]: answerBytes,
      [ANSWER_HEADERS.ms]: answerMs,
      [ANSWER_HEADERS.chunks]: chunks,
    },
    { waitForTrailers: trailers },
  );
  stream.on('wantTrailers', () => stream.sendTrailers({ 'x-soak-end': 'yes' }));
  stream.on('error', () => undefined);
  const content = 'words of a prompt '.repeat(Math.ceil(bytes / 18)).slice(0, bytes);
  stream.end(JSON.stringify({ model: 'm', stream: chunks > 1, messages: [{ role: 'user', content }] }));
  stream.resume();
  return stream;
}

/** Goes away in the middle of the answer. */
async function resetAnswer(stream: ClientHttp2Stream): Promise<void> {
  await once(stream, 'response');
  stream.close(constants.NGHTTP2_CANCEL);
  await ended(stream);
}

const ended = (stream: ClientHttp2Stream) => (stream.closed ? undefined : once(stream, 'close'));

interface Scenario {
  /** Windows towards the picker; absent = Envoy's own. */
  readonly windows?: Windows;
  run(session: ClientHttp2Session): Promise<unknown>;
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  chat: { run: async (session) => ended(ask(session, { bytes: 1_000 })) },
  'streamed-answer': { run: async (session) => ended(ask(session, { bytes: 1_000, chunks: 20 })) },
  'body-of-400-kb': {
    windows: SMALLEST_WINDOWS,
    run: async (session) => ended(ask(session, { bytes: 400_000, answerBytes: 100_000 })),
  },
  trailers: { run: async (session) => ended(ask(session, { bytes: 1_000, chunks: 5, trailers: true })) },
  'reset-by-client': {
    run: async (session) => {
      await resetAnswer(ask(session, { bytes: 1_000, chunks: 20, answerMs: LONG_ANSWER_MS }));
      // A request after the reset, on the same connection.
      await ended(ask(session, { bytes: 500 }));
    },
  },
  'several-at-once': {
    run: async (session) => {
      const shapes: Asked[] = [{ bytes: 4_000 }, { bytes: 4_000, chunks: 5 }, { bytes: 20_000, trailers: true }];
      const left = ask(session, { bytes: 4_000, chunks: 20, answerMs: LONG_ANSWER_MS });
      const streams = [...shapes, ...shapes].map((asked) => ask(session, asked));
      await Promise.all([resetAnswer(left), ...streams.map(ended)]);
    },
  },
};

/** Passes connections on to the picker and keeps what they bring. */
async function startRecorder(pickerPort: number) {
  const connections: Buffer[][] = [];
  const server = createServer((socket) => {
    const bytes: Buffer[] = [];
    connections.push(bytes);
    const picker = connect(pickerPort, '127.0.0.1');
    socket.on('data', (piece) => bytes.push(piece));
    socket.pipe(picker).pipe(socket);
    for (const end of [socket, picker]) {
      end.on('error', () => undefined);
      end.on('close', () => [socket, picker].map((each) => each.destroy()));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  // Health checks have a connection of their own.
  const captures = () => connections.map((pieces) => Buffer.concat(pieces)).filter(hasStreams);
  return { port, captures, close: () => server.close() };
}

/**
 * Whether a connection carried ext_proc streams, and not health checks alone. Envoy writes their path in plain text or
 * in Huffman code.
 */
function hasStreams(bytes: Buffer): boolean {
  return bytes.includes(PROCESS) || bytes.includes('/v1/chat/completions');
}

async function capture(binary: string, pickerPort: number, scenario: Scenario): Promise<Buffer> {
  const recorder = await startRecorder(pickerPort);
  const proxy = await startProxy(binary, recorder.port, scenario.windows);
  const session = connectHttp2(`http://127.0.0.1:${proxy.port}`);
  session.on('error', () => undefined);
  try {
    await scenario.run(session);
    await setTimeout(QUIET_MS);
    const captures = recorder.captures();
    if (captures.length !== 1) throw new Error(`${captures.length} connections with streams`);
    return captures[0]!;
  } finally {
    session.destroy();
    await proxy.stop();
    recorder.close();
  }
}

function versionOf(binary: string): string {
  const { stdout } = spawnSync(binary, ['--version'], { encoding: 'utf8' });
  const version = /\/(\d+\.\d+\.\d+)\//.exec(stdout)?.[1];
  if (version === undefined) throw new Error(`${binary} --version does not say a version: ${stdout}`);
  return version;
}

const installed = findEnvoy();
const binaries = process.argv.length > 2 ? process.argv.slice(2) : installed === undefined ? [] : [installed];
if (binaries.length === 0) throw new Error('no Envoy found: run scripts/install-envoy.sh or name one');
mkdirSync(FOLDER, { recursive: true });
const stops: (() => Promise<unknown>)[] = [];
try {
  const server = await startSoakServer('server-0');
  stops.push(() => server.stop());
  const picker = await startPicker([server], 'lean', stops);
  for (const binary of binaries) {
    for (const [name, scenario] of Object.entries(SCENARIOS)) {
      const bytes = await capture(binary, picker.grpcPort, scenario);
      const packed = gzipSync(bytes, { level: 9 });
      const file = `${versionOf(binary)}-${name}.gz`;
      writeFileSync(new URL(file, FOLDER), packed);
      console.log(`${file}: ${bytes.length} bytes, ${packed.length} packed`);
    }
  }
} finally {
  for (const stop of stops.reverse()) await stop();
}
