// A hostile client as a process of its own: `node attacker.ts '{"port":…,"attack":"rapid-reset","seconds":5}'`.
// Loopback only.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import {
  data,
  frame,
  headers,
  message,
  PREFACE,
  requestFields,
  reset,
  settings,
  u32,
} from '../../test/ingress/http2/frames.ts';
import { exchange } from '../stream.ts';

export const ATTACKS = [
  'unfinished-messages',
  'rapid-reset',
  'tiny-messages',
  'slow-bodies',
  'silent-connections',
  'compressed-messages',
  'reset-bodies',
  'zero-windows',
  'held-requests',
  'idle-connections',
] as const;
export type Attack = (typeof ATTACKS)[number];

export interface AttackOptions {
  readonly port: number;
  readonly attack: Attack;
  readonly seconds: number;
}

/** Streams of 4 MiB less one byte, as many as once filled 3.7 GB. */
const UNFINISHED_STREAMS = 889;
const UNFINISHED_BYTES = 4 * 1024 * 1024 - 1;
const FRAME_BYTES = 16_384;
const SLOW_STREAMS = 2_000;
const SILENT_CONNECTIONS = 1_000;
/** As many as `--max-connections` allows. */
const IDLE_CONNECTIONS = 1_024;
const HOLDING_CONNECTIONS = 20;
/** Open requests of each of those. */
const HELD_REQUESTS = 600;
const ZERO_WINDOW_CONNECTIONS = 4;
/** Another address than that of the good connection, as a stranger has. */
const ADDRESS = '127.9.8.7';
/**
 * Seconds in which the code for an attack gets hot, on the core that also answers: their ages are reported apart.
 */
export const COLD_SECONDS = 2;

const BATCH = 200;
const PAUSE_MS = 1;

/** A connection that writes as fast as it is read, and comes again when it is closed. */
class HostileConnection {
  readonly #port: number;
  readonly #settings: Buffer;
  #socket: Socket | undefined;
  #next = 1;

  /** @param window that its streams give to answers */
  constructor(port: number, window?: number) {
    this.#port = port;
    this.#settings = settings(window === undefined ? {} : { 4: window });
  }

  async open(): Promise<void> {
    const socket = connectTo(this.#port);
    this.#socket = socket;
    this.#next = 1;
    socket.on('error', () => undefined);
    socket.on('data', () => undefined);
    socket.on('close', () => {
      this.#socket = undefined;
    });
    await Promise.race(['connect', 'close'].map((name) => once(socket, name)));
    socket.write(Buffer.concat([PREFACE, this.#settings]));
  }

  stream(): number {
    const id = this.#next;
    this.#next += 2;
    return id;
  }

  async write(make: () => Buffer): Promise<void> {
    if (this.#socket === undefined) await this.open();
    const socket = this.#socket;
    if (socket === undefined) return;
    if (socket.write(make())) return pause(0);
    await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), pause(100)]);
  }
}

function connectTo(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress: ADDRESS, noDelay: true });
  return socket.on('error', () => undefined);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => (ms === 0 ? setImmediate(resolve) : setTimeout(resolve, ms)));
}

function batch(make: () => Buffer): Buffer {
  return Buffer.concat(Array.from({ length: BATCH }, make));
}

async function unfinishedMessages(connection: HostileConnection, goesOn: () => boolean): Promise<void> {
  const first = Buffer.concat([Buffer.from([0]), u32(UNFINISHED_BYTES)]);
  const ids = Array.from({ length: UNFINISHED_STREAMS }, () => connection.stream());
  for (const id of ids) await connection.write(() => Buffer.concat([headers(id), data(id, first)]));
  for (let sent = 0; sent < UNFINISHED_BYTES && goesOn(); sent += FRAME_BYTES) {
    for (const id of ids) if (goesOn()) await connection.write(() => data(id, Buffer.alloc(FRAME_BYTES)));
  }
}

async function slowBodies(connection: HostileConnection, goesOn: () => boolean): Promise<void> {
  const ids = Array.from({ length: SLOW_STREAMS }, () => connection.stream());
  const first = Buffer.concat([Buffer.from([0]), u32(100_000)]);
  for (const id of ids) await connection.write(() => Buffer.concat([headers(id), data(id, first)]));
  while (goesOn()) {
    await connection.write(() => Buffer.concat(ids.map((id) => data(id, Buffer.from('x')))));
    await pause(1_000);
  }
}

/** A chat of 4 KB as a proxy sends it: headers, body, end of the body. */
const CHAT = exchange()
  .slice(0, 3)
  .map((bytes) => message(bytes));

function request(id: number, messages: number): Buffer {
  return Buffer.concat([headers(id), ...CHAT.slice(0, messages).map((bytes) => data(id, bytes))]);
}

/** Connections with open requests of which nothing more comes. */
async function heldRequests(port: number, goesOn: () => boolean): Promise<void> {
  const connections = Array.from({ length: HOLDING_CONNECTIONS }, () => new HostileConnection(port));
  for (let i = 0; i < HELD_REQUESTS && goesOn(); i++) {
    for (const connection of connections) await connection.write(() => request(connection.stream(), 1));
  }
}

/** Requests whose answers have nowhere to go. */
async function zeroWindows(port: number, goesOn: () => boolean): Promise<void> {
  const connections = Array.from({ length: ZERO_WINDOW_CONNECTIONS }, () => new HostileConnection(port, 0));
  while (goesOn()) {
    for (const connection of connections) {
      await connection.write(() => Buffer.concat(Array.from({ length: 16 }, () => request(connection.stream(), 3))));
    }
  }
}

async function idleConnections(port: number, goesOn: () => boolean): Promise<void> {
  const sockets: Socket[] = [];
  for (let i = 0; i < IDLE_CONNECTIONS; i++) sockets.push(connectTo(port).resume());
  for (const socket of sockets) socket.write(Buffer.concat([PREFACE, settings()]));
  while (goesOn()) await pause(PAUSE_MS);
}

const COMPRESSED = requestFields([['grpc-encoding', 'gzip']]);
const LOOPS: Readonly<Partial<Record<Attack, (connection: HostileConnection) => Buffer>>> = {
  'rapid-reset': (connection) =>
    batch(() => {
      const id = connection.stream();
      return Buffer.concat([headers(id), reset(id)]);
    }),
  'compressed-messages': (connection) =>
    batch(() => {
      const id = connection.stream();
      return Buffer.concat([headers(id, 0, COMPRESSED), frame('DATA', 0, id, message(Buffer.alloc(64), 1))]);
    }),
  'reset-bodies': (connection) =>
    batch(() => {
      const id = connection.stream();
      return Buffer.concat([request(id, 2), reset(id)]);
    }),
};

/** Attacks with connections of their own. */
const CROWDS: Readonly<Partial<Record<Attack, (port: number, goesOn: () => boolean) => Promise<void>>>> = {
  'held-requests': heldRequests,
  'zero-windows': zeroWindows,
  'idle-connections': idleConnections,
};

/** One stream of messages of one byte. */
async function tinyMessages(connection: HostileConnection, goesOn: () => boolean): Promise<void> {
  const id = connection.stream();
  await connection.write(() => headers(id));
  while (goesOn()) await connection.write(() => batch(() => data(id, message('\0'))));
}

async function attack({ port, attack: name, seconds }: AttackOptions): Promise<void> {
  const end = performance.now() + seconds * 1_000;
  const goesOn = (): boolean => performance.now() < end;
  if (name === 'silent-connections') {
    for (let i = 0; i < SILENT_CONNECTIONS; i++) connectTo(port);
    return pause(end - performance.now());
  }
  const crowd = CROWDS[name];
  if (crowd !== undefined) await crowd(port, goesOn);
  if (crowd !== undefined) return pause(Math.max(0, end - performance.now()));
  const connection = new HostileConnection(port);
  await connection.open();
  if (name === 'unfinished-messages') await unfinishedMessages(connection, goesOn);
  else if (name === 'slow-bodies') await slowBodies(connection, goesOn);
  else if (name === 'tiny-messages') await tinyMessages(connection, goesOn);
  while (goesOn()) {
    const next = LOOPS[name];
    if (next === undefined) await pause(PAUSE_MS);
    else await connection.write(() => next(connection));
  }
}

if (process.argv[1] === import.meta.filename) {
  await attack(JSON.parse(process.argv[2]!) as AttackOptions);
  process.exit();
}
