// A model server that answers at once: `node bench/process/answering-server.ts`. Prints its port, then serves until it
// is killed. A chat that asks for a stream gets 20 chunks, any other one JSON in one piece.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const CHUNKS = 20;
const PAGE = ['vllm:num_requests_waiting', 'vllm:num_requests_running', 'vllm:kv_cache_usage_perc']
  .map((name) => `# TYPE ${name} gauge\n${name}{model_name="m"} 0\n`)
  .join('');
const USAGE = { prompt_tokens: 1_024, completion_tokens: CHUNKS, total_tokens: 1_024 + CHUNKS };
const WORDS = 'an answer of some words, '.repeat(16);
const ANSWER = JSON.stringify({
  id: 'a',
  choices: [{ message: { content: WORDS }, finish_reason: 'stop' }],
  usage: USAGE,
});
const DELTA = { id: 'a', choices: [{ index: 0, delta: { content: WORDS.slice(0, 24) } }] };
const EVENT = `data: ${JSON.stringify(DELTA)}\n\n`;
const LAST = `data: ${JSON.stringify({ id: 'a', choices: [], usage: USAGE })}\n\ndata: [DONE]\n\n`;

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'GET') {
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' }).end(PAGE);
    return;
  }
  let streams = false;
  for await (const piece of request) streams ||= (piece as Buffer).includes('"stream":true');
  if (!streams) {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': ANSWER.length }).end(ANSWER);
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  // Each chunk in a turn of its own, so that it goes out as a piece of its own.
  for (let i = 1; i < CHUNKS; i++) {
    response.write(EVENT);
    await new Promise(setImmediate);
  }
  response.end(LAST);
}

const server = createServer((request, response) => void answer(request, response));
server.listen(0, '0.0.0.0', () => console.log((server.address() as AddressInfo).port));
