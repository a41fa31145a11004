import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OutBuffer } from '../../../dist/src/ingress/transports/http2/out-buffer.js';
import { ReceiveWindows } from '../../../dist/src/ingress/transports/http2/receive-windows.js';
import { ACK, data, frame, headers, message, settings } from './frames.ts';
import { MemoryConnection } from './memory-connection.ts';

const MEBIBYTE = 1024 * 1024;
const FRAME_BYTES = 16_384;
const WIDE_BYTES = MEBIBYTE;
const NARROW_BYTES = 16_384;
/** What one connection's unfinished messages may take. */
const UNFINISHED_BYTES_MAX = 32 * MEBIBYTE;

interface Upload {
  readonly id: number;
  readonly bytes: Buffer;
  at: number;
  /** Bytes that the stream's window has let through and that were not added to it again. */
  spent: number;
}

/** A client that keeps to its windows and sends a frame of each upload in turn, as HTTP/2 clients do. */
class PoliteProxy {
  readonly connection = MemoryConnection.open();
  readonly #uploads = new Map<number, Upload>();
  #window = 65_535;
  #initialWindow = WIDE_BYTES;
  narrowed = 0;

  constructor() {
    this.connection.prepare = (handler) => {
      handler.onMessage = () => handler.stream.end();
      handler.onOverflow = () => handler.stream.end();
    };
    // The window of the connection is raised with the first settings, which `open` has thrown away.
    this.#window = 8 * MEBIBYTE;
    this.connection.say(frame('SETTINGS', ACK, 0));
  }

  upload(id: number, length: number): void {
    this.#uploads.set(id, { id, bytes: message(Buffer.alloc(length, 'x')), at: 0, spent: 0 });
    this.connection.say(headers(id));
  }

  /**
   * Sends until everything has left, or nothing more may.
   * @param lag frames that are on their way while an answer comes
   */
  run(lag: number): void {
    for (let sent = 1; sent > 0; ) {
      sent = 0;
      for (const upload of this.#uploads.values()) {
        if (!this.#sendFrame(upload)) continue;
        if (++sent % lag === 0) this.#hear();
      }
      if (this.#hear()) sent++;
    }
  }

  get unfinished(): number {
    return this.#uploads.size;
  }

  #sendFrame(upload: Upload): boolean {
    const room = Math.min(FRAME_BYTES, this.#window, this.#initialWindow - upload.spent);
    const piece = upload.bytes.subarray(upload.at, upload.at + Math.max(0, room));
    if (piece.length === 0) return false;
    this.connection.say(data(upload.id, piece));
    upload.at += piece.length;
    upload.spent += piece.length;
    this.#window -= piece.length;
    if (upload.at === upload.bytes.length) this.#uploads.delete(upload.id);
    return true;
  }

  /** @returns whether there was room, or a change of it */
  #hear(): boolean {
    let changed = false;
    for (const { type, flags, stream, payload } of this.connection.heard()) {
      if (type === 'WINDOW_UPDATE') {
        changed = true;
        if (stream === 0) this.#window += payload.readUInt32BE();
        const upload = this.#uploads.get(stream);
        if (upload !== undefined) upload.spent -= payload.readUInt32BE();
      } else if (type === 'SETTINGS' && flags === 0) {
        changed = true;
        this.#initialWindow = payload.readUInt32BE(2);
        if (this.#initialWindow === NARROW_BYTES) this.narrowed++;
        this.connection.say(frame('SETTINGS', ACK, 0));
      }
    }
    return changed;
  }
}

describe('the windows of a connection', () => {
  it('the windows of a connection stay as they are while little of it is unfinished', () => {
    const proxy = new PoliteProxy();
    for (let i = 0; i < 10; i++) proxy.upload(2 * i + 1, 100_000);
    proxy.run(4);
    expect([proxy.narrowed, proxy.unfinished, proxy.connection.budget.bytes]).toEqual([0, 0, 0]);
  });

  it('the windows of a connection become narrow under many long messages at a time, and all of those are taken', () => {
    const proxy = new PoliteProxy();
    let largest = 0;
    proxy.connection.prepare = (handler) => {
      handler.onMessage = () => {
        largest = Math.max(largest, proxy.connection.budget.bytes);
        handler.stream.end();
      };
    };
    for (let i = 0; i < 300; i++) proxy.upload(2 * i + 1, 100_000);
    proxy.run(50);
    const ends = proxy.connection.handlers.map(({ events }) => events.map(([kind]) => kind));
    expect(new Set(ends.map(String))).toEqual(new Set(['message,closed']));
    expect([proxy.narrowed > 0, proxy.unfinished, proxy.connection.budget.bytes]).toEqual([true, 0, 0]);
    expect(largest).toBeLessThan(UNFINISHED_BYTES_MAX);
  });

  it('the windows of a connection are wide again when the long messages have come', () => {
    const proxy = new PoliteProxy();
    for (let i = 0; i < 30; i++) proxy.upload(2 * i + 1, 400_000);
    proxy.run(10);
    const before = proxy.narrowed;
    proxy.upload(1_001, 500_000);
    proxy.run(1_000);
    expect([before > 0, proxy.narrowed - before, proxy.unfinished]).toEqual([true, 0, 0]);
  });

  it('the windows of a connection let every message through that a peer sends within them', () => {
    const lengths = fc.array(fc.oneof(fc.nat(40_000), fc.nat(300_000), fc.nat(2_000_000)), { maxLength: 40 });
    fc.assert(
      fc.property(lengths, fc.integer({ min: 1, max: 200 }), (all, lag) => {
        const proxy = new PoliteProxy();
        for (const [i, length] of all.entries()) proxy.upload(2 * i + 1, length);
        proxy.run(lag);
        const taken = proxy.connection.handlers.filter(({ events }) => events[0]?.[0] === 'message');
        expect([taken.length, proxy.unfinished, proxy.connection.budget.bytes]).toEqual([all.length, 0, 0]);
      }),
      { numRuns: 20 },
    );
  });

  it('the windows of a connection are given to others when a stream does not use its own', () => {
    const connection = MemoryConnection.open();
    connection.say(frame('SETTINGS', ACK, 0));
    const long = message(Buffer.alloc(4_000_000));
    const ids = Array.from({ length: 300 }, (_, i) => 2 * i + 1);
    for (const id of ids) connection.say(headers(id), data(id, long.subarray(0, NARROW_BYTES)));
    connection.say(frame('SETTINGS', ACK, 0));
    const given = (): number[] =>
      connection
        .heard()
        .filter(({ type, stream }) => type === 'WINDOW_UPDATE' && stream > 0)
        .map(({ stream }) => stream);
    const first = given();
    connection.connection.sweep();
    const second = given();
    expect([first.length, second.length]).toEqual([1, 1]);
    expect(first).not.toEqual(second);
  });
});

describe('a connection whose peer does not keep to its windows', () => {
  /** @returns what was held after each frame, and the streams that were refused */
  const flood = (length: number) => {
    const held: number[] = [];
    const connection = MemoryConnection.open({}, settings());
    connection.prepare = (handler) => {
      handler.onOverflow = () => handler.stream.end();
    };
    const bytes = message(Buffer.alloc(length));
    const ids = Array.from({ length: 889 }, (_, i) => 2 * i + 1);
    for (const id of ids) connection.say(headers(id));
    for (let at = 0; at < 10 * FRAME_BYTES; at += FRAME_BYTES) {
      for (const id of ids) {
        connection.say(data(id, bytes.subarray(at, at + FRAME_BYTES)));
        held.push(connection.budget.bytes);
      }
    }
    const refused = connection.handlers.filter(({ events }) => events.some(([kind]) => kind === 'overflowed'));
    return { held, refused: refused.length };
  };

  it('a connection whose peer does not keep to its windows holds no more than a bound of unfinished messages', () => {
    const { held, refused } = flood(4 * MEBIBYTE - 1);
    expect(Math.max(...held)).toBeLessThanOrEqual(UNFINISHED_BYTES_MAX);
    expect(refused).toBeGreaterThan(0);
  });
});

describe('the receive windows of a crowded connection', () => {
  it('the receive windows of a crowded connection give no room to a stream that has ended while it waited', () => {
    const out = new OutBuffer({ write: () => true, end: () => {}, unsent: 0 } as never);
    const windows = new ReceiveWindows(out, { bytes: UNFINISHED_BYTES_MAX });
    const waiting = () => ({ id: 1, paused: false, remoteEnded: false, over: false, missing: MEBIBYTE, uncredited: 0 });
    const [stays, ends] = [waiting(), { ...waiting(), id: 3 }];
    windows.acknowledged();
    windows.settle([]);
    for (const stream of [stays, ends]) windows.credit(stream);
    ends.over = true;
    windows.credit(ends);
    windows.sweep();
    windows.sweep();
    expect([stays.uncredited < 0, ends.uncredited]).toEqual([true, 0]);
  });
});
