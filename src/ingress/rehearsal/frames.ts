// Bytes that a proxy or an attacker would send, for the rehearsal.
import { field, text, varintField } from '../../runtime/protobuf.js';
import { PROCESS_PATH } from '../transport.js';
import {
  ErrorCode,
  FLAG_END_HEADERS,
  FLAG_END_STREAM,
  FRAME_HEADER_BYTES,
  FrameType,
  PREFACE,
} from '../transports/http2/protocol.js';
import { headerBlock } from '../transports/http2/reply-headers.js';
import { frame, prefixed, STREAM_AT, uint32 } from '../transports/http2/whole-frames.js';

/** Bodies of 4 KB, as `npm run bench -- wire` sends them. */
const PROMPT_BYTES = 4_000;
/** Digits at the end of the prompt, by which the exchanges differ. */
const SERIAL_DIGITS = 9;
/** Messages of a streamed answer before its last one. */
const CHUNKS = 6;
/** Announced length of a message that does not end. */
const UNFINISHED_BYTES = 1_000_000;
const SETTING_INITIAL_WINDOW = 4;

const CALL_FIELDS = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', PROCESS_PATH],
  [':authority', 'picker'],
  ['te', 'trailers'],
  ['content-type', 'application/grpc'],
] as const;

/** DATA frame of one gRPC message. */
function data(message: Uint8Array, flags = 0, compressed = 0): Buffer {
  const bytes = prefixed(message);
  bytes[0] = compressed;
  return frame(FrameType.data, flags, bytes);
}

function headers(phase: number, pairs: readonly (readonly [string, string])[]): Buffer {
  const map = pairs.map(([name, value]) => field(1, field(1, text(name)), field(3, text(value))));
  return field(phase, field(1, ...map));
}

function body(phase: number, content: string, isLast = true): Buffer {
  return field(phase, field(1, text(content)), isLast ? varintField(2, 1) : Buffer.alloc(0));
}

const CALL = frame(FrameType.headers, FLAG_END_HEADERS, headerBlock(CALL_FIELDS));
const RESET = frame(FrameType.rstStream, 0, uint32(ErrorCode.cancel));

/** Frames of one request: the call, its headers and its body. */
function request(path: string, streams: boolean): readonly [Buffer, Buffer, Buffer] {
  const prompt = 'a '.repeat((PROMPT_BYTES - SERIAL_DIGITS) / 2) + '0'.repeat(SERIAL_DIGITS);
  const asked = path.includes('chat') ? { messages: [{ role: 'user', content: prompt }] } : { prompt };
  const content = JSON.stringify({ model: 'rehearsal', ...asked, max_tokens: 16, stream: streams });
  const head = headers(2, [
    [':method', 'POST'],
    [':path', path],
    [':authority', 'models'],
    [':scheme', 'https'],
    ['content-type', 'application/json'],
    ['user-agent', 'rehearsal'],
    ['x-request-id', '00000000-0000-0000-0000-000000000000'],
    ['x-forwarded-for', '127.0.0.1'],
  ]);
  return [CALL, data(head), data(body(4, content))];
}

/** Frames of an answer, which end the call. */
function answer(streams: boolean): Buffer {
  const usage = { prompt_tokens: 1_000, completion_tokens: 16, total_tokens: 1_016 };
  const type = streams ? 'text/event-stream' : 'application/json';
  const head = data(
    headers(3, [
      [':status', '200'],
      ['content-type', type],
    ]),
  );
  const end = JSON.stringify({ choices: [], usage });
  if (!streams) return Buffer.concat([head, data(body(5, end), FLAG_END_STREAM)]);
  const chunk = data(body(5, 'data: {"choices":[{"index":0,"delta":{"content":" word"}}]}\n\n', false));
  const last = data(body(5, `data: ${end}\n\ndata: [DONE]\n\n`), FLAG_END_STREAM);
  return Buffer.concat([head, ...Array.from({ length: CHUNKS }, () => chunk), last]);
}

/** Frames of stream 0, to be numbered: those of proxies, then those of attackers. */
export type Script = ReturnType<typeof makeScript>;

export function makeScript() {
  const [call, head, content] = request('/v1/chat/completions', false);
  const compressed = headerBlock([...CALL_FIELDS, ['grpc-encoding', 'gzip']]);
  const json = answer(false);
  const streamed = answer(true);
  const whole = (path: string, streams: boolean) =>
    Buffer.concat([...request(path, streams), streams ? streamed : json]);
  return {
    /** JSON more often than streams: an exchange of these is several messages. */
    exchanges: ['/v1/chat/completions', '/v1/completions'].flatMap((path) => {
      const one = whole(path, false);
      return [one, whole(path, true), one];
    }),
    answer: json,
    reset: RESET,
    rapidReset: Buffer.concat([CALL, RESET]),
    request: Buffer.concat([call, head, content]),
    held: Buffer.concat([call, head]),
    resetBody: Buffer.concat([call, head, RESET]),
    compressed: Buffer.concat([
      frame(FrameType.headers, FLAG_END_HEADERS, compressed),
      data(Buffer.alloc(64), 0, 1),
      RESET,
    ]),
    begun: Buffer.concat([CALL, frame(FrameType.data, 0, Buffer.concat([Buffer.from([0]), uint32(UNFINISHED_BYTES)]))]),
    piece: frame(FrameType.data, 0, Buffer.alloc(1_024)),
    call: CALL,
    tiny: data(Buffer.alloc(1)),
  };
}

/** First bytes of a connection. @param windowBytes that its streams give to replies */
export function beginning(windowBytes: number): Buffer {
  const setting = Buffer.concat([Buffer.from([0, SETTING_INITIAL_WINDOW]), uint32(windowBytes)]);
  return Buffer.concat([PREFACE, frame(FrameType.settings, 0, setting)]);
}

/** Takes so many bytes, so that the window of the connection stays open. */
export function windowUpdate(bytes: number): Buffer {
  return frame(FrameType.windowUpdate, 0, uint32(bytes));
}

/** The frames on the stream `stream`, with another prompt. */
export function numbered(frames: Buffer, stream: number): Buffer {
  const bytes = Buffer.from(frames);
  for (let at = 0; at < bytes.length; at += FRAME_HEADER_BYTES + bytes.readUIntBE(at, 3)) {
    bytes.writeUInt32BE(stream, at + STREAM_AT);
  }
  const serial = String(stream).padStart(SERIAL_DIGITS, '0');
  const place = bytes.lastIndexOf('0'.repeat(SERIAL_DIGITS));
  if (place >= 0) bytes.write(serial, place, 'latin1');
  return bytes;
}
