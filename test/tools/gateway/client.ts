import { once } from 'node:events';
import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export interface Asked {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
}

/** A connection for each request, so that a thousand of them really are concurrent. */
export const manyConnections = () => new Agent({ maxSockets: Number.POSITIVE_INFINITY });

export function chatBody(prompt: string, extra: Record<string, unknown> = {}): string {
  return JSON.stringify({ model: 'm', messages: [{ role: 'user', content: prompt }], ...extra });
}

/** Sends a request and reads its whole answer. Rejects when the connection breaks. */
export async function ask(port: number, asked: Asked, agent?: Agent): Promise<Answer> {
  const { answer } = await begin(port, asked, agent);
  const pieces: Buffer[] = [];
  for await (const piece of answer) pieces.push(piece as Buffer);
  return { status: answer.statusCode!, headers: answer.headers, body: Buffer.concat(pieces) };
}

/** Sends a request; resolves when the head of the answer is there. */
export function begin(
  port: number,
  asked: Asked,
  agent?: Agent,
): Promise<{ request: ClientRequest; answer: IncomingMessage }> {
  return new Promise((resolve, reject) => {
    const request = open(port, asked, agent);
    request.on('response', (answer) => resolve({ request, answer }));
    request.on('error', reject);
    request.end(asked.body);
  });
}

/** A request whose body and end are the test's to write. */
export function open(port: number, asked: Asked, agent?: Agent): ClientRequest {
  const { method = 'POST', path = '/v1/chat/completions', headers = {} } = asked;
  const length = asked.body === undefined ? {} : { 'content-length': String(Buffer.byteLength(asked.body)) };
  const all = { 'content-type': 'application/json', ...length, ...headers };
  return httpRequest({ host: '127.0.0.1', port, method, path, headers: all, agent: agent ?? new Agent() });
}

/** The next piece of an answer as text. */
export async function nextPiece(answer: IncomingMessage): Promise<string> {
  const waiting = answer.read() as Buffer | null;
  if (waiting !== null) return waiting.toString();
  await once(answer, 'readable');
  return ((answer.read() as Buffer | null) ?? Buffer.alloc(0)).toString();
}

/** Asks `check` again and again until it is true; for states that only a poll can see. */
export async function eventually(
  what: string,
  check: () => boolean | Promise<boolean>,
  withinMs = 15_000,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await check())) {
    if (performance.now() > deadline) throw new Error(`not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
