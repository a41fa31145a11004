import { attachCore, createPoolMemory, defaultPoolSizes } from '../../dist/src/core/memory.js';
import { RequestScanner } from '../../dist/src/core/request-scanner.js';
import { ResponseScanner } from '../../dist/src/core/response-scanner.js';
import { slotsInUse } from '../../dist/src/request/body-memory.js';
import {
  type Metadata,
  requestBody,
  requestHeaders,
  requestTrailers,
  responseBody,
  responseHeaders,
  responseTrailers,
} from './envoy-messages.ts';
import { generator } from './http2/script-generator.ts';
import { FakeShard, type ProxySide } from './shard-fakes.ts';

type Random = (below: number) => number;

const PATHS = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/messages',
  '/v1/responses',
  '/v1/embeddings',
  '/other',
  '',
];
const STATUSES = ['200', '429', '500', 'x', ''];
const TYPES = ['application/json', 'text/event-stream', 'application/grpc', ''];
const BODIES = [
  '{"model":"m","messages":[{"role":"user","content":"hello"}],"stream":true,"max_tokens":7}',
  '{"model":"m","prompt":"\\ud83d\\ude00 \\u0000","max_tokens":1e9}',
  '{"model":"m","input":["a","b"]}',
  '{"id":"1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}',
  'data: {"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\ndata: [DONE]\n\n',
  '[[[[[[',
  '',
];
/** Messages and events of one stream. */
const STEPS_MAX = 14;
const BODY_BYTES_MAX = 70_000;

/** Streams of a shard whose proxies say anything in any order, in bytes that may be broken. */
export class ExtProcScripts {
  readonly #core = attachCore(
    createPoolMemory({ ...defaultPoolSizes, endpoints: 8, indexBlocks: 4_096, threads: 2 }),
    1,
  );
  readonly #scanner = new RequestScanner(this.#core);
  readonly #responses = new ResponseScanner(this.#core);
  messages = 0;
  /** Kinds of answers so far. */
  readonly kinds = new Set<string>();

  /** @returns what should not be; undefined = all is as it should be */
  async play(seed: number): Promise<string | undefined> {
    const random = generator(seed);
    const shard = new FakeShard({ services: { scanner: this.#scanner, responses: this.#responses } });
    const sides = Array.from({ length: 1 + random(3) }, () => shard.open());
    try {
      for (let step = 0; step < STEPS_MAX; step++) this.#step(random, shard, sides[random(sides.length)]!);
      if (shard.opener.load().waiting > 0) await new Promise((resolve) => setImmediate(resolve));
      for (const side of sides) side.close(side.ending === 'open');
    } catch (error) {
      return `threw ${error instanceof Error ? error.stack : String(error)}`;
    }
    return this.#left(shard, sides);
  }

  #step(random: Random, shard: FakeShard, side: ProxySide): void {
    const kind = random(24);
    if (kind === 0) side.halfClose();
    else if (kind === 1) side.stall();
    else if (kind === 2) side.overflow();
    else if (kind === 3) shard.clock += random(20);
    else {
      this.messages++;
      const message = randomMessage(random);
      side.say(random(3) === 0 ? broken(random, message) : message);
    }
  }

  /** What a shard without streams still holds, or its proxies were told that is against the protocol. */
  #left(shard: FakeShard, sides: readonly ProxySide[]): string | undefined {
    const load = shard.opener.load();
    if (load.openStreams + load.bufferedBytes + load.silentStreams + load.waiting > 0)
      return `held ${JSON.stringify(load)}`;
    if (shard.charges.some(({ releases }) => releases !== 1)) return 'a charge was not released once';
    if (shard.logged.length > 0) return `logged ${JSON.stringify(shard.logged)}`;
    if (this.#scanner.openScans > 0) return `${this.#scanner.openScans} scans are open`;
    if (slotsInUse() > 0) return `${slotsInUse()} slots of body memory are in use`;
    for (const { kinds } of sides) {
      for (const kind of kinds) this.kinds.add(kind);
      if (kinds.filter((kind) => kind === 'immediate').length > 1) return `two immediate answers: ${kinds}`;
      if (kinds.indexOf('immediate') >= 0 && kinds.at(-1) !== 'immediate') return `an answer behind the last: ${kinds}`;
    }
    return undefined;
  }
}

function randomMessage(random: Random): Buffer {
  const pick = <T>(values: readonly T[]): T => values[random(values.length)]!;
  const hint: Metadata | undefined =
    random(4) === 0 ? { 'envoy.lb': { n: random(9), s: 'x', l: ['a', 1] } } : undefined;
  const whole = random(2) === 0;
  switch (random(10)) {
    case 0:
    case 1:
    case 2:
      return requestHeaders({ ':path': pick(PATHS), 'content-length': String(random(99)) }, random(6) === 0, hint);
    case 3:
    case 4:
    case 5:
      return requestBody(body(random), whole, hint);
    case 6:
      return requestTrailers({ a: 'b' });
    case 7:
      return responseHeaders({ ':status': pick(STATUSES), 'content-type': pick(TYPES) }, random(6) === 0);
    case 8:
      return responseBody(body(random), whole);
    default:
      return responseTrailers({ a: 'b' });
  }
}

function body(random: Random): Buffer {
  const text = Buffer.from(BODIES[random(BODIES.length)]!);
  if (random(20) === 0) return Buffer.alloc(random(BODY_BYTES_MAX), text.length === 0 ? 'x' : text);
  return random(3) === 0 ? text.subarray(0, random(text.length + 1)) : text;
}

/** Bytes changed, cut off, doubled or added. */
function broken(random: Random, message: Buffer): Buffer {
  const bytes = Buffer.from(message);
  for (let i = random(4); i > 0 && bytes.length > 0; i--) bytes[random(bytes.length)] = random(256);
  const at = random(bytes.length + 1);
  if (random(3) === 0) return bytes.subarray(0, at);
  if (random(3) === 0) return Buffer.concat([bytes.subarray(0, at), bytes.subarray(random(bytes.length + 1))]);
  return bytes;
}
