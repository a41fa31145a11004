import { Server, ServerCredentials, type ServerDuplexStream } from '@grpc/grpc-js';
import { field, readFields, text, varintField } from '../../../dist/src/runtime/protobuf.js';

/** A message that the double received: its kind, its body (if it is one), whether it ended its direction. */
export interface Message {
  readonly kind: 'request_headers' | 'response_headers' | 'request_body' | 'response_body' | 'other';
  readonly headers: Record<string, string>;
  readonly body: Buffer;
  readonly endOfStream: boolean;
  /** Numbers of the fields that the ProcessingRequest has. */
  readonly fields: readonly number[];
  /** The filter_metadata as text, for a look into it. */
  readonly metadata: string;
}

/** One stream: what came, and how it ended. */
export interface Stream {
  readonly messages: Message[];
  ended: boolean;
  cancelled: boolean;
  readonly call: ServerDuplexStream<Buffer, Buffer>;
}

export type Script = (message: Message, stream: Stream, double: PickerDouble) => void;

/** A picker without judgement: the gateway's test double. Its default script picks in turn and echoes bodies. */
export interface PickerDouble {
  readonly port: number;
  readonly streams: Stream[];
  destinations: string[];
  script: Script;
  stop(): Promise<void>;
}

const KINDS: Record<number, Message['kind']> = {
  2: 'request_headers',
  3: 'response_headers',
  4: 'request_body',
  5: 'response_body',
};

/** Answers the headers when the body has ended, as Pointsman and llm-d do; the body piece by piece after them. */
export const pickInTurn: Script = (message, stream, double) => {
  const { call, messages } = stream;
  if (message.kind === 'request_headers' || message.kind === 'request_body') {
    if (!message.endOfStream) return;
    const turn = double.streams.indexOf(stream) % Math.max(1, double.destinations.length);
    call.write(headersReply('request', { 'x-gateway-destination-endpoint': double.destinations[turn] ?? '' }));
    if (message.kind === 'request_headers') return;
    const body = Buffer.concat(messages.map((earlier) => earlier.body));
    for (const reply of bodyReplies('request', body)) call.write(reply);
  } else if (message.kind === 'response_headers') call.write(headersReply('response', { 'x-double': 'yes' }));
  else if (message.kind === 'response_body') call.write(bodyReply('response', message.body, message.endOfStream));
};

export async function startPickerDouble(destinations: string[], port = 0): Promise<PickerDouble> {
  const server = new Server({ 'grpc.max_receive_message_length': -1 });
  const streams: Stream[] = [];
  const process = (call: ServerDuplexStream<Buffer, Buffer>) => {
    const stream: Stream = { messages: [], ended: false, cancelled: false, call };
    streams.push(stream);
    call.on('data', (bytes: Buffer) => {
      const message = decode(bytes);
      stream.messages.push(message);
      double.script(message, stream, double);
    });
    call.on('end', () => {
      stream.ended = true;
      call.end();
    });
    call.on('cancelled', () => {
      // grpc-js reports this also after a good end.
      stream.cancelled = !stream.ended;
    });
    call.on('error', () => {});
  };
  const pass = (bytes: Buffer) => bytes;
  const coding = {
    requestSerialize: pass,
    requestDeserialize: pass,
    responseSerialize: pass,
    responseDeserialize: pass,
  };
  const path = '/envoy.service.ext_proc.v3.ExternalProcessor/Process';
  server.addService({ Process: { path, requestStream: true, responseStream: true, ...coding } }, { Process: process });
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, actual) =>
      error === null ? resolve(actual) : reject(error),
    );
  });
  const stop = async () => server.forceShutdown();
  const double: PickerDouble = { port: bound, streams, destinations, script: pickInTurn, stop };
  return double;
}

export function headersReply(phase: 'request' | 'response', headers: Record<string, string>): Buffer {
  const set = Object.entries(headers).map(([key, value]) =>
    field(1, field(1, Buffer.concat([field(1, text(key)), field(3, text(value))]))),
  );
  return field(phase === 'request' ? 1 : 2, field(1, field(2, Buffer.concat(set))));
}

export function bodyReply(phase: 'request' | 'response', body: Uint8Array, endOfStream: boolean): Buffer {
  const streamed = Buffer.concat([field(1, body), varintField(2, endOfStream ? 1 : 0)]);
  return field(phase === 'request' ? 3 : 4, field(1, field(3, field(3, streamed))));
}

/** A body in pieces as Envoy takes them: at most 62,000 bytes, the last one ends the stream. */
export function bodyReplies(phase: 'request' | 'response', body: Buffer): Buffer[] {
  const replies: Buffer[] = [];
  for (let at = 0; at < body.length; at += 62_000) {
    replies.push(bodyReply(phase, body.subarray(at, at + 62_000), at + 62_000 >= body.length));
  }
  return replies;
}

export function immediateReply(status: number, body: string, headers: Record<string, string> = {}): Buffer {
  const set = Object.entries(headers).map(([key, value]) =>
    field(1, field(1, Buffer.concat([field(1, text(key)), field(3, text(value))]))),
  );
  const parts = [field(1, varintField(1, status)), field(2, Buffer.concat(set)), field(3, text(body))];
  return field(7, Buffer.concat(parts));
}

function decode(bytes: Buffer): Message {
  const message = {
    kind: 'other' as Message['kind'],
    headers: {} as Record<string, string>,
    body: Buffer.alloc(0) as Buffer,
  };
  let endOfStream = false;
  let metadata = '';
  const fields: number[] = [];
  readFields(bytes, (field, content) => {
    fields.push(field);
    if (field === 8) metadata = content.toString();
    const kind = KINDS[field];
    if (kind === undefined) return;
    message.kind = kind;
    const isBody = kind.endsWith('body');
    readFields(content, (inner, part, value) => {
      if (isBody && inner === 1) message.body = part;
      else if (!isBody && inner === 1) readHeaderMap(part, message.headers);
      else if (inner === (isBody ? 2 : 3)) endOfStream = value === 1;
    });
  });
  return { ...message, endOfStream, fields, metadata };
}

function readHeaderMap(map: Buffer, into: Record<string, string>): void {
  readFields(map, (_field, header) => {
    let key = '';
    readFields(header, (field, content) => {
      if (field === 1) key = content.toString();
      else if (field === 3) into[key] = content.toString();
    });
  });
}
