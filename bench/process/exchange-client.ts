// Whole exchanges with a picker in another process, as Envoy sends them: head, body in pieces, then the answer.
import { Client, type ClientDuplexStream, credentials } from '@grpc/grpc-js';
import {
  encodeRequestBody,
  encodeRequestHeaders,
  encodeResponseBody,
  encodeResponseHeaders,
} from '../../dist/tools/gateway/messages.js';

const METHOD = '/envoy.service.ext_proc.v3.ExternalProcessor/Process';
/** Size of the pieces in which Envoy sends a body (per_connection_buffer_limit_bytes of deploy/envoy). */
const PIECE_BYTES = 32_768;
const REQUEST_HEADERS: readonly [string, string][] = [
  [':method', 'POST'],
  [':path', '/v1/chat/completions'],
  [':authority', 'models.example.com'],
  [':scheme', 'https'],
  ['content-type', 'application/json'],
  ['user-agent', 'bench/1.0'],
  ['accept', '*/*'],
  ['x-request-id', '7f6c0f4e-8e3a-4d0c-9d29-4d2a5b7c1d10'],
];
const USAGE = '"usage":{"prompt_tokens":1024,"completion_tokens":20,"total_tokens":1044}';

/** An exchange without its prompt: how long the prompt is, and in how many chunks the answer comes. */
export interface ExchangeShape {
  readonly promptBytes: number;
  /** 1 = JSON in one piece; more = server-sent events. */
  readonly chunks: number;
}

const same = (bytes: Buffer): Buffer => bytes;

export class ExchangeClient {
  readonly #client: Client;
  readonly #shape: ExchangeShape;
  readonly #answer: readonly Buffer[];
  #sent = 0;

  constructor(port: number, shape: ExchangeShape) {
    this.#client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
      'grpc.max_receive_message_length': -1,
    });
    this.#shape = shape;
    this.#answer = answerOf(shape.chunks);
  }

  /** Sends one exchange. @returns milliseconds until its destination was there */
  exchange(): Promise<number> {
    const begin = performance.now();
    const call: ClientDuplexStream<Buffer, Buffer> = this.#client.makeBidiStreamRequest(METHOD, same, same);
    return new Promise((resolve, reject) => {
      let pickMs = Number.NaN;
      call.on('error', reject);
      call.on('data', () => {
        if (!Number.isNaN(pickMs)) return;
        pickMs = performance.now() - begin;
        for (const message of this.#answer) call.write(message);
        call.end();
      });
      call.on('status', ({ code, details }) => {
        if (code === 0 && !Number.isNaN(pickMs)) resolve(pickMs);
        else reject(new Error(`an exchange ended with code ${code}: ${details}`));
      });
      for (const message of this.#request()) call.write(message);
    });
  }

  /** 16 shared beginnings of half a prompt, then text of its own. */
  #request(): Buffer[] {
    const number = this.#sent++;
    const half = this.#shape.promptBytes >> 1;
    const content = `${String(number % 16).padStart(4, 's')}${'a'.repeat(half)}${String(number).padStart(12, 'n')}`;
    const text = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: content.padEnd(half * 2, 'b') }] });
    const body = Buffer.from(text);
    const messages = [encodeRequestHeaders([...REQUEST_HEADERS, ['content-length', String(body.length)]], false)];
    for (let at = 0; at < body.length; at += PIECE_BYTES) {
      messages.push(encodeRequestBody(body.subarray(at, at + PIECE_BYTES), at + PIECE_BYTES >= body.length));
    }
    return messages;
  }

  close(): void {
    this.#client.close();
  }
}

function answerOf(chunks: number): readonly Buffer[] {
  const type = chunks === 1 ? 'application/json' : 'text/event-stream';
  const head = encodeResponseHeaders(
    [
      [':status', '200'],
      ['content-type', type],
    ],
    false,
    '',
  );
  if (chunks === 1) return [head, encodeResponseBody(Buffer.from(`{"id":"c","choices":[],${USAGE}}`), true)];
  const events = Array.from({ length: chunks - 1 }, (_, i) =>
    encodeResponseBody(Buffer.from(`data: {"choices":[{"delta":{"content":"token ${i}"}}]}\n\n`), false),
  );
  return [head, ...events, encodeResponseBody(Buffer.from(`data: {${USAGE}}\n\ndata: [DONE]\n\n`), true)];
}
