import { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { ConnectionWire, Http2Connection } from './connection.js';
import { TURN_MS } from './limits.js';

/** Bytes of one read. */
const READ_BYTES = 65_536;

/**
 * What all sockets of the thread are read into: the kernel's bytes are handled before the next socket is read. libuv reads and
 * calls back in one step everywhere but on Windows, where a read is under way while others are.
 */
const sharedBuffer = process.platform === 'win32' ? undefined : Buffer.allocUnsafeSlow(READ_BYTES);

/** Private parts of Node's sockets; without them a socket is read by its events. */
interface SocketParts {
  _handle?: object | null;
  _server?: unknown;
  server?: unknown;
}

/** Of an accepted socket of a server with `pauseOnConnect`, of which nothing has been read. */
export type Reader = (bytes: Buffer, length: number) => boolean;

/**
 * The socket that reads into the thread's buffer in the place of an accepted one; `read` returns false to be asked again
 * after `resume`. Node has no public option for it on the server's side (nodejs/node#25436).
 */
function readShared(accepted: Socket, read: Reader): Socket | undefined {
  const { _handle: handle, _server: server } = accepted as SocketParts;
  if (accepted instanceof TLSSocket || handle === undefined || handle === null || server === undefined)
    return undefined;
  (accepted as SocketParts)._handle = null;
  const onread = {
    buffer: sharedBuffer ?? Buffer.allocUnsafeSlow(READ_BYTES),
    callback: (length: number, bytes: Uint8Array) => read(bytes as Buffer, length),
  };
  const socket = new Socket({ handle, onread } as ConstructorParameters<typeof Socket>[0]);
  // The server counts its connections by this field.
  Object.assign(socket, { _server: server, server });
  return socket;
}

/** Sockets and the connections over them: bytes in, bytes out, and a fair share of the thread. */
export class SocketLink implements ConnectionWire {
  readonly socket: Socket;
  #connection: Http2Connection | undefined;
  /** Milliseconds that the connection has used of this turn of the event loop. */
  #spentMs = 0;
  #turnOpen = false;
  readonly #now: () => number;

  /** @param accepted by a server with `pauseOnConnect` */
  constructor(accepted: Socket, now: () => number) {
    this.#now = now;
    const shared = readShared(accepted, (bytes, length) => this.#read(bytes, length));
    this.socket = shared ?? accepted;
    if (shared !== undefined) return;
    this.socket.on('data', (bytes: Buffer) => {
      if (!this.#read(bytes, bytes.length)) this.socket.pause();
    });
  }

  /** Read for this connection from now on. */
  start(connection: Http2Connection): void {
    this.#connection = connection;
    this.socket.on('drain', () => connection.drained());
    this.socket.on('error', () => undefined);
    this.socket.once('close', () => connection.closed());
    this.socket.resume();
  }

  get unsent(): number {
    return this.socket.writableLength;
  }

  write(bytes: Buffer): void {
    this.socket.write(bytes);
  }

  end(): void {
    // What was written leaves first; a peer that does not take it is not waited for.
    this.socket.destroySoon();
  }

  /** @returns false when the other connections are to be read first */
  #read(bytes: Buffer, length: number): boolean {
    const begin = this.#now();
    this.#connection!.receive(bytes, 0, length);
    this.#spentMs += this.#now() - begin;
    if (!this.#turnOpen) {
      this.#turnOpen = true;
      setImmediate(this.#nextTurn);
    }
    return this.#spentMs < TURN_MS;
  }

  readonly #nextTurn = (): void => {
    const wasHeld = this.#spentMs >= TURN_MS;
    this.#turnOpen = false;
    this.#spentMs = 0;
    if (wasHeld && !this.socket.destroyed) this.socket.resume();
  };
}
