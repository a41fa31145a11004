import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bufferSize, KEPT_BYTES_MAX } from '../../../dist/src/request/kept-buffers.js';
import {
  ACK,
  block,
  data,
  END_HEADERS,
  END_STREAM,
  type Fields,
  frame,
  headers,
  message,
  PADDED,
  PREFACE,
  PROCESS,
  requestFields,
  reset,
  settings,
  windowUpdate,
} from './frames.ts';
import { MemoryConnection, messagesOf } from './memory-connection.ts';

/** Codes of RFC 9113, section 7. */
const PROTOCOL = 1;
const ping = (flags = 0) => frame('PING', flags, 0, Buffer.from('abcdefgh'));
const OK_HEAD = ':status: 200, content-type: application/grpc';

describe('a connection', () => {
  it('a connection begins with its settings and a large window, and acknowledges the settings of the peer', () => {
    const connection = new MemoryConnection();
    connection.say(PREFACE, settings({ 4: 100_000 }));
    const frames = connection.heard();
    expect(frames.map(({ type, flags }) => [type, flags])).toEqual([
      ['SETTINGS', 0],
      ['WINDOW_UPDATE', 0],
      ['SETTINGS', ACK],
    ]);
    expect(frames[0]!.payload.toString('hex')).toBe('00030000271000040010000000060001 0000'.replace(' ', ''));
  });

  it('a connection answers a PING with its own bytes', () => {
    const [answer] = MemoryConnection.open().say(ping()).heard();
    expect([answer!.type, answer!.flags, answer!.payload.toString()]).toEqual(['PING', ACK, 'abcdefgh']);
  });

  it('a connection passes messages on, and ends with OK when both sides have ended', () => {
    const connection = MemoryConnection.open();
    connection.prepare = (handler) => {
      handler.onMessage = (text) => handler.stream.send(Buffer.from(text.toUpperCase()));
      handler.onHalfClosed = () => handler.stream.end();
    };
    connection.say(headers(1), data(1, Buffer.concat([message('one'), message('two')]), END_STREAM));
    const [handler] = connection.handlers;
    expect(handler!.events).toEqual([['message', 'one'], ['message', 'two'], ['half-closed'], ['closed', false]]);
    expect(connection.told()).toEqual([`HEADERS 1 ${OK_HEAD}`, 'DATA 1 8', 'DATA 1 8', 'HEADERS 1 END grpc-status: 0']);
  });

  it('a connection tells a peer that has not ended that it need not go on', () => {
    const connection = MemoryConnection.open();
    connection.prepare = (handler) => {
      handler.onMessage = () => handler.stream.end();
    };
    connection.say(headers(1), data(1, message('x')));
    expect(connection.told()).toEqual([`HEADERS 1 END ${OK_HEAD}, grpc-status: 0`, 'RST_STREAM 1 0']);
    // What was on its way is no error.
    connection.say(data(1, message('late')), windowUpdate(1, 5), reset(1), headers(3));
    expect([connection.told(), connection.handlers.length]).toEqual([[], 2]);
  });

  it('a connection calls `closed` behind the read that ended the stream, never from inside a reply', () => {
    const connection = MemoryConnection.open();
    let inside = true;
    connection.prepare = (handler) => {
      handler.onMessage = () => {
        handler.stream.send(Buffer.from('x'));
        handler.stream.end();
        inside = handler.events.some(([kind]) => kind === 'closed');
      };
    };
    connection.say(headers(1), data(1, message('x')));
    expect([inside, connection.handlers[0]!.events.at(-1)]).toEqual([false, ['closed', false]]);
  });

  it('a connection tells a stream that the peer has reset, and every stream when the socket is gone', () => {
    const connection = MemoryConnection.open();
    connection.say(headers(1), headers(3), reset(1));
    expect(connection.handlers.map(({ events }) => events)).toEqual([[['closed', true]], []]);
    connection.connection.closed();
    connection.connection.closed();
    expect(connection.handlers[1]!.events).toEqual([['closed', true]]);
  });

  it('a connection leaves its replies for later while there is more to read, and sends them in one piece', () => {
    const connection = MemoryConnection.open();
    connection.prepare = (handler) => {
      handler.onMessage = (text) => handler.stream.send(Buffer.from(text));
    };
    const first = Buffer.concat([headers(1), data(1, message('one'))]);
    connection.connection.receive(first, 0, first.length, 1_000, true);
    expect(connection.told()).toEqual([]);
    connection.say(data(1, message('two')));
    expect(connection.told()).toEqual([`HEADERS 1 ${OK_HEAD}`, 'DATA 1 8', 'DATA 1 8']);
    const third = data(1, message('three'));
    connection.connection.receive(third, 0, third.length, 1_000, true);
    connection.connection.flush();
    expect(connection.told()).toEqual(['DATA 1 10']);
  });

  it('a connection puts a message together from any pieces, and frees the buffers that held them', () => {
    const connection = MemoryConnection.open();
    connection.say(headers(1), headers(3));
    const bytes = Buffer.concat([message('a'.repeat(5_000)), message(''), message('b'.repeat(200_000))]);
    const held: number[] = [];
    for (let at = 0; at < bytes.length; at += 7_001) {
      connection.say(data(1, bytes.subarray(at, at + 7_001)), data(3, bytes.subarray(at, at + 7_001)));
      held.push(connection.budget.bytes);
    }
    for (const { messages } of connection.handlers) {
      expect(messages.map((text) => [text.length, text[0]])).toEqual([
        [5_000, 'a'],
        [0, undefined],
        [200_000, 'b'],
      ]);
    }
    // Of two streams: room of a piece at first, of the whole message when more than half of it has come.
    expect([held[0], Math.max(...held), held.at(-1)]).toEqual([2 * KEPT_BYTES_MAX, 2 * bufferSize(200_000), 0]);
  });

  it('a connection acts the same on any cut of the bytes', () => {
    const one = message('a'.repeat(50));
    const script = Buffer.concat([
      PREFACE,
      settings(),
      headers(1),
      data(1, one.subarray(0, 3)),
      headers(3, END_STREAM),
      data(1, Buffer.concat([one.subarray(3), message('b')])),
      frame('DATA', PADDED, 1, Buffer.from([4]), message('padded'), Buffer.alloc(4)),
      ping(),
      frame('HEADERS', 0, 5, block(requestFields()).subarray(0, 20)),
      frame('CONTINUATION', END_HEADERS, 5, block(requestFields()).subarray(20)),
      reset(5),
      headers(1, END_STREAM, [['x-end', 'yes']]),
    ]);
    const act = (cuts: readonly number[]) => {
      const connection = new MemoryConnection();
      connection.prepare = (handler) => {
        handler.onMessage = (text) => handler.stream.send(Buffer.from(text));
        handler.onHalfClosed = () => handler.stream.end();
      };
      let at = 0;
      for (const cut of [...cuts, script.length]) {
        connection.say(script.subarray(at, cut));
        at = cut;
      }
      return [connection.handlers.map(({ events }) => events), connection.told()];
    };
    const cuts = fc.uniqueArray(fc.nat(script.length), { maxLength: 30 }).map((all) => all.sort((a, b) => a - b));
    fc.assert(
      fc.property(cuts, (given) => {
        expect(act(given)).toEqual(act([]));
      }),
    );
    expect(act([...script.keys()])).toEqual(act([]));
  });
});

describe('the end of a connection', () => {
  it('the end of a connection is announced once, and refuses no stream before the drain', () => {
    const connection = MemoryConnection.open();
    for (let i = 0; i < 2; i++) connection.connection.announceEnd();
    expect(connection.told()).toEqual(['GOAWAY 2147483647 0']);
    connection.say(headers(1));
    expect(connection.handlers).toHaveLength(1);
    for (let i = 0; i < 2; i++) connection.connection.drain();
    expect(connection.told()).toEqual(['GOAWAY 1 0']);
    connection.connection.announceEnd();
    expect(connection.told()).toEqual([]);
  });
});

describe('a header block that is equal to the one before', () => {
  /** :method POST and :scheme http of the static table, then what is given. */
  const indexed = (stream: number, ...bytes: readonly (number | string)[]): Buffer => {
    const parts = bytes.map((part) =>
      typeof part === 'number' ? Buffer.from([part]) : Buffer.concat([Buffer.from([part.length]), Buffer.from(part)]),
    );
    return frame('HEADERS', END_HEADERS, stream, Buffer.from([0x83, 0x86]), ...parts);
  };
  /** A field that is added to the table: a name of the static one, and a value. */
  const PATH = [0x44, PROCESS];
  const TYPE = [0x5f, 'application/grpc'];
  /** Fields of the dynamic table, the newest first. */
  const NEWEST = 0xbe;
  const SECOND = 0xbf;

  it('a header block that is equal to the one before means the same call', () => {
    const connection = MemoryConnection.open();
    connection.say(indexed(1, ...PATH, ...TYPE));
    for (const id of [3, 5, 7]) connection.say(indexed(id, SECOND, NEWEST));
    expect([connection.told(), connection.handlers.length]).toEqual([[], 4]);
  });

  it('a header block that is equal to the one before is read anew when the table of fields has changed', () => {
    const connection = MemoryConnection.open();
    connection.say(
      indexed(1, ...TYPE, ...PATH),
      indexed(3, NEWEST, SECOND),
      indexed(5, SECOND, 0x44, '/no.Such/Method'),
    );
    connection.heard();
    // The newest field is the other path now, and the second one the path that was the newest.
    connection.say(indexed(7, NEWEST, SECOND));
    expect(connection.told()).toEqual(['RST_STREAM 7 1']);
    connection.say(indexed(9, NEWEST, 0xc0));
    expect(connection.told()[0]).toContain('unknown method /no.Such/Method');
  });

  it('a header block that is equal to the one before ends its stream or not as its own frame says', () => {
    const connection = MemoryConnection.open();
    connection.say(headers(1), headers(3, END_STREAM), headers(5));
    expect(connection.handlers.map(({ events }) => events)).toEqual([[], [['half-closed']], []]);
  });
});

describe('requests that are no calls', () => {
  const answer = (fields: Fields): string[] =>
    MemoryConnection.open()
      .say(headers(1, 0, fields))
      .told();
  const replaced = (name: string, value: string): Fields =>
    requestFields().map((field) => (field[0] === name ? [name, value] : field));

  it('requests that are no calls are told that a method is unknown', () => {
    expect(answer(requestFields([], '/no.Such/Method'))).toEqual([
      `HEADERS 1 END ${OK_HEAD}, grpc-status: 12, grpc-message: unknown method /no.Such/Method`,
      'RST_STREAM 1 0',
    ]);
  });

  it.each(['', '5', 'm', '-5m', '5x', '123456789m', 'NaNm'])(
    'a call with the malformed grpc-timeout "%s" is refused as INVALID_ARGUMENT, and another one goes on',
    (timeout) => {
      const connection = MemoryConnection.open();
      connection.say(headers(1), headers(3, 0, requestFields([['grpc-timeout', timeout]])));
      expect(connection.told()[0]).toContain('grpc-status: 3');
      expect([connection.handlers.length, connection.ended]).toEqual([1, false]);
    },
  );

  it('requests that are no calls are told that compressed messages are not taken, before any comes', () => {
    expect(answer(requestFields([['grpc-encoding', 'gzip']]))[0]).toContain('grpc-status: 12');
    expect(answer(requestFields([['grpc-encoding', 'identity']]))).toEqual([]);
  });

  it('requests that are no calls get the same answer again, and a call behind them is served', () => {
    const connection = MemoryConnection.open();
    const gzip = requestFields([['grpc-encoding', 'gzip']]);
    connection.say(headers(1, 0, gzip), headers(3, 0, gzip), headers(5));
    const told = connection.told();
    expect(told.map((text) => text.replace(/ [13] /, ' N '))).toEqual(
      [told[0], told[1], told[0], told[1]].map((text) => text!.replace(/ 1 /, ' N ')),
    );
    expect(connection.handlers.map(({ stream }) => (stream as { id?: number }).id)).toEqual([5]);
  });

  it('requests that are no calls get an HTTP status and a text at their end when they are no gRPC', () => {
    const whole = (fields: Fields): string[] =>
      MemoryConnection.open()
        .say(headers(1, END_STREAM, fields))
        .told();
    expect(whole(replaced(':method', 'GET'))[0]).toContain(':status: 405');
    const json = replaced('content-type', 'application/json');
    expect(answer(json)).toEqual([]);
    const fields = ':status: 415, content-type: text/plain, content-length: 58';
    expect(whole(json)).toEqual([`HEADERS 1 ${fields}`, 'DATA 1 58', 'DATA 1 END 0']);
  });

  it.each<[string, Fields]>([
    ['a missing path', requestFields().filter(([name]) => name !== ':path')],
    ['an empty path', replaced(':path', '')],
    ['a pseudo-header twice', [[':method', 'POST'], ...requestFields()]],
    ['a pseudo-header behind a field', [...requestFields(), [':scheme', 'http']]],
    ['an unknown pseudo-header', [[':unknown', 'x'], ...requestFields()]],
    ['a capital in a name', requestFields([['X-Capital', 'x']])],
    ['a field of HTTP/1', requestFields([['connection', 'close']])],
    ['a line feed in a value', requestFields([['x-a', 'b\nc']])],
    ['te that is not trailers', replaced('te', 'gzip')],
  ])('requests that are no calls are reset with PROTOCOL_ERROR for %s', (_what, fields) => {
    const connection = MemoryConnection.open();
    expect(connection.say(headers(1, 0, fields)).told()).toEqual([`RST_STREAM 1 ${PROTOCOL}`]);
    // The connection goes on, its header table in step.
    connection.say(headers(3));
    expect(connection.handlers).toHaveLength(1);
  });

  it('requests that are no calls are reset when their data is not as long as they said', () => {
    const connection = MemoryConnection.open();
    connection.say(headers(1, 0, requestFields([['content-length', '7']])), data(1, message('x'), END_STREAM));
    expect(connection.told()).toEqual([`RST_STREAM 1 ${PROTOCOL}`]);
  });
});

describe('a gRPC message', () => {
  it('a gRPC message that is compressed ends its stream with UNIMPLEMENTED', () => {
    const connection = MemoryConnection.open();
    connection.say(headers(1), data(1, message('x', 1)));
    expect(connection.told()[0]).toContain('grpc-status: 12');
    expect(connection.handlers[0]!.events).toEqual([['closed', true]]);
  });

  it('a gRPC message over the bound ends its stream with RESOURCE_EXHAUSTED when it is announced', () => {
    const connection = MemoryConnection.open({ messageBytesMax: 100 });
    connection.say(headers(1), data(1, message('x'.repeat(101)).subarray(0, 5)));
    expect(connection.told()[0]).toContain('grpc-status: 8');
  });

  it('a gRPC message that does not come to its end is no message', () => {
    const connection = MemoryConnection.open();
    connection.say(headers(1), data(1, message('four').subarray(0, 7), END_STREAM));
    expect(connection.told()[0]).toContain('grpc-status: 13');
    expect([connection.handlers[0]!.events, connection.budget.bytes]).toEqual([[['closed', true]], 0]);
  });

  it('a gRPC message counts against the bound by what it takes, from its first bytes on', () => {
    const connection = MemoryConnection.open({ heldBytes: 1_000_000 });
    for (let i = 0; i < 7; i++)
      connection.say(headers(2 * i + 1), data(2 * i + 1, message('x'.repeat(100_000)).subarray(0, 50)));
    expect(connection.budget.bytes).toBe(7 * KEPT_BYTES_MAX);
    connection.prepare = (handler) => {
      handler.onOverflow = () => {
        handler.stream.send(Buffer.from('no'));
        handler.stream.end();
      };
    };
    connection.heard();
    connection.say(headers(99), data(99, message('x'.repeat(100_000)).subarray(0, 50)));
    expect(connection.handlers.at(-1)!.events).toEqual([['overflowed'], ['closed', false]]);
    expect(connection.told()).toEqual([
      `HEADERS 99 ${OK_HEAD}`,
      'DATA 99 7',
      'HEADERS 99 END grpc-status: 0',
      'RST_STREAM 99 0',
    ]);
    connection.connection.closed();
    expect(connection.budget.bytes).toBe(0);
  });

  it('a gRPC message that is only announced takes no more than what has come', () => {
    const connection = MemoryConnection.open();
    const bytes = message('x'.repeat(4_000_000));
    connection.say(headers(1), data(1, bytes.subarray(0, 1_000)));
    expect(connection.budget.bytes).toBe(KEPT_BYTES_MAX);
  });
});

describe('flow control of replies', () => {
  const echoing = (client: Buffer): MemoryConnection => {
    const connection = MemoryConnection.open({}, client);
    connection.prepare = (handler) => {
      handler.onMessage = (text) => handler.stream.sendParts(Buffer.from(text), [Buffer.from(text)]);
      handler.onHalfClosed = () => handler.stream.end();
    };
    return connection;
  };

  it('flow control of replies sends as much as the window of the stream lets through, then the rest, then the end', () => {
    const connection = echoing(settings({ 4: 10 }));
    connection.say(headers(1), data(1, message('0123456789'), END_STREAM));
    expect(connection.told()).toEqual([`HEADERS 1 ${OK_HEAD}`, 'DATA 1 10']);
    connection.say(windowUpdate(1, 14));
    expect(connection.told()).toEqual(['DATA 1 14']);
    connection.say(windowUpdate(1, 1));
    expect(connection.told()).toEqual(['DATA 1 1', 'HEADERS 1 END grpc-status: 0']);
    expect(connection.handlers[0]!.events.at(-1)).toEqual(['closed', false]);
  });

  it('flow control of replies refuses streams while the replies of 256 others wait for windows of their own', () => {
    const connection = echoing(settings({ 4: 0 }));
    for (let i = 0; i < 256; i++) connection.say(headers(2 * i + 1), data(2 * i + 1, message('late')));
    connection.told();
    connection.say(headers(513), data(513, message('refused')));
    expect(connection.told()).toEqual(['RST_STREAM 513 7']);
    expect(connection.handlers).toHaveLength(256);
    connection.say(windowUpdate(1, 100), headers(515));
    expect(connection.handlers).toHaveLength(257);
    connection.say(data(515, message('late')), reset(3), headers(517));
    expect(connection.handlers).toHaveLength(258);
  });

  it('flow control of replies lets a stream go whose end had to wait for the window', () => {
    const connection = echoing(settings({ 4: 10 }));
    connection.say(headers(1), data(1, message('0123456789'), END_STREAM));
    expect(connection.connection.streamCount).toBe(1);
    connection.say(windowUpdate(1, 100));
    expect(connection.connection.streamCount).toBe(0);
  });

  it('flow control of replies follows a change of the initial window, also below nothing', () => {
    const connection = echoing(settings({ 4: 20 }));
    connection.say(headers(1), data(1, message('0123456789')));
    expect(connection.told()).toEqual([`HEADERS 1 ${OK_HEAD}`, 'DATA 1 20']);
    connection.say(settings({ 4: 5 }), windowUpdate(1, 15));
    expect(connection.told()).toEqual(['SETTINGS 1']);
    connection.say(settings({ 4: 8 }));
    expect(connection.told()).toEqual(['SETTINGS 1', 'DATA 1 3']);
  });

  it('flow control of replies shares the window of the connection among the streams, a frame each', () => {
    const connection = echoing(settings({ 4: 1_000_000 }));
    const half = 'x'.repeat(50_000);
    for (const id of [1, 3]) connection.say(headers(id));
    for (let at = 0; at < half.length + 5; at += 10_000) {
      for (const id of [1, 3]) connection.say(data(id, message(half).subarray(at, at + 10_000)));
    }
    const first = connection.heard().filter(({ type }) => type === 'DATA');
    expect(first.reduce((sum, { payload }) => sum + payload.length, 0)).toBe(65_535);
    connection.say(windowUpdate(0, 4 * 16_384));
    const second = connection.heard();
    expect(second.map(({ stream, payload }) => [stream, payload.length])).toEqual([
      [1, 16_384],
      [3, 16_384],
      [1, 16_384],
      [3, 16_384],
    ]);
    connection.say(windowUpdate(0, 1_000_000));
    const frames = [...first, ...second, ...connection.heard()];
    for (const id of [1, 3]) expect(messagesOf(frames, id).map((bytes) => bytes.length)).toEqual([100_000]);
  });

  it('flow control of replies delivers any replies under any windows, whole and in order', () => {
    const sizes = fc.array(fc.oneof(fc.nat(50), fc.nat(70_000)), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(
        sizes,
        fc.array(fc.integer({ min: 1, max: 40_000 }), { maxLength: 20 }),
        fc.nat(5_000),
        (lengths, steps, window) => {
          const connection = MemoryConnection.open({}, settings({ 4: window }));
          connection.say(headers(1));
          const { stream } = connection.handlers[0]!;
          const replies = lengths.map((length, i) => Buffer.alloc(length, i + 1));
          const frames = connection.heard();
          for (const [i, reply] of replies.entries()) {
            if (i % 2 === 0) stream.send(reply);
            else stream.sendParts(reply.subarray(0, 10), [reply.subarray(10)]);
            // The caller uses its memory again.
            const copy = Buffer.from(reply);
            reply.fill(0);
            replies[i] = copy;
            const step = steps[i];
            if (step !== undefined) connection.say(windowUpdate(1, step), windowUpdate(0, step));
            frames.push(...connection.heard());
          }
          stream.end();
          connection.say(windowUpdate(1, 1_000_000), windowUpdate(0, 1_000_000));
          frames.push(...connection.heard());
          expect(messagesOf(frames, 1).map((bytes) => bytes.toString('latin1'))).toEqual(
            replies.map((bytes) => bytes.toString('latin1')),
          );
          expect(frames.filter(({ type }) => type === 'HEADERS').at(-1)!.flags & END_STREAM).toBe(END_STREAM);
          expect([connection.budget.bytes, connection.connection.streamCount]).toEqual([0, 0]);
        },
      ),
    );
  });

  it('flow control of replies lets a short reply wait although too much is held, and cuts off a long one', () => {
    const connection = MemoryConnection.open({ heldBytes: 10_000 }, settings({ 4: 10 }));
    connection.say(headers(1), headers(3));
    connection.budget.take(10_000);
    const [refused, placed] = connection.handlers;
    refused!.stream.send(Buffer.alloc(1_000, 'r'));
    refused!.stream.end();
    placed!.stream.send(Buffer.alloc(5_000, 'p'));
    connection.say(windowUpdate(1, 2_000));
    const frames = connection.heard();
    expect(frames.filter(({ type }) => type === 'RST_STREAM').map(({ stream }) => stream)).toEqual([3, 1]);
    expect(messagesOf(frames, 1).map(String)).toEqual(['r'.repeat(1_000)]);
    expect(connection.budget.bytes).toBe(10_000);
  });

  it('flow control of replies holds memory that replies lie in for as long as they wait', () => {
    const connection = MemoryConnection.open({}, settings({ 4: 10 }));
    connection.say(headers(1));
    let holders = 0;
    const memory = { retain: () => holders++, release: () => holders-- };
    connection.handlers[0]!.stream.sendParts(Buffer.alloc(20), [Buffer.alloc(20)], memory);
    const during = holders;
    connection.say(windowUpdate(1, 100));
    expect([during > 0, holders]).toEqual([true, 0]);
    connection.handlers[0]!.stream.sendParts(Buffer.alloc(0), [Buffer.alloc(1_000)], memory);
    connection.say(reset(1));
    expect([holders, connection.budget.bytes]).toEqual([0, 0]);
  });

  it('flow control of replies copies the heads of replies that wait: the next reply is written over them', () => {
    const connection = MemoryConnection.open({}, settings({ 4: 0 }));
    connection.say(headers(1));
    const head = Buffer.alloc(1);
    for (const letter of ['a', 'b', 'c']) {
      head.write(letter);
      connection.handlers[0]!.stream.sendParts(head, [Buffer.from('-')]);
    }
    connection.say(windowUpdate(1, 1_000));
    expect(messagesOf(connection.heard(), 1).map(String)).toEqual(['a-', 'b-', 'c-']);
  });

  it('flow control of replies reads no more of a stream whose replies pile up, and goes on when half of them are gone', () => {
    const connection = MemoryConnection.open();
    connection.prepare = (handler) => {
      handler.onMessage = () => handler.stream.send(Buffer.alloc(500_000));
    };
    connection.say(headers(1), data(1, Buffer.concat(new Array(10).fill(message('x'))), END_STREAM));
    const [handler] = connection.handlers;
    expect(handler!.messages).toHaveLength(3);
    connection.say(windowUpdate(1, 2_000_000), windowUpdate(0, 2_000_000));
    expect(handler!.messages.length).toBeGreaterThan(3);
    expect(handler!.messages.length).toBeLessThan(9);
    connection.say(windowUpdate(1, 10_000_000), windowUpdate(0, 10_000_000));
    expect(handler!.events.slice(-2)).toEqual([['message', 'x'], ['half-closed']]);
    expect(handler!.messages).toHaveLength(10);
  });

  it('flow control of replies waits for the socket when it has a megabyte to send', () => {
    const connection = MemoryConnection.open({}, settings({ 4: 100_000_000 }));
    connection.say(headers(1), windowUpdate(0, 100_000_000));
    connection.heard();
    connection.unsent = 2_000_000;
    connection.handlers[0]!.stream.send(Buffer.alloc(100_000));
    connection.connection.drained();
    expect(connection.told()).toEqual([`HEADERS 1 ${OK_HEAD}`]);
    connection.unsent = 0;
    connection.connection.drained();
    expect(messagesOf(connection.heard(), 1).map((bytes) => bytes.length)).toEqual([100_000]);
  });
});
