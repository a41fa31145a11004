import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UsageEvents } from '../../dist/src/response/usage-events.js';

const usage = '{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}';
const event = (rest: string) => `data: {"id":"c","object":"chat.completion.chunk","model":"é",${rest}}`;
const FIRST = event('"choices":[{"index":0,"delta":{"content":"a \\"choices\\":[] b"}}]');
const LAST = event('"choices": [ {"index":0,"delta":{},"finish_reason":"stop"}],"usage":null');
const USAGE = event(`"choices": [ ],"usage":${usage}`);

/** What goes on of a stream that comes in these pieces. */
function passed(pieces: readonly Buffer[]): string {
  const events = new UsageEvents();
  const out = pieces.map((piece, i) => {
    // Transports overwrite their buffers.
    const given = Buffer.from(piece);
    const kept = Buffer.from(events.feed(given, i === pieces.length - 1));
    given.fill(0xdd);
    return kept;
  });
  return Buffer.concat(out).toString();
}

const cut = (text: string, places: readonly number[]) => {
  const bytes = Buffer.from(text);
  const all = [0, ...[...places].sort((a, b) => a - b), bytes.length];
  return all.slice(1).map((end, i) => bytes.subarray(all[i], end));
};

describe('the usage of a stream that its client did not ask for', () => {
  it.each(['\n', '\r\n'])('the usage leaves the stream however it is cut, with lines that end in %j', (end) => {
    const blank = end + end;
    const before = `: ping${blank}${FIRST}${blank}${LAST}${blank}`;
    const after = `data: [DONE]${blank}`;
    const text = before + USAGE + blank + after;
    for (let at = 0; at <= Buffer.byteLength(text); at++) expect(passed(cut(text, [at]))).toBe(before + after);
    const cuts = fc.array(fc.nat(Buffer.byteLength(text)), { maxLength: 12 });
    fc.assert(
      fc.property(cuts, (places) => {
        expect(passed(cut(text, places))).toBe(before + after);
      }),
    );
  });

  it('the usage leaves a stream that ends with it, without the end of its line', () => {
    expect(passed([Buffer.from(`${FIRST}\n\n${USAGE}`)])).toBe(`${FIRST}\n\n`);
  });

  it('an event with output passes at once, although its end has not come', () => {
    const events = new UsageEvents();
    const piece = Buffer.from(FIRST.slice(0, -3));
    expect(events.feed(piece, false)).toBe(piece);
  });

  it('a chunk with whole events of output passes as the same object', () => {
    const piece = Buffer.from(`${FIRST}\n\n${LAST}\n\n`);
    expect(new UsageEvents().feed(piece, false)).toBe(piece);
  });

  it.each([
    ['with output and usage', event(`"choices":[{"index":0}],"usage":${usage}`)],
    ['without choices and usage', event('"choices":[],"prompt_filter_results":[]')],
    ['with the usage null', event('"choices":[],"usage":null')],
    ['of another form', `event: message_delta\ndata: {"usage":${usage},"choices":[]}`],
    ['that is no JSON', 'data: {"choices":[],"usage":{}'],
  ])('an event %s stays', (_what, one) => {
    expect(passed([Buffer.from(`${one}\n\n`)])).toBe(`${one}\n\n`);
  });

  it('an event that is longer than what may be held passes', () => {
    const text = `data: {"x":"${'y'.repeat(70_000)}","choices":[],"usage":{}}\n\ndata: [DONE]\n\n`;
    expect(passed(cut(text, [10, 69_000, 69_500]))).toBe(text);
  });

  it('bytes that are no events pass in their order', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { minLength: 1 }), (pieces) => {
        const events = new UsageEvents();
        const out = pieces.map((piece, i) => Buffer.from(events.feed(piece, i === pieces.length - 1)));
        expect(Buffer.concat(out)).toEqual(Buffer.concat(pieces));
      }),
    );
  });
});
