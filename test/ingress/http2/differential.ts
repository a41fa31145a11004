/**
 * The lean transport beside node:http2 (nghttp2): both serve the same method, both get the same bytes, and what their
 * handlers hear and what their clients get must be the same.
 */
import { once } from 'node:events';
import { createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { HeldBytes } from '../../../dist/src/ingress/byte-budget.js';
import type { ProcessHandler, ProcessStream } from '../../../dist/src/ingress/transport.js';
import { LeanTransport } from '../../../dist/src/ingress/transports/http2/lean.js';
import { type Frame, frame, message, PREFACE, parseFrames } from './frames.ts';
import type { Script } from './script-generator.ts';

/** What came of one stream. */
export interface StreamOutcome {
  /** Messages that the handler got. */
  readonly messages: string[];
  halfClosed: boolean;
}

/** What came of one script. */
export interface Outcome {
  /** Code of the GOAWAY; undefined = the connection stood. */
  goaway: number | undefined;
  /** The server closed the connection; its GOAWAY is lost when the client was still sending. */
  readonly closed: boolean;
  /** By stream: what the handler heard. */
  readonly heard: Map<number, StreamOutcome>;
  /** By stream: code of the server's reset, other than NO_ERROR. */
  readonly resets: Map<number, number>;
  /** By stream: the bytes of DATA, and whether the end came. */
  readonly replies: Map<number, { data: string; ended: boolean }>;
}

export interface Peer {
  readonly name: string;
  /** @param settleMs how long the server may still have something to say when it has read everything */
  run(script: Script, settleMs: number): Promise<Outcome>;
  close(): Promise<void>;
}

/** By the number of the stream. */
type Heard = Map<number, StreamOutcome>;

/**
 * Handlers do not see the numbers of their streams: the first message of each begins with its number, or their numbers
 * are 1, 3, 5 and so on in the order in which they are opened.
 */
export type Naming = 'first message' | 'order';

function numberOf(naming: Naming, firstMessage: string, order: number): number {
  return naming === 'order' ? 2 * order + 1 : Number.parseInt(firstMessage, 10);
}

function heardOf(heard: Heard, id: number): StreamOutcome {
  const known = heard.get(id) ?? { messages: [], halfClosed: false };
  heard.set(id, known);
  return known;
}

export async function leanPeer(naming: Naming = 'first message'): Promise<Peer> {
  const transport = new LeanTransport();
  let heard: Heard = new Map();
  let opened = 0;
  const open = (stream: ProcessStream): ProcessHandler => {
    const order = opened++;
    let own: StreamOutcome | undefined;
    return {
      message: (bytes, from, to) => {
        const text = bytes.toString('latin1', from, to);
        own ??= heardOf(heard, numberOf(naming, text, order));
        own.messages.push(text);
        stream.send(bytes.subarray(from, to));
      },
      halfClosed: () => {
        if (own !== undefined) own.halfClosed = true;
        stream.end();
      },
      overflowed: () => undefined,
      stalled: () => undefined,
      closed: () => undefined,
    };
  };
  const port = await transport.listen(
    {
      ...{
        host: '127.0.0.1',
        port: 0,
        reusePort: false,
        maxReceiveBytes: MESSAGE_BYTES_MAX,
        maxSendBytes: MESSAGE_BYTES_MAX,
      },
      ...{ streamsMax: 10_000, stallMs: 60_000, budget: new HeldBytes(1e9) },
    },
    open,
  );
  return {
    name: 'lean',
    run: (script, settleMs) => {
      heard = new Map();
      opened = 0;
      return play(port, script, settleMs, heard);
    },
    close: () => transport.close(),
  };
}

export async function nodePeer(naming: Naming = 'first message'): Promise<Peer> {
  let heard: Heard = new Map();
  let opened = 0;
  const server: Http2Server = createServer({
    settings: { initialWindowSize: 1_048_576 },
    // As many as the other side takes: the budgets themselves have tests of their own.
    ...{ streamResetBurst: 2 ** 30, streamResetRate: 2 ** 30, maxSessionInvalidFrames: 1_000_000 },
  });
  server.on('session', (session) => session.setLocalWindowSize(16 * 1024 * 1024));
  server.on('sessionError', () => undefined);
  server.on('stream', (stream) => {
    const order = opened++;
    serveStream(stream, heard, (text) => numberOf(naming, text, order));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    name: 'node:http2',
    run: (script, settleMs) => {
      heard = new Map();
      opened = 0;
      return play(port, script, settleMs, heard);
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

const MESSAGE_BYTES_MAX = 4_194_304;

/** The gRPC of the other side, as short as it can be. */
function serveStream(stream: ServerHttp2Stream, heard: Heard, name: (message: string) => number): void {
  let rest = Buffer.alloc(0);
  let own: StreamOutcome | undefined;
  stream.on('error', () => undefined);
  const respond = (): void => {
    if (stream.headersSent || stream.destroyed || stream.closed) return;
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  };
  let fault = false;
  stream.on('wantTrailers', () => {
    if (!stream.destroyed) stream.sendTrailers({ 'grpc-status': fault ? '13' : '0' });
  });
  const end = (): void => {
    respond();
    if (!stream.destroyed) stream.end();
  };
  stream.on('data', (chunk: Buffer) => {
    if (fault) return;
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 5) {
      fault = rest[0] !== 0 || rest.readUInt32BE(1) > MESSAGE_BYTES_MAX;
      if (fault) return end();
      if (rest.length < 5 + rest.readUInt32BE(1)) return;
      const content = rest.subarray(5, 5 + rest.readUInt32BE(1));
      rest = rest.subarray(5 + content.length);
      const text = content.toString('latin1');
      own ??= heardOf(heard, name(text));
      own.messages.push(text);
      respond();
      if (!stream.destroyed) stream.write(message(content));
    }
  });
  stream.on('end', () => {
    fault ||= rest.length > 0;
    // node:http2 also calls this when the connection goes: the stream is aborted then, its client has not ended it.
    if (own !== undefined && !fault && !stream.aborted) own.halfClosed = true;
    end();
  });
}

const FRAME_HEAD_BYTES = 9;
const SENTINELS = [Buffer.from('sentinel'), Buffer.from('SENTINEL')] as const;

/** Sends a script and waits until the server has answered all of it. @returns the answers */
async function play(port: number, { bytes: script, cuts }: Script, settleMs: number, heard: Heard): Promise<Outcome> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const received: Buffer[] = [];
  let over = (): void => undefined;
  const done = new Promise<void>((resolve) => {
    over = resolve;
  });
  let rounds = 0;
  socket.on('data', (bytes: Buffer) => {
    received.push(bytes);
    const sentinel = SENTINELS[rounds];
    if (sentinel === undefined || !Buffer.concat(received.slice(-2)).includes(sentinel)) return;
    rounds++;
    const next = SENTINELS[rounds];
    if (next === undefined) over();
    else socket.write(frame('PING', 0, 0, next));
  });
  socket.on('error', () => over());
  socket.on('close', () => over());
  await once(socket, 'connect');
  let at = 0;
  for (const cut of [...cuts, script.length]) {
    if (cut > at && !socket.destroyed) socket.write(script.subarray(at, cut));
    at = Math.max(at, cut);
    if (cuts.length > 0) await new Promise(setImmediate);
  }
  if (!socket.destroyed) socket.write(frame('PING', 0, 0, SENTINELS[0]));
  await done;
  if (settleMs > 0) await setTimeout(settleMs);
  const outcome = outcomeOf(Buffer.concat(received), heard, rounds < SENTINELS.length);
  socket.destroy();
  return outcome;
}

function outcomeOf(bytes: Buffer, heard: Heard, closed: boolean): Outcome {
  const outcome: Outcome = { goaway: undefined, closed, heard, resets: new Map(), replies: new Map() };
  for (const { type, flags, stream, payload } of parseFrames(bytes)) {
    if (type === 'GOAWAY') outcome.goaway ??= payload.readUInt32BE(4);
    if (type === 'RST_STREAM' && payload.readUInt32BE() !== 0) outcome.resets.set(stream, payload.readUInt32BE());
    if (type !== 'DATA' && type !== 'HEADERS') continue;
    const reply = outcome.replies.get(stream) ?? { data: '', ended: false };
    outcome.replies.set(stream, reply);
    if (type === 'DATA') reply.data += payload.toString('latin1');
    if ((flags & 1) !== 0) reply.ended = true;
  }
  return outcome;
}

/** Frames of a header block. */
const HEADS = ['HEADERS', 'CONTINUATION'] as const;

/**
 * Codes of GOAWAY (lean, node:http2; undefined = the connection stood) that differ on purpose at the first frame for
 * which one of them ends the connection of a client that breaks the protocol. RFC 9113 allows both in each case but the
 * third.
 */
const TOLERATED: readonly (readonly [
  ours: number | undefined,
  theirs: number | undefined,
  why: string,
  /** Types of that frame; absent = any. */
  types?: readonly Frame['type'][],
])[] = [
  [undefined, 5, 'a frame behind the end of its stream ends the stream here, the connection there'],
  [5, undefined, 'HEADERS behind the end of their stream are ignored there'],
  [1, undefined, 'HEADERS of a number below the last one are ignored there'],
  [undefined, 6, 'PRIORITY of a wrong size ends its stream here, as section 6.3 has it, the connection there'],
  [undefined, 2, 'an acknowledgement of a PING that was not sent ends the connection there'],
  [1, 5, 'a frame of a stream that is not open breaks two rules'],
  [5, 1, 'a frame of a stream that is not open breaks two rules'],
  [1, 6, 'a frame of a wrong size on a wrong stream breaks two rules'],
  [6, 1, 'a frame of a wrong size on a wrong stream breaks two rules'],
  [undefined, 0, 'a client that goes away is answered with a GOAWAY there', ['GOAWAY']],
  [
    undefined,
    1,
    'the last stream of a GOAWAY is checked there; a client that goes away keeps no stream here',
    ['GOAWAY'],
  ],
  [
    1,
    9,
    'a header block is decoded with each of its frames there, with its last one here: another frame comes before',
    HEADS,
  ],
  [1, 11, 'more than 32 values of a SETTINGS frame are a flood there, before its stream is looked at', ['SETTINGS']],
];
const STREAM_CLOSED = 5;
/** For node:http2 to call its handlers. */
const SETTLE_MS = 20;

/**
 * Run a script on both sides. node:http2 calls its handlers some turns after it has read: a difference counts when it
 * is there with time to settle as well.
 */
export async function compare(lean: Peer, node: Peer, script: Script): Promise<string | undefined> {
  let found: string | undefined;
  for (const settleMs of [0, 20, 200]) {
    const [a, b] = await Promise.all([lean.run(script, settleMs), node.run(script, settleMs)]);
    found = difference(script, a, b);
    if (found === undefined) return undefined;
  }
  return script.flawed && (await endsAsTolerated(lean, node, script)) ? undefined : found;
}

/**
 * Whether the connection of a script is ended differently on purpose: a script with several flaws goes on here behind a
 * frame that ends it there, and meets another end. Only the first of these frames is judged.
 */
async function endsAsTolerated(lean: Peer, node: Peer, { bytes, flawed, cuts }: Script): Promise<boolean> {
  let at = PREFACE.length;
  let frames = 0;
  for (const { type, payload } of parseFrames(bytes.subarray(PREFACE.length))) {
    at += FRAME_HEAD_BYTES + payload.length;
    frames++;
    const part: Script = { bytes: bytes.subarray(0, at), flawed, frames, cuts: cuts.filter((cut) => cut < at) };
    const [a, b] = await Promise.all([lean.run(part, SETTLE_MS), node.run(part, SETTLE_MS)]);
    if (a.goaway === undefined && b.goaway === undefined) continue;
    return a.goaway === b.goaway || tolerated(a.goaway, b.goaway, type);
  }
  return false;
}

function tolerated(ours: number | undefined, theirs: number | undefined, type: Frame['type']): boolean {
  return TOLERATED.some(([a, b, , types]) => a === ours && b === theirs && (types?.includes(type) ?? true));
}

/**
 * How two outcomes of a script differ; undefined when they do not. A connection that was ended for an error is compared
 * by that alone, and a stream that the client has reset by nothing: how far each side came with them is a matter of
 * time.
 */
export function difference({ bytes, flawed }: Script, a: Outcome, b: Outcome): string | undefined {
  if (flawed && a.closed && b.closed && (a.goaway === undefined || b.goaway === undefined)) return undefined;
  if (a.goaway !== b.goaway) {
    const common = TOLERATED.some(
      ([ours, theirs, , types]) => types === undefined && ours === a.goaway && theirs === b.goaway,
    );
    return flawed && common ? undefined : `goaway ${a.goaway} and ${b.goaway}`;
  }
  if (a.goaway !== undefined) return undefined;
  const frames = parseFrames(bytes.subarray(PREFACE.length));
  const reset = new Set(frames.filter(({ type }) => type === 'RST_STREAM').map(({ stream }) => stream));
  for (const id of new Set(frames.map(({ stream }) => stream))) {
    if (id === 0 || reset.has(id)) continue;
    const found = streamDifference(a, b, id, flawed);
    if (found !== undefined) return `stream ${id}: ${found}`;
  }
  return undefined;
}

function streamDifference(a: Outcome, b: Outcome, id: number, flawed: boolean): string | undefined {
  const [ours, theirs] = [a.resets.get(id), b.resets.get(id)];
  // A frame of a stream that was never opened, or is over, is answered here and ignored there.
  if (flawed && ours === STREAM_CLOSED) return undefined;
  if (ours !== theirs) return `reset with ${ours} and ${theirs}`;
  if (ours !== undefined) return undefined;
  const [left, right] = [JSON.stringify(a.heard.get(id)), JSON.stringify(b.heard.get(id))];
  if (left !== right) return firstDifference(left ?? 'nothing', right ?? 'nothing');
  const [reply, other] = [a.replies.get(id) ?? NO_REPLY, b.replies.get(id) ?? NO_REPLY];
  // A window that shrinks lets through what was sent before, which is a matter of time as well.
  const same = reply.data.startsWith(other.data) || other.data.startsWith(reply.data);
  if (!same) return firstDifference(reply.data, other.data);
  if (reply.ended && other.ended && reply.data !== other.data) return 'replies of different lengths';
  return undefined;
}

const NO_REPLY = { data: '', ended: false };

function firstDifference(a: string, b: string): string {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at++;
  const around = (text: string): string => `${text.slice(Math.max(0, at - 60), at + 60)} (${text.length})`;
  return `${around(a)} and ${around(b)}`;
}
