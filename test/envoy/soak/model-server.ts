import { hash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { IDLE_PAGE } from '../../tools/gateway/backend.ts';

/** What a request asks of its answer, in headers beside the body. */
export const ANSWER_HEADERS = {
  bytes: 'x-soak-bytes',
  /** Time from the body's end to the end of the answer. */
  ms: 'x-soak-ms',
  chunks: 'x-soak-chunks',
} as const;
/** Digests of what was received, and of the answer behind it. */
export const BODY_DIGEST = 'x-soak-body';
export const ANSWER_DIGEST = 'x-soak-answer';

export interface SoakServer {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  stop(): Promise<void>;
}

const USAGE = '"usage":{"prompt_tokens":1024,"completion_tokens":20,"total_tokens":1044}';

export function digest(bytes: Uint8Array): string {
  return hash('sha1', bytes, 'hex');
}

/**
 * A model server without an engine: answers of the sizes and times that requests ask for, with trailers behind them.
 */
export async function startSoakServer(name: string): Promise<SoakServer> {
  const server = createServer((request, response) => {
    // The picker reads the metrics, and asks a server that has failed whether it is back.
    if (request.url !== '/v1/chat/completions') {
      response.end(request.url === '/metrics' ? IDLE_PAGE : '{}');
      return;
    }
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => answer(request, Buffer.concat(pieces), response));
    // A client that resets its request takes this connection with it.
    request.on('error', () => undefined);
  });
  // A connection that it closes while Envoy sends a request is a 503 of Envoy's.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { address, port } = server.address() as AddressInfo;
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { name, address, port, stop };
}

function answer(request: IncomingMessage, body: Buffer, response: ServerResponse): void {
  const asked = (name: string): number => Number(request.headers[name]);
  const chunks = asked(ANSWER_HEADERS.chunks);
  const pieces = chunks === 1 ? [plain(asked(ANSWER_HEADERS.bytes))] : events(chunks, asked(ANSWER_HEADERS.bytes));
  const type = chunks === 1 ? 'application/json' : 'text/event-stream';
  const pauseMs = asked(ANSWER_HEADERS.ms) / pieces.length;
  const timer = setInterval(next, pauseMs);
  response.on('close', () => clearInterval(timer));
  let at = 0;
  function next(): void {
    if (at === 0)
      response.writeHead(200, { 'content-type': type, [BODY_DIGEST]: digest(body), trailer: ANSWER_DIGEST });
    response.write(pieces[at]!);
    at++;
    if (at < pieces.length) return;
    clearInterval(timer);
    response.addTrailers({ [ANSWER_DIGEST]: digest(Buffer.concat(pieces)) });
    response.end();
  }
}

function plain(bytes: number): Buffer {
  const content = 'y'.repeat(bytes);
  const message = { role: 'assistant', content };
  return Buffer.from(`{"id":"c","choices":[{"index":0,"message":${JSON.stringify(message)}}],${USAGE}}`);
}

/** Server-sent events, the last with the usage. */
function events(chunks: number, bytes: number): Buffer[] {
  const content = 'y'.repeat(Math.ceil(bytes / chunks));
  const event = Buffer.from(`data: {"choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`);
  const last = Buffer.from(`data: {"choices":[],${USAGE}}\n\ndata: [DONE]\n\n`);
  return [...Array.from({ length: chunks - 1 }, () => event), last];
}
