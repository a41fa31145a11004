import type { Socket } from 'node:net';
import type { TLSSocket, Server as TlsServer } from 'node:tls';
import type { ConnectionRefusals, Refusal } from '../connection-refusals.js';

/** From the connection to the end of the TLS handshake. */
const HANDSHAKE_MS_MAX = 10_000;
/**
 * Unfinished handshakes at one time: 6 KB each, 46 KB once it has begun. A new one beyond the bound replaces the
 * oldest.
 */
const HANDSHAKES_MAX = 1_024;
/** Interval between two looks at the age of unfinished handshakes. */
const SWEEP_MS = 1_000;
/** First byte of every TLS connection: a record of the handshake (RFC 8446, section 5.1). */
const HANDSHAKE_RECORD = 0x16;

export interface HandshakeOptions {
  /** Established connections at one time; one more is closed at the end of its handshake. */
  readonly connectionsMax: number;
  readonly refusals: ConnectionRefusals | undefined;
  /** Ends an established connection for a new one. @returns whether there was one to end; absent = there is none */
  readonly makeRoom?: ((socket: Socket) => boolean) | undefined;
  /** Milliseconds of any clock that only goes forward. Default `performance.now`. */
  readonly now?: (() => number) | undefined;
}

/** Private part of Node's TLS sockets: the socket underneath. */
interface TlsSocketParts {
  readonly _parent?: Socket | null;
}

/**
 * Bounds the time and the number of a server's unfinished handshakes, which do not count as connections. The handshake
 * begins with the first byte of the client, so a connection that says nothing costs no more than one without TLS; plain
 * text is told apart there.
 *
 * Node reports a handshake that takes too long (`tlsClientError`), and leaves its connection open.
 */
export class Handshakes {
  readonly unfinishedMax = HANDSHAKES_MAX;
  readonly #options: HandshakeOptions;
  readonly #now: () => number;
  /** Node's own handling of a connection: wraps the socket and begins the handshake. */
  readonly #begin: (socket: Socket) => void;
  /** Time of the accept of connections without a finished handshake, oldest first. */
  readonly #unfinished = new Map<Socket, number>();
  /**
   * Address of connections whose handshake has begun and whose end is not noted: one that Node destroys for its
   * certificate has closed when that is told.
   */
  readonly #begun = new WeakMap<Socket, string | undefined>();
  #established = 0;
  #sweeps: NodeJS.Timeout | undefined;

  /**
   * @param server that does not listen so far. Its further `secureConnection` listeners see a destroyed socket where
   *   there is no place.
   */
  constructor(server: TlsServer, options: HandshakeOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    const own = server.listeners('connection') as ((this: TlsServer, socket: Socket) => void)[];
    this.#begin = (socket) => {
      for (const each of own) each.call(server, socket);
    };
    server.removeAllListeners('connection');
    server.on('connection', (socket: Socket) => this.#take(socket));
    server.prependListener('secureConnection', (socket: TLSSocket) => this.#finish(socket));
    server.on('tlsClientError', (error: NodeJS.ErrnoException, socket: TLSSocket) => this.#fail(error, socket));
  }

  /** Connections whose handshake has not ended. */
  get unfinished(): number {
    return this.#unfinished.size;
  }

  /** Closes the connections whose handshake has not ended. */
  close(): void {
    clearTimeout(this.#sweeps);
    for (const socket of this.#unfinished.keys()) socket.destroy();
  }

  #take(socket: Socket): void {
    const [oldest] = this.#unfinished.keys();
    if (oldest !== undefined && this.#unfinished.size >= HANDSHAKES_MAX) this.#refuse(oldest, 'handshake_displaced');
    this.#unfinished.set(socket, this.#now());
    this.#sweeps ??= setTimeout(() => this.#sweep(), SWEEP_MS).unref();
    socket.once('close', () => this.#unfinished.delete(socket));
    socket.on('error', () => undefined);
    socket.once('readable', () => this.#sortByFirstByte(socket));
  }

  /** Looks at the first byte of a connection. */
  #sortByFirstByte(socket: Socket): void {
    const first = socket.read(1) as Buffer | null;
    if (first === null || socket.destroyed) return;
    socket.unshift(first);
    if (first[0] === HANDSHAKE_RECORD) {
      this.#begun.set(socket, socket.remoteAddress);
      this.#begin(socket);
    } else if (isText(first[0]!)) this.#refuse(socket, 'plain_text');
    else this.#refuse(socket, 'handshake_failed', 'the first byte is none of TLS');
  }

  #finish(secure: TLSSocket): void {
    const socket = this.#under(secure);
    if (socket === undefined) return;
    this.#begun.delete(socket);
    const { connectionsMax, refusals, makeRoom } = this.#options;
    this.#unfinished.delete(socket);
    if (this.#established >= connectionsMax && !makeRoom?.(secure)) {
      refusals?.note('connections', { address: secure.remoteAddress });
      secure.destroy();
      return;
    }
    this.#established++;
    socket.once('close', () => this.#established--);
  }

  #fail(error: NodeJS.ErrnoException, secure: TLSSocket): void {
    const socket = this.#under(secure) ?? this.#closedUnder(secure);
    if (socket === undefined) return;
    const certificate = certificateProblem(error, secure);
    if (certificate !== undefined) this.#refuse(socket, 'client_certificate', certificate);
    else if (error.code !== 'ECONNRESET') this.#refuse(socket, 'handshake_failed', error.message);
    // The client has gone: a probe, or a proxy that gave up.
    else this.#unfinished.delete(socket);
  }

  /** The socket of an unfinished handshake that a TLS socket reads from; undefined = its end is noted already. */
  #under(secure: TLSSocket): Socket | undefined {
    const parent = (secure as TlsSocketParts)._parent;
    if (parent !== undefined && parent !== null) return this.#unfinished.has(parent) ? parent : undefined;
    for (const socket of this.#unfinished.keys()) {
      if (socket.remotePort === secure.remotePort && socket.remoteAddress === secure.remoteAddress) return socket;
    }
    return undefined;
  }

  /** As `#under`, of a connection that has closed. */
  #closedUnder(secure: TLSSocket): Socket | undefined {
    const parent = (secure as TlsSocketParts)._parent;
    return parent && this.#begun.has(parent) ? parent : undefined;
  }

  #refuse(socket: Socket, reason: Refusal, error?: string): void {
    const address = socket.remoteAddress ?? this.#begun.get(socket);
    this.#unfinished.delete(socket);
    this.#begun.delete(socket);
    this.#options.refusals?.note(reason, { address, error });
    socket.destroy();
  }

  #sweep(): void {
    this.#sweeps = undefined;
    const before = this.#now() - HANDSHAKE_MS_MAX;
    for (const [socket, acceptedAt] of this.#unfinished) {
      if (acceptedAt > before) break;
      this.#refuse(socket, 'handshake_timeout');
    }
    if (this.#unfinished.size > 0) this.#sweeps = setTimeout(() => this.#sweep(), SWEEP_MS).unref();
  }
}

/** Whether a byte begins a method of HTTP, or the preface of HTTP/2. */
function isText(byte: number): boolean {
  return byte >= 0x41 && byte <= 0x5a;
}

/** What is wrong with the certificate of a client; undefined = it is not that. */
function certificateProblem(error: NodeJS.ErrnoException, { authorizationError }: TLSSocket): string | undefined {
  // Node destroys a connection whose certificate it does not accept, without an error of its own.
  if (authorizationError) return String(authorizationError);
  return error.code?.includes('CERTIFICATE') ? error.message : undefined;
}
