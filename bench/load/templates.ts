// Frames of whole exchanges, written once: stream numbers and serial numbers are put into them, then they are copied as
// they are.

import { requestBody, requestHeaders, responseBody, responseHeaders } from '../../test/ingress/envoy-messages.ts';
import { data, END_HEADERS, END_STREAM, frame, message } from '../../test/ingress/http2/frames.ts';
import { chatHeaders, exchange } from '../stream.ts';

/** Bytes of the prompt that differ from request to request. */
const SERIAL_DIGITS = 12;
/** The last bytes of a body are the request's own; others share what is before them. */
const OWN_BYTES = 2_048;
const SERIAL_PLACE = 'x'.repeat(SERIAL_DIGITS);
/** Pieces in which Envoy sends a body, and DATA frames of the usual size. */
const PIECE_BYTES = 32_768;
const FRAME_BYTES = 16_384;

function literal(text: string): Buffer {
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);
}

/** Header blocks as a proxy writes them: literals once, entries of the dynamic table from then on. */
export function headerBlocks(): { readonly first: Buffer; readonly later: Buffer } {
  const fields = [
    [':path', '/envoy.service.ext_proc.v3.ExternalProcessor/Process'],
    [':authority', 'picker'],
    ['te', 'trailers'],
    ['content-type', 'application/grpc'],
  ];
  const literals = fields.map(([name, value]) => Buffer.concat([Buffer.from([0x40]), literal(name!), literal(value!)]));
  const head = Buffer.from([0x83, 0x86]);
  return {
    first: Buffer.concat([head, ...literals]),
    later: Buffer.concat([head, Buffer.from([65, 64, 63, 62].map((i) => 0x80 | i))]),
  };
}

/** DATA frames of one message on stream 1. */
export function framed(content: Buffer, flags = 0): Buffer {
  const bytes = message(content);
  const frames: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += FRAME_BYTES) {
    const isLast = at + FRAME_BYTES >= bytes.length;
    frames.push(data(1, bytes.subarray(at, at + FRAME_BYTES), isLast ? flags : 0));
  }
  return Buffer.concat(frames);
}

/** Messages of a body in the pieces of a proxy. */
export function framedBody(body: Buffer): Buffer {
  const frames: Buffer[] = [];
  for (let at = 0; at < body.length; at += PIECE_BYTES) {
    const isLast = at + PIECE_BYTES >= body.length;
    frames.push(framed(requestBody(body.subarray(at, at + PIECE_BYTES), isLast)));
  }
  return Buffer.concat(frames);
}

/** Frames of one part of an exchange. */
export interface Template {
  readonly bytes: Buffer;
  /** Where stream numbers lie. */
  readonly streams: readonly number[];
  /** Where the serial number of the prompt lies; -1 = nowhere. */
  readonly serial: number;
  readonly dataBytes: number;
}

/** @param own where the request's own part of the prompt may begin, in bytes; absent = in its last 2 KB */
function template(frames: Buffer, own = Math.max(0, frames.length - OWN_BYTES)): Template {
  const streams: number[] = [];
  let dataBytes = 0;
  for (let at = 0; at < frames.length; at += 9 + frames.readUIntBE(at, 3)) {
    streams.push(at + 5);
    if (frames[at + 3] === 0) dataBytes += frames.readUIntBE(at, 3);
  }
  const serial = frames.indexOf(SERIAL_PLACE, own);
  if (serial >= 0) frames.write(String(Math.trunc(Math.random() * 1e9)).padStart(SERIAL_DIGITS, '0'), serial, 'latin1');
  return { bytes: frames, streams, serial, dataBytes };
}

/** Adds 1 to the decimal number of so many digits. */
function countUp(bytes: Buffer, at: number): void {
  for (let i = at + SERIAL_DIGITS - 1; i >= at; i--) {
    if (bytes[i]! < 0x39) {
      bytes[i]!++;
      return;
    }
    bytes[i] = 0x30;
  }
}

/** Makes a template the next request on a stream. */
export function renew({ bytes, streams, serial }: Template, stream: number): void {
  for (const at of streams) bytes.writeUInt32BE(stream, at);
  if (serial >= 0) countUp(bytes, serial);
}

/** What a proxy sends in one exchange, in the order in which it does. */
export interface ExchangeTemplates {
  /** On a connection on which nothing was sent. */
  readonly firstRequest: Template;
  readonly request: Template;
  /** When the request is placed. */
  readonly answer: Template;
  /** One token of a streamed answer, and its end; absent = `answer` is all of it. */
  readonly token?: Template;
  readonly end?: Template;
}

function requests(messages: Buffer, own?: number): Pick<ExchangeTemplates, 'firstRequest' | 'request'> {
  const { first, later } = headerBlocks();
  const with_ = (block: Buffer): Template =>
    template(Buffer.concat([frame('HEADERS', END_HEADERS, 1, block), messages]), own);
  return { firstRequest: with_(first), request: with_(later) };
}

/** A chat of 4 KB, answered in one piece. */
export function chatTemplates(): ExchangeTemplates {
  const [head, body, rest, answerHead, answerBody] = exchange().map((bytes) => message(bytes));
  return {
    ...requests(Buffer.concat([data(1, head!), data(1, body!), data(1, rest!)])),
    answer: template(Buffer.concat([data(1, answerHead!), data(1, answerBody!, END_STREAM)])),
  };
}

/** A chunk as vLLM writes it. */
const TOKEN =
  'data: ' +
  '{"id":"chatcmpl-7f6c0f4e8e3a4d0c9d294d2a5b7c1d10","object":"chat.completion.chunk","created":1763850000,' +
  '"model":"llama","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}\n\n';

/** A prompt whose second half is the request's own, with an answer that comes token by token. */
export function streamedTemplates(promptBytes: number, tokens: number): ExchangeTemplates {
  const content = 'x'.repeat(promptBytes);
  const messages = [{ role: 'user', content }];
  const body = Buffer.from(JSON.stringify({ model: 'llama', messages, stream: true, max_tokens: tokens }));
  const frames = Buffer.concat([framed(requestHeaders(chatHeaders(body.length))), framedBody(body)]);
  const usage = { prompt_tokens: promptBytes / 4, completion_tokens: tokens, total_tokens: promptBytes / 4 + tokens };
  const last = `data: {"choices":[],"usage":${JSON.stringify(usage)}}\n\ndata: [DONE]\n\n`;
  return {
    ...requests(frames, frames.length >> 1),
    answer: template(framed(responseHeaders({ ':status': '200', 'content-type': 'text/event-stream' }))),
    token: template(framed(responseBody(TOKEN, false))),
    end: template(framed(responseBody(last, true), END_STREAM)),
  };
}
