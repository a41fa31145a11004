import { describe, expect, it } from 'vitest';
import { ClientShares } from '../../../dist/src/ingress/client-shares.js';
import type { ProcessStream } from '../../../dist/src/ingress/transport.js';
import { ArrivalClock } from '../../../dist/src/ingress/transports/http2/arrival-clock.js';
import { data, END_STREAM, headers, message, PROCESS, reset, settings } from './frames.ts';
import { MemoryConnection, messagesOf, RecordingHandler } from './memory-connection.ts';

const ANSWER = Buffer.from('too many');

/** A connection whose method turns every stream away that came before `from`. */
function turning(from = Number.POSITIVE_INFINITY, client = settings()): MemoryConnection {
  const open = (): never => {
    throw new Error('a stream was opened');
  };
  const turnAway = (arrivedAt: number) => (arrivedAt < from ? ANSWER : undefined);
  return MemoryConnection.open({ methods: new Map([[PROCESS, { open, turnAway }]]) }, client);
}

describe('a stream that is turned away', () => {
  it('a stream that is turned away gets one message and its end before anything is made for it', () => {
    const connection = turning().say(headers(1), data(1, message('body')));
    const frames = connection.heard();
    expect(messagesOf(frames, 1)).toEqual([ANSWER]);
    expect(frames.map(({ type, flags }) => [type, flags & END_STREAM])).toEqual([
      ['HEADERS', 0],
      ['DATA', 0],
      ['HEADERS', END_STREAM],
      ['RST_STREAM', 0],
    ]);
    expect([connection.connection.streamCount, connection.budget.bytes]).toEqual([0, 0]);
  });

  it('a stream that is turned away is not reset when the peer has ended it already', () => {
    expect(turning().say(headers(1, END_STREAM)).told().at(-1)).toMatch(/^HEADERS 1 END grpc-status: 0/);
  });

  it('a stream that is turned away gets a status when the peer takes no data', () => {
    const connection = turning(undefined, settings({ 4: 10 })).say(headers(1));
    expect(connection.told()[0]).toMatch(/^HEADERS 1 END .*grpc-status: 14/);
  });

  it('a stream that is turned away costs the peer nothing, whatever of it is on its way, as often as it happens', () => {
    const connection = turning();
    const ends = [data(1, Buffer.alloc(0), END_STREAM), reset(1)];
    for (let id = 1; id < 80_000; id += 2) {
      const end = Buffer.from(ends[id % 4 === 1 ? 0 : 1]!);
      end.writeUInt32BE(id, 5);
      connection.say(headers(id), data(id, message('x')), data(id, message('y')), end);
      connection.heard();
    }
    expect(connection.ended).toBe(false);
  });

  it('a stream that is turned away has an end that counts once: what comes behind it is a flood', () => {
    const connection = turning().say(headers(1), reset(1));
    for (let i = 0; i < 10_001; i++) connection.say(reset(1));
    expect([connection.told().at(-1), connection.ended]).toEqual(['GOAWAY 1 11', true]);
  });

  it('a stream is turned away by the earliest time at which its first byte can have come', () => {
    const connection = new MemoryConnection({});
    const ages: number[] = [];
    connection.prepare = ({ stream }) => ages.push(stream.arrivedAt);
    const first = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settings(), headers(1)]);
    connection.connection.receive(first, 0, first.length, 700);
    expect(ages).toEqual([700]);
  });
});

describe('a method whose handlers are made late', () => {
  /** What happened to the streams of a method: their handlers in `handlers`, all else in `events`. */
  function late() {
    const events: unknown[] = [];
    const handlers: RecordingHandler[] = [];
    const method = {
      open: (stream: ProcessStream) => {
        const handler = new RecordingHandler(stream);
        handlers.push(handler);
        return handler;
      },
      opensLate: true,
      came: () => events.push('came'),
      abandoned: (arrivedAt: number) => events.push(['abandoned', arrivedAt]),
      closed: () => events.push('closed'),
    };
    const connection = MemoryConnection.open({ methods: new Map([[PROCESS, method]]), stallMs: 5_000 });
    return { events, handlers, connection };
  }

  it('a method whose handlers are made late has none for a stream that is reset before its first message', () => {
    const { events, handlers, connection } = late();
    connection.say(headers(1), data(1, message('half').subarray(0, 7)), reset(1));
    expect(handlers).toEqual([]);
    expect(events).toEqual(['came', ['abandoned', 1_000], 'closed']);
    expect(connection.budget.bytes).toBe(0);
  });

  it.each([
    ['a message', data(1, message('m')), ['message', 'm']],
    ['the end of the stream', data(1, Buffer.alloc(0), END_STREAM), ['half-closed']],
  ])('a method whose handlers are made late has one with %s', (_, bytes, event) => {
    const { events, handlers, connection } = late();
    connection.say(headers(1), bytes, reset(1));
    expect(handlers.map((handler) => handler.events)).toEqual([[event, ['closed', true]]]);
    expect(events).toEqual(['came', 'closed']);
  });

  it('a method whose handlers are made late has one that hears when nothing comes', () => {
    const { handlers, connection } = late();
    connection.say(headers(1));
    connection.now += 6_000;
    connection.connection.sweep();
    expect(handlers.map((handler) => handler.events)).toEqual([[['stalled']]]);
  });
});

describe('a flood of streams that are reset before their first message', () => {
  /** A connection that says of each new stream whether its age is judged. */
  function judging() {
    const judged: boolean[] = [];
    const turnAway = (_arrivedAt: number, _crowded: boolean, passes: boolean) => {
      judged.push(!passes);
      return undefined;
    };
    const handlers: RecordingHandler[] = [];
    const open = (stream: ProcessStream) => {
      handlers.push(new RecordingHandler(stream));
      return handlers.at(-1)!;
    };
    const methods = new Map([[PROCESS, { open, opensLate: true, turnAway }]]);
    return { judged, handlers, connection: MemoryConnection.open({ methods }) };
  }

  it('a flood of resets has the age of its first 32 streams judged, and no more than those count in the budget', () => {
    const { judged, connection } = judging();
    for (let id = 1; id < 200; id += 2) connection.say(headers(id), reset(id));
    expect(judged.filter((is) => is)).toHaveLength(32);
    expect(judged.slice(0, 32).every((is) => is)).toBe(true);
    expect(connection.connection.judged).toBe(32);
  });

  it('a flood of resets is over when as many streams get to their message', () => {
    const { judged, connection } = judging();
    for (let id = 1; id < 200; id += 2) connection.say(headers(id), reset(id));
    for (let id = 201; id < 300; id += 2) connection.say(headers(id), data(id, message('m')));
    expect(judged.slice(-50).filter((is) => is)).toHaveLength(50 - 33);
  });

  it('a flood of resets is none when a proxy resets streams that were answered', () => {
    const { judged, handlers, connection } = judging();
    const ids = Array.from({ length: 100 }, (_, i) => 2 * i + 1);
    for (const id of ids) connection.say(headers(id), data(id, message('m')));
    for (const { stream } of handlers) stream.end();
    connection.connection.flush();
    for (const id of ids) connection.say(reset(id));
    connection.say(headers(201));
    expect(judged.at(-1)).toBe(true);
  });

  it('a flood of resets is known, too, by streams that were turned away and had no message', () => {
    const judged: boolean[] = [];
    const turnAway = (_arrivedAt: number, _crowded: boolean, passes: boolean) => {
      judged.push(!passes);
      return ANSWER;
    };
    const open = (stream: ProcessStream) => new RecordingHandler(stream);
    const connection = MemoryConnection.open({ methods: new Map([[PROCESS, { open, turnAway }]]) });
    for (let id = 1; id < 200; id += 2) connection.say(headers(id), reset(id));
    expect(judged.at(-1)).toBe(false);
    for (let id = 201; id < 264; id += 2) connection.say(headers(id), data(id, message('m')), reset(id));
    expect(judged.at(-1)).toBe(false);
    for (let id = 265; id < 400; id += 2) connection.say(headers(id), data(id, message('m')), reset(id));
    expect(judged.at(-1)).toBe(true);
  });
});

describe('a connection that has its share of the streams', () => {
  const open = (stream: ProcessStream) => new RecordingHandler(stream);
  const turnAway = (_arrivedAt: number, crowded: boolean) => (crowded ? ANSWER : undefined);
  /** A connection to a shard with four streams, and what the clients of the shard use. */
  function sharing() {
    const shares = new ClientShares({ streamsMax: 4 });
    const share = shares.join('10.0.0.1', false, 0);
    return { shares, connection: MemoryConnection.open({ methods: new Map([[PROCESS, { open, turnAway }]]), share }) };
  }

  it('a connection that has its share is told so on further streams, and has room again when one has ended', () => {
    const { shares, connection } = sharing();
    shares.join('10.0.0.1', false, 0);
    connection.say(headers(1), headers(3), headers(5));
    expect(messagesOf(connection.heard(), 5)).toEqual([ANSWER]);
    connection.say(reset(1), headers(7));
    expect([connection.heard(), connection.connection.streamCount]).toEqual([[], 2]);
  });

  it('a connection that has its share gets more while it is the only one', () => {
    const { connection } = sharing();
    connection.say(headers(1), headers(3), headers(5));
    expect([connection.heard(), connection.connection.streamCount]).toEqual([[], 3]);
  });

  it('a connection gives its streams back when it ends', () => {
    const { shares, connection } = sharing();
    connection.say(headers(1), headers(3));
    expect([shares.connections, shares.streams]).toEqual([1, 2]);
    connection.connection.closed();
    expect([shares.connections, shares.streams]).toEqual([0, 0]);
  });
});

describe('the clock of arrivals', () => {
  function clock() {
    const state = { idleMs: 0, ends: [] as (() => void)[] };
    const arrivals = new ArrivalClock({ idleMs: () => state.idleMs, defer: (end) => state.ends.push(end) });
    const nextTurn = () => {
      for (const end of state.ends.splice(0)) end();
    };
    return { arrivals, state, nextTurn };
  }

  it('the arrival clock takes bytes for new that come when the loop has waited', () => {
    const { arrivals, state, nextTurn } = clock();
    state.idleMs = 10;
    expect(arrivals.read(100)).toBe(100);
    nextTurn();
    state.idleMs = 20;
    expect(arrivals.read(200)).toBe(200);
  });

  it('the arrival clock takes bytes to be as old as the last reading when the loop has been at work since', () => {
    const { arrivals, state, nextTurn } = clock();
    state.idleMs = 10;
    arrivals.read(100);
    expect(arrivals.read(103)).toBe(100);
    nextTurn();
    expect([arrivals.read(150), arrivals.read(160)]).toEqual([100, 100]);
    nextTurn();
    expect(arrivals.read(180)).toBe(150);
  });
});
