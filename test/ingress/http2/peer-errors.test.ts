import { describe, expect, it, vi } from 'vitest';
import {
  ACK,
  block,
  data,
  END_HEADERS,
  END_STREAM,
  frame,
  headers,
  message,
  PADDED,
  PREFACE,
  PRIORITY_FLAG,
  requestFields,
  reset,
  settings,
  u32,
  windowUpdate,
} from './frames.ts';
import { MemoryConnection } from './memory-connection.ts';

/** Codes of RFC 9113, section 7. */
const NO_ERROR = 0;
const PROTOCOL = 1;
const FLOW_CONTROL = 3;
const STREAM_CLOSED = 5;
const FRAME_SIZE = 6;
const REFUSED = 7;
const COMPRESSION = 9;
const CALM = 11;

const ping = (flags = 0): Buffer => frame('PING', flags, 0, Buffer.from('abcdefgh'));
const priority = (stream: number, on: number): Buffer => frame('PRIORITY', 0, stream, u32(on), Buffer.from([1]));

describe('a peer that breaks the protocol', () => {
  it.each<[string, number, Buffer]>([
    ['DATA on stream 0', PROTOCOL, data(0, message('x'))],
    ['DATA of a stream that was never opened', PROTOCOL, data(1, message('x'))],
    ['HEADERS on stream 0', PROTOCOL, headers(0)],
    ['HEADERS of an even stream', PROTOCOL, headers(2)],
    ['a stream behind a later one', PROTOCOL, Buffer.concat([headers(5), headers(3)])],
    ['CONTINUATION without a header block', PROTOCOL, frame('CONTINUATION', END_HEADERS, 1)],
    ['a frame inside a header block', PROTOCOL, Buffer.concat([frame('HEADERS', 0, 1), ping()])],
    ['CONTINUATION of another stream', PROTOCOL, Buffer.concat([frame('HEADERS', 0, 1), frame('CONTINUATION', 4, 3)])],
    ['an unknown frame inside a header block', PROTOCOL, Buffer.concat([frame('HEADERS', 0, 1), frame(99, 0, 0)])],
    [
      'HEADERS with more padding than payload',
      PROTOCOL,
      frame('HEADERS', END_HEADERS | PADDED, 1, Buffer.from([9, 0])),
    ],
    [
      'HEADERS that depend on themselves',
      PROTOCOL,
      frame('HEADERS', END_HEADERS | PRIORITY_FLAG, 1, u32(1), Buffer.from([0])),
    ],
    ['a header block that is none', COMPRESSION, frame('HEADERS', END_HEADERS, 1, Buffer.from([0x80]))],
    ['PUSH_PROMISE', PROTOCOL, frame('PUSH_PROMISE', 4, 1, u32(2))],
    ['SETTINGS on a stream', PROTOCOL, frame('SETTINGS', 0, 1)],
    ['SETTINGS of a wrong size', FRAME_SIZE, frame('SETTINGS', 0, 0, Buffer.alloc(5))],
    ['an acknowledgement with settings', FRAME_SIZE, frame('SETTINGS', ACK, 0, Buffer.alloc(6))],
    ['ENABLE_PUSH of 2', PROTOCOL, settings({ 2: 2 })],
    ['an initial window of 2^31', FLOW_CONTROL, settings({ 4: 2 ** 31 })],
    ['a frame size of 16,383', PROTOCOL, settings({ 5: 16_383 })],
    ['PING on a stream', PROTOCOL, frame('PING', 0, 1, Buffer.alloc(8))],
    ['PING of a wrong size', FRAME_SIZE, frame('PING', 0, 0, Buffer.alloc(7))],
    ['GOAWAY on a stream', PROTOCOL, frame('GOAWAY', 0, 1, Buffer.alloc(8))],
    ['WINDOW_UPDATE of a wrong size', FRAME_SIZE, frame('WINDOW_UPDATE', 0, 0, Buffer.alloc(3))],
    ['WINDOW_UPDATE by nothing', PROTOCOL, windowUpdate(0, 0)],
    ['WINDOW_UPDATE of a stream that was never opened', PROTOCOL, windowUpdate(1, 1)],
    ['a window of the connection over 2^31 - 1', FLOW_CONTROL, windowUpdate(0, 2 ** 31 - 1)],
    ['RST_STREAM of a stream that was never opened', PROTOCOL, reset(1)],
    ['RST_STREAM of a wrong size', FRAME_SIZE, Buffer.concat([headers(1), frame('RST_STREAM', 0, 1, Buffer.alloc(3))])],
    ['PRIORITY on stream 0', PROTOCOL, priority(0, 1)],
    ['HEADERS behind the end of their stream', STREAM_CLOSED, Buffer.concat([headers(1), reset(1), headers(1)])],
  ])('a peer that breaks the protocol with %s loses its connection, with code %i', (_what, code, bytes) => {
    const connection = MemoryConnection.open();
    const goaway = connection.say(bytes).told().at(-1);
    expect([goaway?.split(' ')[0], goaway?.split(' ')[2], connection.ended]).toEqual(['GOAWAY', String(code), true]);
    for (const handler of connection.handlers) expect(handler.events.at(-1)).toEqual(['closed', true]);
    connection.say(headers(99));
    expect(connection.told()).toEqual([]);
  });

  it('a peer that breaks the protocol without SETTINGS in its preface loses its connection', () => {
    const connection = new MemoryConnection();
    expect(connection.say(PREFACE, ping()).told().at(-1)).toBe(`GOAWAY 0 ${PROTOCOL}`);
  });

  it.each<[string, number, Buffer]>([
    ['DATA behind END_STREAM', STREAM_CLOSED, Buffer.concat([headers(1, END_STREAM), data(1, message('x'))])],
    ['HEADERS behind END_STREAM', STREAM_CLOSED, Buffer.concat([headers(1, END_STREAM), headers(1, END_STREAM)])],
    ['DATA behind a reset', STREAM_CLOSED, Buffer.concat([headers(1), reset(1), data(1, message('x'))])],
    ['trailers that do not end the stream', PROTOCOL, Buffer.concat([headers(1), headers(1, 0, [['a', 'b']])])],
    ['a pseudo-header in trailers', PROTOCOL, Buffer.concat([headers(1), headers(1, END_STREAM)])],
    ['WINDOW_UPDATE by nothing', PROTOCOL, Buffer.concat([headers(1), windowUpdate(1, 0)])],
    ['a window over 2^31 - 1', FLOW_CONTROL, Buffer.concat([headers(1), windowUpdate(1, 2 ** 31 - 1)])],
    ['PRIORITY of a wrong size', FRAME_SIZE, Buffer.concat([headers(1), frame('PRIORITY', 0, 1, Buffer.alloc(4))])],
    ['PRIORITY on itself', PROTOCOL, Buffer.concat([headers(1), priority(1, 1)])],
  ])('a peer that breaks the protocol with %s loses the stream alone, with code %i', (_what, code, bytes) => {
    const connection = MemoryConnection.open();
    expect(connection.say(bytes).told().at(-1)).toBe(`RST_STREAM 1 ${code}`);
    expect(connection.ended).toBe(false);
    connection.say(headers(3));
    expect(connection.handlers.length).toBe(2);
  });

  it('a peer that breaks the protocol may give priorities, send unknown frames and unknown settings: they mean nothing', () => {
    const connection = MemoryConnection.open();
    connection.say(
      priority(1, 0),
      frame(
        'HEADERS',
        END_HEADERS | PRIORITY_FLAG | PADDED,
        1,
        Buffer.from([2]),
        u32(0),
        Buffer.from([9]),
        block(requestFields()),
        Buffer.alloc(2),
      ),
      frame(77, 255, 0, Buffer.from('whatever')),
      settings({ 99: 5 }),
      data(1, message('x')),
    );
    expect([connection.handlers[0]!.messages, connection.told()]).toEqual([['x'], ['SETTINGS 1']]);
  });
});

describe('bounds of a connection', () => {
  it('a connection refuses streams beyond the bound, and takes others when one has ended', () => {
    const connection = MemoryConnection.open({ streamsMax: 2 });
    connection.say(headers(1), headers(3), headers(5));
    expect(connection.told()).toEqual([`RST_STREAM 5 ${REFUSED}`]);
    connection.say(reset(1), headers(7));
    expect([connection.handlers.length, connection.told()]).toEqual([3, []]);
  });

  it('a connection answers a header list over 64 KB with a 431, and keeps its table in step', () => {
    const connection = MemoryConnection.open();
    // One field of 4,000 bytes in the table, then a reference to it, again and again.
    const field = Buffer.concat([Buffer.from([0x40, 1, 0x61, 127, 0xa1, 0x1e]), Buffer.alloc(4_000, 'v')]);
    const list = Buffer.concat([block(requestFields()), field, Buffer.alloc(20, 0xbe)]);
    expect(connection.say(frame('HEADERS', END_HEADERS | END_STREAM, 1, list)).told()[0]).toContain(':status: 431');
    connection.say(frame('HEADERS', END_HEADERS, 3, block(requestFields()), Buffer.from([0xbe])));
    expect(connection.handlers).toHaveLength(1);
  });

  it('a connection ends at a header block of too many frames, or bytes', () => {
    const many = MemoryConnection.open().say(frame('HEADERS', 0, 1));
    for (let i = 0; i < 9; i++) many.say(frame('CONTINUATION', 0, 1, Buffer.from([0])));
    expect(many.told()).toEqual([`GOAWAY 0 ${CALM}`]);
    const large = MemoryConnection.open().say(frame('HEADERS', 0, 1, Buffer.alloc(16_384)));
    for (let i = 0; i < 4; i++) large.say(frame('CONTINUATION', 0, 1, Buffer.alloc(16_384)));
    expect(large.told()).toEqual([`GOAWAY 0 ${CALM}`]);
  });

  it.each<[string, number, Buffer]>([
    ['PING', 1_000, ping()],
    ['SETTINGS', 1_000, settings()],
    ['empty DATA', 10_000, data(1, Buffer.alloc(0))],
    ['PRIORITY', 10_000, priority(1, 0)],
    ['unknown frames', 10_000, frame(99, 0, 0)],
    ['updates of windows that are gone', 10_000, windowUpdate(3, 1)],
  ])('a connection ends a flood of %s after %i', (_what, burst, bytes) => {
    const connection = MemoryConnection.open();
    connection.say(headers(1), headers(3), reset(3));
    connection.heard();
    for (let i = 0; i < burst - 1 && !connection.ended; i++) connection.say(bytes);
    expect(connection.ended).toBe(false);
    connection.say(bytes, bytes);
    expect(connection.told().at(-1)).toBe(`GOAWAY 3 ${CALM}`);
  });

  it('a connection ends a flood of streams that are reset before they have an answer', () => {
    const connection = MemoryConnection.open();
    let id = 1;
    for (; id < 40_000; id += 2) connection.say(headers(id), reset(id));
    expect([connection.ended, connection.handlers.length]).toEqual([false, 20_000]);
    connection.say(headers(id), reset(id));
    expect(connection.told().at(-1)).toBe(`GOAWAY ${id} ${CALM}`);
  });

  it('a connection takes as many resets behind an answer as there are', () => {
    const connection = MemoryConnection.open();
    connection.prepare = (handler) => {
      handler.onMessage = () => handler.stream.send(Buffer.from('x'));
    };
    for (let id = 1; id < 60_000; id += 2) connection.say(headers(id), data(id, message('x')), reset(id));
    expect([connection.ended, connection.handlers.length]).toEqual([false, 30_000]);
  });

  it('a connection gives the peer new room when a quarter of the window is used', () => {
    const connection = MemoryConnection.open();
    connection.say(headers(1));
    const piece = message('x'.repeat(16_379));
    for (let i = 0; i < 15; i++) connection.say(data(1, piece));
    expect(connection.told()).toEqual([]);
    connection.say(data(1, piece));
    expect(connection.told()).toEqual(['WINDOW_UPDATE 1 262144']);
    for (let i = 16; i < 256; i++) connection.say(data(1, piece));
    expect(connection.told()).toContain('WINDOW_UPDATE 0 2097152');
  });

  it('a connection ends a stream, or the connection, whose peer sends more than the window', () => {
    const connection = MemoryConnection.open();
    connection.prepare = (handler) => {
      handler.onMessage = () => handler.stream.send(Buffer.alloc(2_000_000));
    };
    // The stream is not read, so that it gets no new room.
    connection.say(headers(1), data(1, message('x')));
    const piece = message('x'.repeat(16_379));
    connection.heard();
    for (let i = 0; i < 63; i++) connection.say(data(1, piece));
    expect(connection.told()).toEqual([]);
    connection.say(data(1, piece), data(1, piece));
    expect(connection.told()).toContain(`RST_STREAM 1 ${FLOW_CONTROL}`);
    expect(connection.budget.bytes).toBe(0);
  });

  it('a connection ends when more than 8 MiB of its acknowledgements are not read', () => {
    const connection = MemoryConnection.open();
    connection.unsent = 8 * 1024 * 1024;
    connection.say(ping());
    expect([connection.told(), connection.ended]).toEqual([['PING 1'], false]);
    connection.unsent++;
    connection.say(ping());
    expect([connection.told().at(-1), connection.ended]).toEqual([`GOAWAY 0 ${CALM}`, true]);
  });

  it('a connection cuts off a stream whose replies are more than may be held', () => {
    const connection = MemoryConnection.open({ heldBytes: 1_000_000 });
    connection.say(headers(1));
    connection.handlers[0]!.stream.send(Buffer.alloc(2_000_000));
    connection.say(ping());
    expect(connection.told()).toContain(`RST_STREAM 1 ${CALM}`);
    expect([connection.handlers[0]!.events, connection.budget.bytes]).toEqual([[['closed', true]], 0]);
  });
});

describe('the clock of a connection', () => {
  it('the clock of a connection ends one that says nothing for ten seconds', () => {
    const connection = new MemoryConnection();
    connection.now += 9_999;
    connection.connection.sweep();
    expect(connection.ended).toBe(false);
    connection.now += 2;
    connection.connection.sweep();
    expect(connection.ended).toBe(true);
  });

  it('the clock of a connection asks a silent peer after 30 s, and ends when nothing comes for 20 more', () => {
    const connection = MemoryConnection.open();
    const wait = (ms: number): string[] => {
      connection.now += ms;
      connection.connection.sweep();
      return connection.told();
    };
    expect([wait(30_000), wait(1)]).toEqual([[], ['PING 0']]);
    connection.now += 19_999;
    connection.say(ping(ACK));
    expect([wait(30_000), wait(1), wait(20_000)]).toEqual([[], ['PING 0'], []]);
    wait(1);
    expect(connection.ended).toBe(true);
  });

  it('the clock of a connection tells streams on which nothing comes, as often as the time passes', () => {
    const connection = MemoryConnection.open({ stallMs: 5_000 });
    connection.say(headers(1), headers(3));
    const wait = (ms: number): void => {
      connection.now += ms;
      connection.connection.sweep();
    };
    wait(4_000);
    connection.say(data(3, message('x')));
    wait(1_001);
    expect(connection.handlers.map(({ events }) => events)).toEqual([[['stalled']], [['message', 'x']]]);
    wait(5_001);
    expect(connection.handlers.map(({ events }) => events.length)).toEqual([2, 2]);
  });

  it('the clock of a connection ends a call whose deadline has passed', async () => {
    const connection = MemoryConnection.open();
    connection.say(headers(1, 0, requestFields([['grpc-timeout', '5m']])));
    await vi.waitFor(() => expect(connection.handlers[0]!.events).toEqual([['closed', true]]));
    expect(connection.told()[0]).toContain('grpc-status: 4');
  });
});

describe('the end of a connection', () => {
  it('the end of a connection is announced before it refuses anything, and comes with the end of the last stream', () => {
    const connection = MemoryConnection.open();
    connection.say(headers(1));
    connection.connection.announceEnd();
    expect(connection.told()).toEqual([`GOAWAY ${2 ** 31 - 1} ${NO_ERROR}`]);
    connection.say(headers(3));
    connection.connection.drain();
    expect(connection.told()).toEqual([`GOAWAY 3 ${NO_ERROR}`]);
    connection.say(headers(5));
    expect(connection.told()).toEqual([`RST_STREAM 5 ${REFUSED}`]);
    connection.say(reset(1));
    expect(connection.ended).toBe(false);
    connection.handlers[1]!.stream.end();
    connection.say(ping());
    expect([connection.ended, connection.handlers.length]).toEqual([true, 2]);
  });

  it('the end of a connection leaves no bytes held, wherever it comes', () => {
    const connection = MemoryConnection.open();
    const bytes = message('x'.repeat(100_000));
    connection.say(headers(1), data(1, bytes.subarray(0, 16_000)), headers(3), data(3, message('x')));
    connection.handlers[1]!.stream.send(Buffer.alloc(300_000));
    expect(connection.budget.bytes).toBeGreaterThan(131_072);
    connection.connection.closed();
    expect(connection.budget.bytes).toBe(0);
  });
});
