import { threadClockMs } from '../../runtime/pool-clock.js';
import { HeldBytes } from '../byte-budget.js';
import { PROCESS_PATH, type StreamEntry } from '../transport.js';
import { type ConnectionWire, Http2Connection } from '../transports/http2/connection.js';
import type { Method } from '../transports/http2/server-stream.js';
import { beginning, makeScript, numbered, type Script, windowUpdate } from './frames.js';

const WINDOW_BYTES = 2 ** 30;
const HELD_BYTES_MAX = 64 * 1024 * 1024;
/** Streams of a connection of the rehearsal at one time. */
const STREAMS_MAX = 256;
/** Exchanges of one piece. */
const BATCH = 2;
/** Connections of a burst, and requests of each. */
const BURST_CONNECTIONS = 4;
const BURST_REQUESTS = 16;
/** Hostile frames of one piece. */
const HOSTILE_BATCH = 32;
/** Streams of which one hostile connection leaves the end open. */
const HOSTILE_STREAMS = 16;
const HOSTILE_ROUNDS = 4;

/** The other side of a connection in memory. */
class Peer {
  readonly connection: Http2Connection;
  #sent = 0;
  #next = 1;

  /** @param windowBytes that its streams give to replies */
  constructor(method: Method, windowBytes = WINDOW_BYTES) {
    const wire: ConnectionWire = {
      write: (bytes) => {
        this.#sent += bytes.length;
      },
      end: () => undefined,
      unsent: 0,
    };
    this.connection = new Http2Connection(wire, {
      methods: new Map([[PROCESS_PATH, method]]),
      budget: new HeldBytes(HELD_BYTES_MAX),
      heldBytesMax: HELD_BYTES_MAX,
      messageBytesMax: WINDOW_BYTES,
      replyBytesMax: WINDOW_BYTES,
      streamsMax: STREAMS_MAX,
      stallMs: Number.POSITIVE_INFINITY,
      now: threadClockMs,
    });
    this.say(beginning(windowBytes));
  }

  stream(): number {
    const id = this.#next;
    this.#next += 2;
    return id;
  }

  say(...frames: readonly Buffer[]): void {
    const bytes = Buffer.concat(this.#sent > 0 ? [windowUpdate(this.#sent), ...frames] : frames);
    this.#sent = 0;
    this.connection.receive(bytes, 0, bytes.length);
  }

  /** Says the frames on so many new streams. @returns their numbers */
  open(frames: Buffer, count: number): readonly number[] {
    const ids = Array.from({ length: count }, () => this.stream());
    this.say(...ids.map((id) => numbered(frames, id)));
    return ids;
  }
}

type Scene = (method: Method, script: Script) => Generator<void>;

/** Whole exchanges on one connection, JSON and streamed, of the dialects that most requests have. */
function* chats(method: Method, { exchanges }: Script): Generator<void> {
  const peer = new Peer(method);
  try {
    for (const exchange of exchanges) {
      peer.open(exchange, BATCH);
      yield;
    }
  } finally {
    peer.connection.destroy();
  }
}

/** Requests that come before the answers to the ones before them. */
function* burst(method: Method, { request, answer }: Script): Generator<void> {
  const peers = Array.from({ length: BURST_CONNECTIONS }, () => new Peer(method));
  try {
    const open: (readonly [Peer, number])[] = [];
    for (let i = 0; i < BURST_REQUESTS; i += BATCH) {
      for (const peer of peers) {
        for (const id of peer.open(request, BATCH)) open.push([peer, id]);
        yield;
      }
    }
    for (const [i, [peer, id]] of open.entries()) {
      peer.say(numbered(answer, id));
      if (i % (2 * BATCH) === 0) yield;
    }
  } finally {
    for (const peer of peers) peer.connection.destroy();
  }
}

/** Streams that end before they have begun, or whose messages cannot be read. */
function* brokenStreams(method: Method, { rapidReset, resetBody, compressed }: Script): Generator<void> {
  const peer = new Peer(method);
  try {
    for (let round = 0; round < HOSTILE_ROUNDS && !peer.connection.isClosed; round++) {
      for (const frames of [rapidReset, resetBody, compressed]) {
        peer.open(frames, HOSTILE_BATCH);
        yield;
      }
    }
  } finally {
    peer.connection.destroy();
  }
}

/** Streams of which more is awaited: messages without an end, of one byte, requests without a body. */
function* openStreams(method: Method, { begun, piece, call, tiny, held, reset }: Script): Generator<void> {
  const peer = new Peer(method);
  try {
    const unfinished = peer.open(begun, HOSTILE_STREAMS);
    yield;
    for (let round = 0; round < HOSTILE_ROUNDS; round++) {
      peer.say(...unfinished.map((id) => numbered(piece, id)));
      yield;
    }
    const [id] = peer.open(call, 1);
    const one = numbered(tiny, id!);
    peer.say(...Array.from({ length: HOSTILE_BATCH }, () => one));
    yield;
    const waiting = peer.open(held, HOSTILE_STREAMS);
    yield;
    peer.connection.sweep();
    peer.say(...[...unfinished, ...waiting].map((id) => numbered(reset, id)));
    yield;
  } finally {
    peer.connection.destroy();
  }
}

/** Requests whose answers have nowhere to go. */
function* zeroWindows(method: Method, { request, reset }: Script): Generator<void> {
  const peer = new Peer(method, 0);
  try {
    for (let round = 0; round < HOSTILE_ROUNDS && !peer.connection.isClosed; round++) {
      const ids = peer.open(request, 2 * BATCH);
      yield;
      if (round % 2 === 0) peer.say(...ids.map((id) => numbered(reset, id)));
    }
  } finally {
    peer.connection.destroy();
  }
}

/** Streams that are answered before they are opened. */
function* turnedAway(method: Method, { request }: Script): Generator<void> {
  const peer = new Peer({ ...method, turnAway: (arrivedAt, _, passes) => method.turnAway?.(arrivedAt, true, passes) });
  try {
    for (let round = 0; round < HOSTILE_ROUNDS; round++) {
      peer.open(request, 2 * BATCH);
      yield;
    }
  } finally {
    peer.connection.destroy();
  }
}

/** Connections on which nothing comes. */
function* idleConnections(method: Method): Generator<void> {
  const peers = Array.from({ length: HOSTILE_STREAMS }, () => new Peer(method));
  yield;
  for (const { connection } of peers) {
    connection.sweep();
    connection.destroy();
  }
}

const SCENES: readonly Scene[] = [
  chats,
  burst,
  chats,
  brokenStreams,
  openStreams,
  zeroWindows,
  turnedAway,
  idleConnections,
];

/**
 * Plays exchanges of proxies and frames of attackers through connections in memory, in small pieces, without an end.
 * Everything behind `open` must be thrown away afterwards. `return()` closes the connections.
 */
export function* rehearsal(open: StreamEntry): Generator<void, never> {
  const method: Method = {
    open,
    opensLate: true,
    turnAway: (arrivedAt, crowded, passes) => open.turnAway?.(arrivedAt, crowded, passes),
    came: () => undefined,
    abandoned: (arrivedAt) => open.abandoned?.(arrivedAt),
    closed: () => undefined,
  };
  const script = makeScript();
  for (;;) for (const scene of SCENES) yield* scene(method, script);
}
