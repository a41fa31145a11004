import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { TurnOutcome } from '../../dist/tools/demo/load.js';
import { type OverloadSecond, runOverload } from '../../dist/tools/demo/overload.js';
import { waitingRequests } from '../../dist/tools/demo/picker-process.js';
import { OverloadTable, SharedPromptTable, TurnTable } from '../../dist/tools/demo/report.js';

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

  it('the tables of the demo fit 80 columns, and say – where nothing was', () => {
    const nothing = { second: 100, flood: true, firstTokensMs: [], batchAnswered: 0, refused: 99_999 };
    const much = { second: 100, flood: true, firstTokensMs: [99_999, 99_999], batchAnswered: 9_999, refused: 99_999 };
    const overload = new OverloadTable();
    const quiet = overload.row(nothing, [0, 0]);
    const servers = Array.from({ length: 16 }, (_, i) => `server-${i}`);
    const turns = new TurnTable(servers);
    const outcome = { server: 'server-0', firstTokenMs: 9_999, wholeMs: 99_999, promptTokens: 10, cachedTokens: 5 };
    const answered = Array.from({ length: 1_000 }, () => outcome) as unknown as TurnOutcome['answered'];
    const pool = { answers: answered, errors: [] };
    const empty = turns.row({ turn: 1, answered: [], errors: [] });
    const lines = [overload.head(), quiet, overload.row(much, [99_999, 99_999]), turns.head(), empty];
    lines.push(turns.row({ turn: 10, answered, errors: [] }));
    const shared = new SharedPromptTable(servers, 48);
    lines.push(...shared.head(['default: queue 2, KV 2, prefix 3', 'marginal-cost-scorer']).split('\n'));
    lines.push(shared.row('all', [pool, pool]));
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    expect(quiet.match(/–/g)).toHaveLength(2);
    expect(empty.match(/–/g)).toHaveLength(2);
    expect(lines.at(-1)).toContain('0 to 1000  ');
  });

  it('the overload of the demo is shown as a line a second, those of the flood marked', () => {
    const table = new OverloadTable();
    const line = table.row(
      { second: 5, flood: true, firstTokensMs: [100, 301], batchAnswered: 4, refused: 2 },
      [30, 1],
    );
    expect(line.trim().split(/\s{2,}/)).toEqual(['*5', '2', '201 ms', '301 ms', '4', '2', '30', '1']);
    expect(table.head()).toContain('in picker');
  });
});
