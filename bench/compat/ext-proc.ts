// One ext_proc client for both pickers: a request phase, its destination and scores, and later the response phase.
import { Client, type ClientDuplexStream, credentials } from '@grpc/grpc-js';
import { field, text } from '../../dist/src/runtime/protobuf.js';
import {
  encodeRequestBody,
  encodeRequestHeaders,
  encodeResponseBody,
  encodeResponseHeaders,
} from '../../dist/tools/gateway/messages.js';

const METHOD = '/envoy.service.ext_proc.v3.ExternalProcessor/Process';
const DESTINATION = 'x-gateway-destination-endpoint';
const SCORES = 'x-gateway-destination-endpoint-scores';
const ANSWER_TIMEOUT_MS = 10_000;

export interface Request {
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string;
  /** Addresses that may be picked; undefined = all. */
  readonly subset: readonly string[] | undefined;
}

/** What a picker says about a request. */
export interface Decision {
  /** Destination, or `error <status>`. */
  readonly destination: string;
  /** Weighted score by address; empty when the picker tells none. */
  readonly scores: ReadonlyMap<string, number>;
}

/** A decided request whose response has not come yet. */
export interface Exchange {
  readonly decision: Decision;
  /** Sends the response; resolves when the picker has ended the stream. */
  finish(): Promise<void>;
}

/** Bytes of a prompt's token, near those of English text: pickers learn them from answers. */
const BYTES_PER_TOKEN = 4;

/** What a model server says of a request that had one output token. */
function answerOf(body: string): string {
  const tokens = Math.max(1, Math.round(body.length / BYTES_PER_TOKEN));
  return JSON.stringify({ usage: { prompt_tokens: tokens, completion_tokens: 1 } });
}

/** A connection to one picker. */
export class ExtProcClient {
  readonly #client: Client;

  constructor(port: number) {
    this.#client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
      'grpc.max_receive_message_length': -1,
    });
  }

  close(): void {
    this.#client.close();
  }

  async ask(request: Request): Promise<Exchange> {
    const pass = (bytes: Buffer) => bytes;
    const call: ClientDuplexStream<Buffer, Buffer> = this.#client.makeBidiStreamRequest(METHOD, pass, pass);
    const ended = new Promise<void>((resolve) => call.on('status', () => resolve()));
    const answered = firstDecision(call);
    const headers = [[':method', 'POST'], [':path', request.path], ...request.headers] as [string, string][];
    // Envoy puts its metadata on every message; llm-d-router looks for the hint at the body only.
    const hint = subsetHint(request.subset);
    call.write(Buffer.concat([encodeRequestHeaders(headers, false), hint]));
    call.write(Buffer.concat([encodeRequestBody(Buffer.from(request.body), true), hint]));
    const decision = await answered;
    return {
      decision,
      finish: () => {
        if (!decision.destination.startsWith('error')) {
          call.write(
            encodeResponseHeaders(
              [
                [':status', '200'],
                ['content-type', 'application/json'],
              ],
              false,
              '',
            ),
          );
          call.write(encodeResponseBody(Buffer.from(answerOf(request.body)), true));
        }
        call.end();
        return ended;
      },
    };
  }
}

function firstDecision(call: ClientDuplexStream<Buffer, Buffer>): Promise<Decision> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the picker does not answer')), ANSWER_TIMEOUT_MS);
    call.on('data', (message: Buffer) => {
      const decision = decisionOf(message);
      if (decision === undefined) return;
      clearTimeout(timer);
      resolve(decision);
    });
    call.on('error', (error: Error) => {
      clearTimeout(timer);
      reject(error);
    });
  });
}

/** ProcessingRequest.metadata_context = 8 with the list of addresses that llm-d-router takes. */
function subsetHint(subset: readonly string[] | undefined): Buffer {
  if (subset === undefined) return Buffer.alloc(0);
  const values = Buffer.concat(subset.map((address) => field(1, field(3, text(address)))));
  const list = Buffer.concat([field(1, text('x-gateway-destination-endpoint-subset')), field(2, field(6, values))]);
  const entry = Buffer.concat([field(1, text('envoy.lb.subset_hint')), field(2, field(1, list))]);
  return field(8, field(1, entry));
}

/** Undefined for replies that come behind the decision. */
function decisionOf(message: Buffer): Decision | undefined {
  const immediate = one(message, 7);
  if (immediate !== undefined) {
    const status = fields(one(immediate, 1) ?? Buffer.alloc(0)).find(({ number }) => number === 1)?.value ?? 0;
    return { destination: `error ${status}`, scores: new Map() };
  }
  const headers = one(message, 1);
  if (headers === undefined) return undefined;
  const mutation = one(one(headers, 1) ?? Buffer.alloc(0), 2) ?? Buffer.alloc(0);
  const set = fields(mutation).flatMap(({ number, bytes }) => (number === 1 ? [one(bytes, 1)!] : []));
  const destination = set.find((header) => one(header, 1)?.toString() === DESTINATION);
  const text = destination === undefined ? '' : (one(destination, 3) ?? one(destination, 2) ?? '').toString();
  return { destination: text, scores: scoresOf(one(message, 8)) };
}

/** ProcessingResponse.dynamic_metadata = 8: `envoy.lb` → scores → a number by address. */
function scoresOf(metadata: Buffer | undefined): ReadonlyMap<string, number> {
  const balancer = member(metadata, 'envoy.lb');
  const scores = member(balancer, SCORES);
  return new Map(members(scores).map(([address, value]) => [address, value.number ?? Number.NaN]));
}

interface StructValue {
  readonly number: number | undefined;
  readonly struct: Buffer | undefined;
}

function member(struct: Buffer | undefined, name: string): Buffer | undefined {
  return members(struct).find(([key]) => key === name)?.[1].struct;
}

/** Struct: map fields = 1. Value: number_value = 2, struct_value = 5. */
function members(struct: Buffer | undefined): (readonly [string, StructValue])[] {
  if (struct === undefined) return [];
  return fields(struct).map(({ bytes }) => {
    const value = fields(one(bytes, 2) ?? Buffer.alloc(0));
    const number = value.find((field) => field.number === 2)?.bytes.readDoubleLE(0);
    return [one(bytes, 1)?.toString() ?? '', { number, struct: value.find((field) => field.number === 5)?.bytes }];
  });
}

interface Field {
  readonly number: number;
  readonly bytes: Buffer;
  readonly value: number;
}

function one(message: Buffer, number: number): Buffer | undefined {
  return fields(message).findLast((field) => field.number === number)?.bytes;
}

/** Fields of a message: varints as values, the rest as bytes. */
function fields(message: Buffer): Field[] {
  const found: Field[] = [];
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = message[at++]!;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const tag = varint();
    const wire = tag % 8;
    const value = wire === 0 ? varint() : 0;
    const length = wire === 2 ? varint() : wire === 1 ? 8 : wire === 5 ? 4 : 0;
    found.push({ number: Math.floor(tag / 8), bytes: message.subarray(at, at + length), value });
    at += length;
  }
  return found;
}
