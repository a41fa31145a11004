import { STATIC_TABLE } from './hpack/static-table.js';

/** Longest `grpc-message`; a longer text is cut. */
const MESSAGE_BYTES_MAX = 1_024;

/** gRPC status codes that the transport itself gives. */
export const GrpcStatus = {
  ok: 0,
  invalidArgument: 3,
  deadlineExceeded: 4,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
} as const;

/** A string of HPACK without Huffman code. */
function literal(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  return Buffer.concat([integer(0, 7, bytes.length), bytes]);
}

/** An integer of HPACK (RFC 7541, section 5.1). @param pattern bits in front of the prefix */
function integer(pattern: number, prefixBits: number, value: number): Buffer {
  const mask = (1 << prefixBits) - 1;
  if (value < mask) return Buffer.from([pattern | value]);
  const bytes = [pattern | mask];
  let rest = value - mask;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}

/**
 * A header block of literals that are never added to a table: it may be encoded once and sent on every connection,
 * since it neither reads nor changes the state of one. Names and values are ASCII.
 */
export function headerBlock(fields: readonly (readonly [name: string, value: string])[]): Buffer {
  return Buffer.concat(fields.map(([name, value]) => fieldLine(name, value)));
}

function fieldLine(name: string, value: string): Buffer {
  const whole = STATIC_TABLE.findIndex((field) => field[0] === name && field[1] === value && value !== '');
  if (whole >= 0) return integer(0x80, 7, whole + 1);
  const index = STATIC_TABLE.findIndex((field) => field[0] === name) + 1;
  const start = index > 0 ? integer(0, 4, index) : Buffer.concat([Buffer.from([0]), literal(name)]);
  return Buffer.concat([start, literal(value)]);
}

const RESPONSE_HEAD = [
  [':status', '200'],
  ['content-type', 'application/grpc'],
] as const;

/** In front of the first message. */
export const RESPONSE_HEADERS = headerBlock(RESPONSE_HEAD);
/** The end of a stream without an error. */
export const TRAILERS_OK = headerBlock([['grpc-status', '0']]);
/** Head and end of a stream that had no message. */
export const HEADERS_AND_TRAILERS_OK = Buffer.concat([RESPONSE_HEADERS, TRAILERS_OK]);

/**
 * The end of a stream with an error.
 * @param first nothing has been sent on the stream: the block is head and end in one
 */
export function errorTrailers(code: number, message: string, first: boolean): Buffer {
  const status = [
    ['grpc-status', String(code)],
    ['grpc-message', percentEncoded(message)],
  ] as const;
  return headerBlock(first ? [...RESPONSE_HEAD, ...status] : status);
}

/** The answer to something that is no gRPC call. */
export interface PlainAnswer {
  /** Header block. */
  readonly head: Buffer;
  readonly text: Buffer;
}

export function plainAnswerOf(status: number, text: string): PlainAnswer {
  const head = headerBlock([
    [':status', String(status)],
    ['content-type', 'text/plain'],
    ['content-length', String(Buffer.byteLength(text))],
  ]);
  return { head, text: Buffer.from(text) };
}

/** As gRPC writes status texts: UTF-8, with everything but printable ASCII and the percent sign itself as %XX. */
function percentEncoded(text: string): string {
  let encoded = '';
  for (const byte of Buffer.from(text, 'utf8').subarray(0, MESSAGE_BYTES_MAX)) {
    const plain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    encoded += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded;
}
