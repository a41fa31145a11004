import { describe, expect, it } from 'vitest';
import { createDialects, type Dialect } from '../../dist/src/request/dialects.js';
import { RequestBody } from '../../dist/src/request/request-body.js';
import { PlainScanner } from '../ingress/shard-fakes.js';

const DIALECT = createDialects(['openai-parser']).find('/v1/completions') as Dialect;
const OPAQUE = createDialects(['passthrough-parser']).find('/') as Dialect;

/** Counts the pieces that were scanned. */
class CountingScanner extends PlainScanner {
  fed = 0;

  override feed(id: number, chunk: Uint8Array): boolean {
    this.fed++;
    return super.feed(id, chunk);
  }
}

describe('a request body', () => {
  it('a request body keeps a copy of its slices, and counts the memory that it takes', () => {
    const body = new RequestBody(DIALECT, new PlainScanner(), 256, 100);
    const chunk = Buffer.from('{}');
    body.append(chunk);
    chunk.fill(0);
    expect(Buffer.concat(body.chunks).toString()).toBe('{}');
    expect([body.bytes, body.heldBytes]).toEqual([2, 4_352]);
  });

  it('a request body takes a scan with its first byte, and gives it back once', () => {
    const scanner = new PlainScanner();
    const body = new RequestBody(DIALECT, scanner, 256, 100);
    body.append(Buffer.alloc(0));
    expect(scanner.open_.size).toBe(0);
    body.append(Buffer.from('{'));
    expect(scanner.open_.size).toBe(1);
    body.close();
    body.close();
    expect([scanner.open_.size, body.scan, body.heldBytes]).toEqual([0, -1, 0]);
  });

  it('a request body takes no scan when it is opaque', () => {
    const scanner = new PlainScanner();
    const body = new RequestBody(OPAQUE, scanner, 256, 100);
    body.append(Buffer.from('{'));
    expect([body.finish(), body.scan, scanner.open_.size]).toEqual([undefined, -1, 0]);
  });

  it('a request body may have exactly as many bytes as the bound', () => {
    const body = new RequestBody(OPAQUE, new PlainScanner(), 256, 4);
    expect(body.append(Buffer.from('1234'))).toBeUndefined();
    expect(body.append(Buffer.from('5'))).toMatchObject({ code: 'PayloadTooLarge' });
  });

  it('a request body that goes on in another pool keeps its scan where dialect, scanner and block size are the same', () => {
    const scanner = new CountingScanner();
    const body = new RequestBody(DIALECT, scanner, 256, 100);
    for (const piece of ['{"prompt":', '"hello"}']) body.append(Buffer.from(piece));
    const { scan } = body;
    expect(body.move({ ...DIALECT }, scanner, 256)).toBeUndefined();
    expect([body.scan, scanner.fed]).toEqual([scan, 2]);
  });

  it('a request body that goes on in another pool is read again where the block size differs', () => {
    const scanner = new CountingScanner();
    const body = new RequestBody(DIALECT, scanner, 256, 100);
    body.append(Buffer.from('{"prompt":"hello"}'));
    expect(body.move(DIALECT, scanner, 64)).toBeUndefined();
    expect([scanner.open_.size, scanner.fed]).toEqual([1, 2]);
  });
});
