import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { type OverloadSecond, runOverload } from '../../dist/cli/demo/overload.js';
import { OverloadTable } from '../../dist/cli/demo/report.js';
import { waitingRequests } from '../../dist/cli/demo/waiting-requests.js';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

const ANSWER = [
  'data: {"choices":[{"delta":{"content":"word"}}]}',
  'data: {"choices":[],"usage":{"prompt_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}',
  'data: [DONE]',
  '',
].join('\n\n');

/** A server that answers interactive requests and turns batch requests away; its metrics page tells of 7 that wait. */
async function server(): Promise<string> {
  const http = createServer((request, response) => {
    if (request.url === '/metrics') {
      response.end('llm_d_epp_flow_control_queue_size{a="1"} 4\nllm_d_epp_flow_control_queue_size{a="2"} 3\n');
      return;
    }
    request.resume();
    request.on('end', () => {
      const refused = request.headers['x-llm-d-inference-objective'] === 'batch';
      response.writeHead(refused ? 429 : 200, { 'content-type': 'text/event-stream' });
      response.end(refused ? 'later' : ANSWER);
    });
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => new Promise((resolve) => http.close(resolve)));
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
}

describe('the overload of the demo', () => {
  it('the overload of the demo counts what interactive and batch requests saw, second by second', async () => {
    const seconds: OverloadSecond[] = [];
    const load = { seconds: 2, floodFrom: 2, floodTo: 3, interactivePerSecond: 2, batchPerSecond: 3 };
    const totals = await runOverload(
      { url: await server(), model: 'm', promptBytes: 100, answerTokens: 1, ...load },
      async (second) => {
        seconds.push(second);
      },
    );
    expect(totals).toEqual({
      interactive: 4,
      interactiveFailed: [],
      batchAnswered: 0,
      batchRefused: 3,
      batchFailed: [],
    });
    expect(seconds.map(({ second, flood }) => [second, flood])).toEqual([
      [1, false],
      [2, true],
    ]);
  });

  it('the overload of the demo reads how many requests wait from the metrics of the picker', async () => {
    expect(await waitingRequests(`${await server()}/metrics`)).toBe(7);
  });

  it('the overload of the demo is shown as a line a second, those of the flood marked', () => {
    const table = new OverloadTable();
    const line = table.row(
      { second: 5, flood: true, firstTokensMs: [100, 301], batchAnswered: 4, refused: 2 },
      [30, 1],
    );
    expect(line.trim().split(/\s{2,}/)).toEqual(['*5', '2', '201 ms', '301 ms', '4', '2', '30', '1']);
    expect(table.head()).toContain('wait in Pointsman');
  });
});
