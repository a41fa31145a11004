/** HTTP/2 frames by hand, written from RFC 9113 and apart from the code under test. */

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
export const PROCESS = '/envoy.service.ext_proc.v3.ExternalProcessor/Process';

const TYPES = [
  'DATA',
  'HEADERS',
  'PRIORITY',
  'RST_STREAM',
  'SETTINGS',
  'PUSH_PROMISE',
  'PING',
  'GOAWAY',
  'WINDOW_UPDATE',
  'CONTINUATION',
] as const;
export type FrameName = (typeof TYPES)[number];

export const END_STREAM = 1;
export const ACK = 1;
export const END_HEADERS = 4;
export const PADDED = 8;
export const PRIORITY_FLAG = 32;

export interface Frame {
  readonly type: FrameName | number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export function frame(type: FrameName | number, flags: number, stream: number, ...payload: readonly Buffer[]): Buffer {
  const content = Buffer.concat(payload);
  const head = Buffer.alloc(9);
  head.writeUIntBE(content.length, 0, 3);
  head[3] = typeof type === 'number' ? type : TYPES.indexOf(type);
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, content]);
}

export function parseFrames(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at + 9 <= bytes.length; ) {
    const length = bytes.readUIntBE(at, 3);
    const type = TYPES[bytes[at + 3]!] ?? bytes[at + 3]!;
    const payload = bytes.subarray(at + 9, at + 9 + length);
    frames.push({ type, flags: bytes[at + 4]!, stream: bytes.readUInt32BE(at + 5), payload });
    at += 9 + length;
  }
  return frames;
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Settings by number. */
export function settings(values: Readonly<Record<number, number>> = {}): Buffer {
  const entries = Object.entries(values).map(([id, value]) => {
    const bytes = Buffer.alloc(6);
    bytes.writeUInt16BE(Number(id));
    bytes.writeUInt32BE(value, 2);
    return bytes;
  });
  return frame('SETTINGS', 0, 0, ...entries);
}

export function windowUpdate(stream: number, bytes: number): Buffer {
  return frame('WINDOW_UPDATE', 0, stream, u32(bytes));
}

export function reset(stream: number, code = 8): Buffer {
  return frame('RST_STREAM', 0, stream, u32(code));
}

/** A header block of literals that are not indexed, without Huffman code. */
export function block(fields: readonly (readonly [string, string])[]): Buffer {
  const literal = (text: string): Buffer => {
    const bytes = Buffer.from(text, 'latin1');
    if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
    const rest = bytes.length - 127;
    const length = [127, (rest & 0x7f) | 0x80, ((rest >> 7) & 0x7f) | 0x80, rest >> 14];
    return Buffer.concat([Buffer.from(length), bytes]);
  };
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), literal(name), literal(value)]));
}

export type Fields = readonly (readonly [string, string])[];

/** Fields of an ext_proc request of a proxy, then `more`. */
export function requestFields(more: Fields = [], path = PROCESS): Fields {
  return [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'picker'],
    ['te', 'trailers'],
    ['content-type', 'application/grpc'],
    ...more,
  ];
}

export function headers(stream: number, flags = 0, fields: Fields = requestFields()): Buffer {
  return frame('HEADERS', END_HEADERS | flags, stream, block(fields));
}

/** A gRPC message with its prefix. */
export function message(content: Buffer | string, flag = 0): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([Buffer.from([flag]), u32(bytes.length), bytes]);
}

export function data(stream: number, content: Buffer, flags = 0): Buffer {
  return frame('DATA', flags, stream, content);
}
