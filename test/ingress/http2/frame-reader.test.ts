import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FrameReader, type FrameSink } from '../../../dist/src/ingress/transports/http2/frame-reader.js';
import { END_STREAM, frame, PADDED, PREFACE, settings } from './frames.ts';

/** Writes frames down, the pieces of one DATA frame put together. */
class Recorder implements FrameSink {
  readonly frames: string[] = [];
  #data = '';
  dataBegin(stream: number, length: number, flags: number): void {
    this.#data = `DATA ${stream} ${length} ${flags} `;
  }
  dataPart(bytes: Buffer, from: number, to: number): void {
    this.#data += bytes.toString('latin1', from, to);
  }
  dataEnd(): void {
    this.frames.push(this.#data);
  }
  frame(type: number, flags: number, stream: number, bytes: Buffer, from: number, to: number): void {
    this.frames.push(`${type} ${flags} ${stream} ${bytes.toString('latin1', from, to)}`);
  }
}

function read(bytes: Buffer, cuts: readonly number[] = []): string[] {
  const recorder = new Recorder();
  const reader = new FrameReader(recorder);
  const edges = [...new Set([0, ...cuts.map((cut) => cut % bytes.length), bytes.length])].sort((a, b) => a - b);
  for (let i = 1; i < edges.length; i++) {
    // Overwritten behind the call: nothing may be kept that has not been copied.
    const piece = Buffer.from(bytes.subarray(edges[i - 1], edges[i]));
    reader.push(piece, 0, piece.length);
    piece.fill(0xdd);
  }
  return recorder.frames;
}

describe('the frame reader', () => {
  it('the frame reader takes DATA apart from its padding, and everything else whole', () => {
    const padded = frame('DATA', PADDED | END_STREAM, 1, Buffer.from([3]), Buffer.from('hello'), Buffer.alloc(3));
    const bytes = Buffer.concat([PREFACE, settings(), padded, frame('PING', 0, 0, Buffer.from('12345678'))]);
    expect(read(bytes)).toEqual(['4 0 0 ', 'DATA 1 9 9 hello', '6 0 0 12345678']);
  });

  it('the frame reader reads the same from any cut of the bytes', () => {
    const payload = fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes));
    const plain = fc
      .tuple(fc.integer({ min: 0, max: 12 }), fc.nat(255), fc.nat(1_000), payload)
      .map(([type, flags, stream, content]) => frame(type, type === 0 ? flags & ~PADDED : flags, stream, content));
    const padded = fc
      .tuple(fc.nat(255), payload)
      .map(([pad, content]) => frame('DATA', PADDED, 5, Buffer.from([pad]), content, Buffer.alloc(pad)));
    const large = fc
      .integer({ min: 16_000, max: 16_384 })
      .map((length) => frame('DATA', 0, 7, Buffer.alloc(length, 'x')));
    fc.assert(
      fc.property(
        fc.array(fc.oneof(plain, plain, padded, large), { maxLength: 20 }),
        fc.array(fc.nat(), { maxLength: 60 }),
        (frames, cuts) => {
          const bytes = Buffer.concat([PREFACE, ...frames]);
          expect(read(bytes, cuts)).toEqual(read(bytes));
        },
      ),
    );
  });

  it('the frame reader reads the same byte by byte', () => {
    const bytes = Buffer.concat([PREFACE, settings({ 4: 9 }), frame('DATA', PADDED, 1, Buffer.from([1, 65, 0]))]);
    expect(read(bytes, [...bytes.keys()])).toEqual(read(bytes));
  });

  it.each([
    ['a preface of another protocol', Buffer.from('GET / HTTP/1.1\r\n\r\n'), 'no HTTP/2 preface'],
    [
      'a frame over 16 KB',
      Buffer.concat([PREFACE, Buffer.from('004001000000000000', 'hex')]),
      'a frame of 16385 bytes',
    ],
    ['more padding than payload', Buffer.concat([PREFACE, frame('DATA', PADDED, 1, Buffer.from([2, 0]))]), 'padding'],
    ['padding without its length', Buffer.concat([PREFACE, frame('DATA', PADDED, 1)]), 'without a pad length'],
  ])('the frame reader refuses %s', (_what, bytes, message) => {
    expect(() => read(bytes)).toThrow(message);
  });
});
