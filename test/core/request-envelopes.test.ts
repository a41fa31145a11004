import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { PromptKind } from '../../dist/src/core/types.js';
import { bytesField, numberField } from '../ingress/envoy-messages.ts';
import { cutAt, engineRequest, frame, packedFrame, singly, vertexRequest } from './grpc-messages.ts';
import { scan, scanner } from './request-scanner-harness.ts';

afterEach(() => expect(scanner.openScans).toBe(0));

const json = (value: unknown) => Buffer.from(JSON.stringify(value));
const engine = (message: Buffer, kind: PromptKind = PromptKind.engine) => scan(kind, [frame(message)]);
/** Whatever the body says, its chain is that of a completions body with this prompt. */
const completions = (prompt: unknown) => scan(PromptKind.completions, [json({ prompt })]).hashes;

describe("a request of vLLM's engine service", () => {
  const ids = Array.from({ length: 100 }, (_, i) => (i * 2654435761) % 4294967296);

  it("a request of vLLM's engine service is hashed by its token ids as little-endian u32, packed or not", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(4294967295), { minLength: 1, maxLength: 60 }), fc.boolean(), (list, unpacked) => {
        const found = engine(engineRequest({ ids: list, unpacked, originalText: 'ignored' }));
        expect(found.hashes).toEqual(completions(list));
        expect(found.result!.promptBytes).toBe(4 * list.length);
      }),
    );
  });

  it("a request of vLLM's engine service is hashed by its text when it has no token ids", () => {
    const text = 'a text of more than one block, '.repeat(5);
    expect(engine(engineRequest({ text })).hashes).toEqual(completions(text));
    expect(engine(engineRequest({ originalText: text }), PromptKind.engineEmbed).hashes).toEqual(completions(text));
  });

  it("a request of vLLM's engine service tells stream and output bound", () => {
    const found = engine(engineRequest({ ids, maxTokens: 4294967295, stream: true })).result;
    expect(found).toMatchObject({ stream: true, maxOutputTokens: 4294967295, model: undefined, flaw: undefined });
    expect(engine(engineRequest({ text: 'x', maxTokens: 10 })).result).toMatchObject({
      stream: false,
      maxOutputTokens: 10,
    });
  });

  it("a request of vLLM's engine service counts the last of several inputs", () => {
    const twice = Buffer.concat([engineRequest({ ids }), engineRequest({ text: 'later' })]);
    expect(engine(twice).hashes).toEqual(completions('later'));
  });

  it("a request of vLLM's engine service has no prompt without an input", () => {
    expect(engine(bytesField(1, 'request-1')).result!.flaw).toBe('missing');
    expect(engine(Buffer.alloc(0), PromptKind.engineEmbed).result!.flaw).toBe('missing');
  });

  it.each([
    ['whole', (bytes: Buffer) => frame(bytes)],
    ['packed', (bytes: Buffer) => packedFrame(bytes)],
  ])("a request of vLLM's engine service is found the same when it comes %s and is cut at any byte", (_, wrap) => {
    const message = engineRequest({ ids: ids.slice(0, 20), originalText: 'text', maxTokens: 300, stream: true });
    const whole = engine(message);
    const bytes = wrap(message);
    expect(scan(PromptKind.engine, singly(bytes))).toEqual(whole);
    for (let at = 0; at <= bytes.length; at++) expect(scan(PromptKind.engine, cutAt(bytes, at))).toEqual(whole);
  });

  it("a request of vLLM's engine service ends with its first frame", () => {
    const message = engineRequest({ text: 'first' });
    const behind = Buffer.concat([frame(message), frame(engineRequest({ text: 'second' })), Buffer.from('x')]);
    expect(scan(PromptKind.engine, [behind])).toEqual(engine(message));
  });

  it.each([
    ['', 'frame', 'the body ends inside a frame'],
    ['000000', 'frame', 'the body ends inside a frame'],
    ['0000000009616263', 'frame', 'the body ends inside a frame'],
    ['0200000000', 'frame', 'unknown compression flag'],
    ['0100000001ff', 'frame', 'neither gzip nor deflate'],
    ['0000000003ffffff', 'message', 'cannot parse invalid wire-format data'],
    ['000000000212051a', 'message', 'cannot parse invalid wire-format data'], // cut inside a field
    ['00000000021b1c', 'message', 'cannot parse invalid wire-format data'], // a group
    ['00000000041202120a', 'message', 'cannot parse invalid wire-format data'], // longer than its message
  ])('%s is refused: %s, %s', (hex, layer, reason) => {
    const bytes = Buffer.from(hex, 'hex');
    expect(scan(PromptKind.engine, [bytes]).refusal).toMatchObject({ layer, reason });
    expect(scan(PromptKind.engine, singly(bytes)).refusal).toMatchObject({ layer, reason });
  });

  it("a request of vLLM's engine service never breaks the scanner, whatever the bytes", () => {
    const message = fc.oneof(
      fc.uint8Array({ maxLength: 80 }),
      fc.tuple(fc.nat(60), fc.nat(255)).map(([at, byte]) => {
        const bytes = engineRequest({ ids: ids.slice(0, 12), originalText: 'text', maxTokens: 9 });
        bytes[at % bytes.length] = byte;
        return bytes;
      }),
    );
    fc.assert(
      fc.property(message, fc.constantFrom(PromptKind.engine, PromptKind.vertexChat), fc.nat(), (bytes, kind, at) => {
        const body = frame(bytes);
        expect(scan(kind, cutAt(body, at % body.length))).toEqual(scan(kind, [body]));
      }),
      { numRuns: 500 },
    );
  });
});

describe('a request of Vertex AI', () => {
  const chat = JSON.stringify({
    model: 'm',
    stream: true,
    max_tokens: 7,
    messages: [{ role: 'user', content: 'a\n'.repeat(80) }],
  });

  it('a request of Vertex AI is the chat completions body in it', () => {
    const { result, hashes } = scan(PromptKind.chat, [Buffer.from(chat)]);
    expect(scan(PromptKind.vertexChat, [frame(vertexRequest(chat))])).toMatchObject({ result, hashes });
  });

  it('a request of Vertex AI is the responses body in it', () => {
    const body = JSON.stringify({ model: 'm', input: 'hello' });
    const { result, hashes } = scan(PromptKind.responses, [Buffer.from(body)]);
    expect(scan(PromptKind.vertexResponses, [packedFrame(vertexRequest(body))])).toMatchObject({ result, hashes });
  });

  it('a request of Vertex AI is found the same when it is cut at any byte', () => {
    const bytes = frame(vertexRequest(chat));
    const whole = scan(PromptKind.vertexChat, [bytes]);
    expect(whole.accepted).toBe(true);
    for (let at = 0; at <= bytes.length; at++) expect(scan(PromptKind.vertexChat, cutAt(bytes, at))).toEqual(whole);
  });

  it('a request of Vertex AI is refused where its JSON is, or when it holds none', () => {
    expect(scan(PromptKind.vertexChat, [frame(vertexRequest('{"a":x}'))]).refusal).toEqual({
      position: 5,
      reason: 'unexpected byte',
    });
    expect(scan(PromptKind.vertexChat, [frame(numberField(9, 1))]).refusal).toMatchObject({ layer: 'bare' });
  });
});
