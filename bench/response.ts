import { attachCore, createPoolMemory, defaultPoolSizes } from '../dist/src/core/memory.js';
import { ResponseScanner } from '../dist/src/core/response-scanner.js';

const sizes = { ...defaultPoolSizes, endpoints: 64, indexBlocks: 1024, requests: 64, threads: 1, scans: 64 };

function newScanner(): ResponseScanner {
  return new ResponseScanner(attachCore(createPoolMemory(sizes), 0));
}

function event(token: string): string {
  return (
    'data: ' +
    '{"id":"chatcmpl-5f3a9c","object":"chat.completion.chunk","created":1760000000,"model":"llama-3.1-8b",' +
    `"choices":[{"index":0,"delta":{"content":"${token}"},"logprobs":null,"finish_reason":null}]}\n\n`
  );
}

/** Chunks of one event each, as an engine streams them; one operation is one chunk. */
function stream(renameTo: string | undefined) {
  const scanner = newScanner();
  const chunks = Array.from({ length: 100 }, (_, i) => Buffer.from(event(` token${i}`)));
  const id = scanner.open({ streaming: true, renameFrom: renameTo && 'llama-3.1-8b', renameTo });
  return {
    run: () => {
      for (const chunk of chunks) scanner.feed(id, chunk, false);
    },
    opsPerRun: chunks.length,
  };
}

/** A whole JSON answer of 4 KB: open, read, ask, close. */
function body(content: string) {
  const scanner = newScanner();
  const answer = Buffer.from(
    JSON.stringify({
      id: 'chatcmpl-5f3a9c',
      object: 'chat.completion',
      created: 1760000000,
      model: 'llama-3.1-8b',
      choices: [{ index: 0, message: { role: 'assistant', content }, logprobs: null, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1200, completion_tokens: 800, total_tokens: 2000 },
    }),
  );
  return {
    run: () => {
      const id = scanner.open({ streaming: false });
      scanner.feed(id, answer, true);
      if (scanner.usage(id).totalTokens !== 2000) throw new Error('the answer was misread');
      scanner.close(id);
    },
  };
}

export const benches: { name: string; setup(): Promise<{ run: () => void; opsPerRun?: number }> }[] = [
  { name: 'response/sse-chunk', setup: async () => stream(undefined) },
  { name: 'response/sse-chunk-renamed', setup: async () => stream('alias') },
  { name: 'response/json-4k', setup: async () => body('The picker chose an endpoint.\\n'.repeat(120)) },
];
