// The request scanner with hashing, as a shard uses it: bytes copied in, scanned, finished, chained, closed.
import { attachCore, createPoolMemory, defaultPoolSizes } from '../dist/src/core/memory.js';
import { RequestScanner } from '../dist/src/core/request-scanner.js';
import { PromptKind } from '../dist/src/core/types.js';

/** One named measurement; `run` is one timed call of `opsPerRun` operations (1 when absent). */
interface Bench {
  readonly name: string;
  setup(): Promise<{ run: () => void; opsPerRun?: number }>;
}

const blockBytes = 256;
const pieceBytes = 65_536;
const sentences = [
  'The picker looks at every endpoint that may serve the request and takes the one that will answer first.',
  'A prompt that shares its beginning with an earlier one finds that beginning in the cache of an engine.',
  'Lines end, "quotes" are quoted, and a tab\tor two keep the escapes honest.\n',
];

/** A chat body of about `bytes` bytes: a system message, then turns of about 500 bytes, with natural escapes. */
function chatBody(bytes: number): Buffer {
  const messages = [{ role: 'system', content: sentences.join(' ') }];
  for (let size = 400, turn = 0; size < bytes; turn++) {
    const content =
      `${turn} ${sentences[turn % 3]} ${sentences[(turn + 1) % 3]} ${sentences[(turn + 2) % 3]} ` +
      `${sentences[turn % 2]}`;
    messages.push({ role: turn % 2 === 0 ? 'user' : 'assistant', content });
    size += JSON.stringify(messages.at(-1)).length + 1;
  }
  return Buffer.from(
    JSON.stringify({ model: 'meta-llama/Llama-3.1-8B-Instruct', stream: true, max_tokens: 256, messages }),
  );
}

function scanBench(name: string, bytes: number): Bench {
  return {
    name,
    async setup() {
      const core = attachCore(
        createPoolMemory({ ...defaultPoolSizes, endpoints: 64, indexBlocks: 1024, threads: 1 }),
        0,
      );
      const scanner = new RequestScanner(core);
      const body = chatBody(bytes);
      const pieces: Buffer[] = [];
      for (let at = 0; at < body.length; at += pieceBytes) pieces.push(body.subarray(at, at + pieceBytes));
      const run = () => {
        const id = scanner.open(PromptKind.chat, blockBytes);
        for (const piece of pieces) scanner.feed(id, piece);
        if (!scanner.finish(id)) throw new Error('the bench body was refused');
        scanner.chain(id, 'meta-llama/Llama-3.1-8B-Instruct');
        scanner.close(id);
      };
      return { run };
    },
  };
}

export const benches: readonly Bench[] = [scanBench('scan/chat-4k', 4_096), scanBench('scan/chat-400k', 409_600)];
