import { threadClockMs } from '../runtime/pool-clock.js';
import { field, text, varintField } from '../runtime/protobuf.js';
import { HeldBytes } from './byte-budget.js';
import { PROCESS_PATH, type StreamEntry } from './transport.js';
import { type ConnectionWire, Http2Connection } from './transports/http2/connection.js';
import { FLAG_END_HEADERS, FLAG_END_STREAM, FrameType, PREFACE } from './transports/http2/protocol.js';
import { headerBlock } from './transports/http2/reply-headers.js';

/** Exchanges of one turn of the event loop. */
const BATCH = 16;
/** Bodies of 4 KB, as `npm run bench -- wire` sends them. */
const PROMPT_BYTES = 4_000;
/** Digits at the end of the prompt, by which the exchanges differ. */
const SERIAL_DIGITS = 9;
const WINDOW_BYTES = 2 ** 30;
const SETTING_INITIAL_WINDOW = 4;

const CALL = headerBlock([
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', PROCESS_PATH],
  [':authority', 'picker'],
  ['te', 'trailers'],
  ['content-type', 'application/grpc'],
]);

function frame(type: number, flags: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  return Buffer.concat([head, payload]);
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** DATA frame of one gRPC message. */
function data(message: Buffer, flags = 0): Buffer {
  return frame(FrameType.data, flags, Buffer.concat([Buffer.from([0]), number(message.length), message]));
}

function headers(phase: number, pairs: readonly (readonly [string, string])[]): Buffer {
  const map = pairs.map(([name, value]) => field(1, field(1, text(name)), field(3, text(value))));
  return field(phase, field(1, ...map));
}

function body(phase: number, content: string): Buffer {
  return field(phase, field(1, text(content)), varintField(2, 1));
}

/**
 * One exchange of a proxy: frames of stream 0, to be numbered.
 * @param path of the request, which chooses the dialect
 */
function exchange(path: string): Buffer {
  const prompt = 'a '.repeat((PROMPT_BYTES - SERIAL_DIGITS) / 2) + '0'.repeat(SERIAL_DIGITS);
  const request = { model: 'rehearsal', messages: [{ role: 'user', content: prompt }], prompt, max_tokens: 16 };
  const usage = { prompt_tokens: 1_000, completion_tokens: 16, total_tokens: 1_016 };
  const requestHead = [
    [':method', 'POST'],
    [':path', path],
    [':authority', 'models'],
    [':scheme', 'https'],
    ['content-type', 'application/json'],
    ['user-agent', 'rehearsal'],
    ['x-request-id', '00000000-0000-0000-0000-000000000000'],
    ['x-forwarded-for', '127.0.0.1'],
  ] as const;
  const responseHead = [
    [':status', '200'],
    ['content-type', 'application/json'],
  ] as const;
  return Buffer.concat([
    frame(FrameType.headers, FLAG_END_HEADERS, CALL),
    data(headers(2, requestHead)),
    data(body(4, JSON.stringify(request))),
    data(headers(3, responseHead)),
    data(body(5, JSON.stringify({ choices: [], usage })), FLAG_END_STREAM),
  ]);
}

/** The frames on the stream `stream`, with another prompt. */
function numbered(frames: Buffer, stream: number): Buffer {
  const bytes = Buffer.from(frames);
  for (let at = 0; at < bytes.length; at += 9 + bytes.readUIntBE(at, 3)) bytes.writeUInt32BE(stream, at + 5);
  const serial = String(stream).padStart(SERIAL_DIGITS, '0');
  const place = bytes.lastIndexOf('0'.repeat(SERIAL_DIGITS));
  if (place >= 0) bytes.write(serial, place, 'latin1');
  return bytes;
}

/**
 * Plays whole exchanges through a connection in memory, so that the code of the transport, the streams and the core is
 * compiled before the first request. Everything behind `open` must be thrown away afterwards.
 * @returns the number of exchanges
 */
export async function rehearse(open: StreamEntry, timeMs: number): Promise<number> {
  let sent = 0;
  const wire: ConnectionWire = {
    write: (bytes) => {
      sent += bytes.length;
    },
    end: () => undefined,
    unsent: 0,
  };
  const connection = new Http2Connection(wire, {
    methods: new Map([[PROCESS_PATH, { open }]]),
    budget: new HeldBytes(WINDOW_BYTES),
    heldBytesMax: WINDOW_BYTES,
    messageBytesMax: WINDOW_BYTES,
    replyBytesMax: WINDOW_BYTES,
    streamsMax: 10 * BATCH,
    stallMs: Number.POSITIVE_INFINITY,
    now: threadClockMs,
  });
  const say = (bytes: Buffer): void => connection.receive(bytes, 0, bytes.length);
  const setting = Buffer.concat([Buffer.from([0, SETTING_INITIAL_WINDOW]), number(WINDOW_BYTES)]);
  say(Buffer.concat([PREFACE, frame(FrameType.settings, 0, setting)]));
  const script = exchange('/v1/chat/completions');
  const end = threadClockMs() + timeMs;
  let stream = 1;
  while (threadClockMs() < end && !connection.isClosed) {
    const batch: Buffer[] = [];
    for (let i = 0; i < BATCH; i++, stream += 2) batch.push(numbered(script, stream));
    // Takes everything that was sent, so that the window of the connection stays open.
    if (sent > 0) batch.unshift(frame(FrameType.windowUpdate, 0, number(sent)));
    sent = 0;
    say(Buffer.concat(batch));
    await new Promise((resolve) => setImmediate(resolve));
  }
  connection.destroy();
  return (stream - 1) / 2;
}
