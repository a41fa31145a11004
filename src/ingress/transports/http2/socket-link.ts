import { Socket } from 'node:net';
import type { ArrivalClock } from './arrival-clock.js';
import type { Beginner, Beginnings } from './beginnings.js';
import type { ConnectionOptions, ConnectionWire, Http2Connection } from './connection.js';
import { LINGER_BYTES_MAX, LINGER_MS_MAX, SOCKET_BYTES_MAX, TURN_MS } from './limits.js';

/** Bytes of one read. */
const READ_BYTES = 65_536;
/** Bytes after which the clock is looked at: a read of small frames may be several turns' work. */
const PIECE_BYTES = 16_384;
/** The same for a connection that has a small part of a turn. */
const PIECE_BYTES_MIN = 1_024;
/** Bound on the reads of one socket in one turn by libuv (`uv__read`); the rest waits for the next turn. */
const READS_MAX = 32;

/**
 * Read buffer of all sockets of the thread: the kernel's bytes are handled before the next socket is read. libuv reads
 * and calls back in one step everywhere but on Windows, where a read is under way while others are.
 */
const sharedBuffer = process.platform === 'win32' ? undefined : Buffer.allocUnsafeSlow(READ_BYTES);

/** Private parts of Node's sockets; without them a socket is read by its events. */
interface SocketParts {
  _handle?: object | null;
  _server?: unknown;
  server?: unknown;
}

/** Takes an accepted, unread socket of a server with `pauseOnConnect`. */
export type Reader = (bytes: Buffer, length: number) => boolean;

/**
 * The socket that reads into the thread's buffer in the place of an accepted one; `read` returns false to be asked
 * again after `resume`. Node has no public option for it on the server's side (nodejs/node#25436).
 */
function readShared(accepted: Socket, read: Reader): Socket | undefined {
  const { _handle: handle, _server: server } = accepted as SocketParts;
  if ('encrypted' in accepted || handle === undefined || handle === null || server === undefined) return undefined;
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

export interface SocketLinkOptions extends Pick<ConnectionOptions, 'now' | 'behind'> {
  readonly arrivals: ArrivalClock;
  readonly beginnings: Beginnings;
}

/** Sockets and the connections over them: bytes in, bytes out, and a fair share of the thread. */
export class SocketLink implements ConnectionWire, Beginner {
  readonly socket: Socket;
  #connection: Http2Connection | undefined;
  #begin: (() => Http2Connection) | undefined;
  #wait: (() => void) | undefined;
  /** Milliseconds that the connection has used of this turn of the event loop. */
  #spentMs = 0;
  #turnOpen = false;
  /** Bound on those milliseconds, and whether they count for the client's address. */
  #turnMs = TURN_MS;
  #isCounted = false;
  #pieceBytes = PIECE_BYTES;
  #reads = 0;
  /** Whether the socket was not read to its end in the last turn. */
  #behind = false;
  /** Earliest possible arrival of the bytes under way. */
  #arrivedAt = 0;
  /** Bytes that were read and wait for the connection's next turn; the socket is not read meanwhile. */
  #rest: Buffer | undefined;
  /** Bytes read so far, and at the mark; times of the reads at the mark and at the mark before. */
  #bytes = 0;
  #markBytes = 0;
  #markAt = 0;
  #lastMarkAt = 0;
  /** Whether this side has closed the connection, and the bytes that have come since. */
  #lingers = false;
  #thrownAway = 0;
  /** Streams of the connection whose age was judged before this turn. */
  #judgedBefore = 0;
  readonly #options: SocketLinkOptions;

  /** @param accepted by a server with `pauseOnConnect` */
  constructor(accepted: Socket, options: SocketLinkOptions) {
    this.#options = options;
    const shared = readShared(accepted, (bytes, length) => this.#read(bytes, length));
    this.socket = shared ?? accepted;
    if (shared !== undefined) return;
    this.socket.on('data', (bytes: Buffer) => {
      if (!this.#read(bytes, bytes.length)) this.socket.pause();
    });
  }

  /**
   * Reads from now on.
   * @param begin makes the connection at the first bytes: a silent client has none
   * @param wait is called before it, when the first bytes wait for their turn
   */
  start(begin: () => Http2Connection, wait: () => void): void {
    this.#begin = begin;
    this.#wait = wait;
    this.socket.on('drain', () => this.#connection?.drained());
    this.socket.on('error', () => undefined);
    this.socket.once('close', () => this.#connection?.closed());
    this.socket.resume();
  }

  get unsent(): number {
    return this.socket.writableLength;
  }

  write(bytes: Buffer): void {
    this.socket.write(bytes);
  }

  end(linger: boolean) {
    // Written output leaves first; a client that does not take it is not waited for.
    if (linger) {
      this.#lingers = true;
      this.socket.end();
    } else this.socket.destroySoon();
    const late = setTimeout(() => this.socket.destroy(), LINGER_MS_MAX);
    late.unref();
    this.socket.once('close', () => clearTimeout(late));
  }

  /** @returns false when the other connections are to be read first */
  #read(bytes: Buffer, length: number): boolean {
    if (this.#lingers) return this.#throwAway(length);
    if (this.#connection === undefined && !this.#mayBegin(bytes, length)) return false;
    const begin = this.#options.now();
    this.#openTurn(begin);
    this.#count(length, begin);
    const at = this.#handOver(bytes, length, begin);
    if (at < length) this.#keep(bytes, at, length);
    return this.#mayGoOn();
  }

  // The beginning of the connection: at the first bytes, or some turns later when many begin at one time.

  get address(): string | undefined {
    return this.socket.remoteAddress;
  }

  get heldBytes(): number {
    return this.#rest?.length ?? 0;
  }

  begin(): void {
    if (this.socket.destroyed) return;
    this.#connection = this.#begin!();
    if (this.#handOverRest()) this.socket.resume();
  }

  /** Makes the connection, or keeps its first bytes until its turn. @returns whether it was made */
  #mayBegin(bytes: Buffer, length: number): boolean {
    this.#rest = bytes.subarray(0, length);
    if (this.#options.beginnings.enter(this)) {
      this.#rest = undefined;
      this.#connection = this.#begin!();
      return true;
    }
    this.#rest = Buffer.from(this.#rest);
    // The age of its requests counts from here.
    this.#arrivedAt = this.#options.arrivals.read(this.#options.now());
    this.#behind = true;
    this.#wait!();
    return false;
  }

  /**
   * Gives bytes to the connection until its turn is over.
   * @param begin the present time
   * @returns how far they were given
   */
  #handOver(bytes: Buffer, length: number, begin: number): number {
    const { now } = this.#options;
    const arrivedAt = Math.max(this.#arrivedAt, this.#lastMarkAt);
    let at = 0;
    let before = begin;
    while (at < length && this.#spentMs < this.#turnMs && !this.#lingers) {
      const end = Math.min(length, at + this.#pieceBytes);
      // A full buffer is as a rule followed by more: the replies to both leave together.
      this.#connection!.receive(bytes, at, end, arrivedAt, end < length || length === READ_BYTES);
      at = end;
      const after = now();
      this.#spentMs += after - before;
      if (this.#isCounted) this.#connection!.share.spend(after - before);
      before = after;
    }
    return at;
  }

  /** Copies what the turn leaves: the buffer is the thread's. */
  #keep(bytes: Buffer, from: number, to: number): void {
    if (this.#lingers) this.#throwAway(to - from);
    else this.#rest = Buffer.from(bytes.subarray(from, to));
  }

  /** @returns false when the other connections are to be read first */
  #mayGoOn(): boolean {
    if (this.#spentMs < this.#turnMs) return true;
    if (this.#connection!.judged > this.#judgedBefore) this.#options.behind?.();
    return false;
  }

  /** Hands over what the last turn has left, before anything else. @returns whether the socket may be read again */
  #handOverRest(): boolean {
    const rest = this.#rest;
    if (rest === undefined) return true;
    this.#rest = undefined;
    const begin = this.#options.now();
    this.#openTurn(begin);
    const at = this.#handOver(rest, rest.length, begin);
    if (at < rest.length && !this.#lingers) this.#rest = rest.subarray(at);
    return this.#mayGoOn();
  }

  #throwAway(length: number): boolean {
    this.#thrownAway += length;
    if (this.#thrownAway > LINGER_BYTES_MAX) this.socket.destroy();
    return true;
  }

  #openTurn(now: number): void {
    if (this.#turnOpen) return;
    this.#turnOpen = true;
    this.#judgedBefore = this.#connection!.judged;
    const earliest = this.#options.arrivals.read(now);
    if (!this.#behind) this.#arrivedAt = earliest;
    this.#divide(now);
    setImmediate(this.#nextTurn);
  }

  /** Sets the bounds of the turn: the connections of an address that uses more than its part have one together. */
  #divide(now: number): void {
    const { share } = this.#connection!;
    this.#isCounted = share.begin(now);
    const parts = this.#isCounted ? share.turnParts : 1;
    this.#turnMs = TURN_MS / parts;
    this.#pieceBytes = Math.max(PIECE_BYTES_MIN, Math.trunc(PIECE_BYTES / parts));
  }

  /**
   * Counts the bytes of a read: they came when the kernel had room for them, behind the reading of as many bytes as it
   * holds.
   */
  #count(length: number, now: number): void {
    this.#reads++;
    this.#bytes += length;
    if (this.#bytes - this.#markBytes < SOCKET_BYTES_MAX) return;
    this.#lastMarkAt = this.#markAt;
    this.#markAt = now;
    this.#markBytes = this.#bytes;
  }

  /** Notes that the next turn has read the socket, or that it was empty. */
  readonly #settle = (): void => {
    if (!this.#turnOpen) this.#behind = false;
  };

  readonly #nextTurn = (): void => {
    const wasHeld = this.#spentMs >= this.#turnMs;
    this.#behind = wasHeld || this.#reads >= READS_MAX;
    if (this.#behind) setImmediate(this.#settle);
    this.#turnOpen = false;
    this.#spentMs = 0;
    this.#reads = 0;
    this.#connection?.flush();
    if (wasHeld && !this.socket.destroyed && this.#handOverRest()) this.socket.resume();
  };
}
