import { expect, it } from 'vitest';
import { PromptKind } from '../../../dist/src/core/types.js';
import { RenderSource } from '../../../dist/src/request/tokens/render-source.js';
import { ReportingSource } from '../../../dist/src/request/tokens/reporting-source.js';
import { RenderServer } from './render-server.ts';

const BODY = {
  prompt: PromptKind.completions,
  chunks: [Buffer.from('{"prompt":"hello"}')],
  modelPlace: { kind: 'insert' },
} as const;

it('a render server that refuses is logged once a minute with its status and the first line of its answer', async () => {
  const server = await RenderServer.start();
  server.behave = (_call, response) => {
    response.writeHead(403).end('Scale-out endpoints are disabled.\nsecond line');
  };
  const lines: string[] = [];
  const settings = {
    kind: 'render',
    url: server.url,
    modelName: 'm',
    timeoutMs: 5_000,
    partsTimeoutMs: 5_000,
  } as const;
  const render = new RenderSource(
    settings,
    () => undefined,
    () => 0,
  );
  const source = new ReportingSource(render, { warn: (_details, text) => lines.push(text) });
  for (let i = 0; i < 3; i++) await source.tokenise(BODY, new AbortController().signal);
  await source.close();
  server.close();
  expect(lines).toEqual([expect.stringMatching(/estimated: .* status 403: Scale-out endpoints are disabled\. \(docs/)]);
});
