import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GrpcFrames } from '../../dist/src/runtime/grpc-frames.js';
import { frame, packedFrame } from '../core/grpc-messages.ts';

/** The messages that come out of these pieces. */
function read(pieces: readonly Uint8Array[], maxBytes = 1000) {
  const frames = new GrpcFrames(maxBytes);
  const messages: Buffer[] = [];
  let parts: Uint8Array[] = [];
  for (const piece of pieces) {
    frames.feed(piece, {
      messageBegin: () => {
        parts = [];
      },
      piece: (bytes) => parts.push(bytes) > 0,
      messageEnd: () => messages.push(Buffer.concat(parts)) > 0,
    });
  }
  return { messages, complete: frames.complete, fault: frames.fault, count: frames.messages };
}

describe('gRPC frames', () => {
  it('gRPC frames give the messages that were put in, packed or not, wherever the bytes are cut', () => {
    const message = fc.tuple(fc.uint8Array({ maxLength: 60 }), fc.boolean());
    fc.assert(
      fc.property(fc.array(message, { maxLength: 5 }), fc.array(fc.nat(), { maxLength: 10 }), (list, places) => {
        const body = Buffer.concat(list.map(([bytes, packed]) => (packed ? packedFrame(bytes) : frame(bytes))));
        const cuts = [0, ...places.map((place) => place % (body.length + 1)).sort((a, b) => a - b), body.length];
        const pieces = cuts.slice(1).map((end, i) => body.subarray(cuts[i]!, end));
        expect(read(pieces)).toEqual({
          messages: list.map(([bytes]) => Buffer.from(bytes)),
          complete: true,
          fault: undefined,
          count: list.length,
        });
      }),
    );
  });

  it('gRPC frames are inflated from deflate as well as from gzip', () => {
    expect(read([frame(deflateSync(Buffer.from('hello')), 1)]).messages).toEqual([Buffer.from('hello')]);
  });

  it('gRPC frames are not complete inside a frame', () => {
    expect(read([frame(Buffer.from('abc')).subarray(0, 7)])).toMatchObject({ messages: [], complete: false });
    expect(read([Buffer.alloc(3)])).toMatchObject({ messages: [], complete: false });
  });

  it('gRPC frames pass a plain message of any length, but pack and unpack at most the bound', () => {
    expect(read([frame(Buffer.alloc(5000))]).messages[0]).toHaveLength(5000);
    expect(read([packedFrame(Buffer.alloc(1000))]).messages[0]).toHaveLength(1000);
    expect(read([packedFrame(Buffer.alloc(1001))]).fault).toBe('too large');
    expect(read([frame(Buffer.alloc(1001), 1)]).fault).toBe('too large');
  });

  it('gRPC frames end at an unknown flag and at bytes that cannot be inflated', () => {
    expect(read([frame(Buffer.from('a')), frame(Buffer.from('b'), 2), frame(Buffer.from('c'))])).toMatchObject({
      messages: [Buffer.from('a')],
      fault: 'flag',
    });
    expect(read([frame(Buffer.from('no gzip'), 1)]).fault).toBe('not decompressed');
  });
});
