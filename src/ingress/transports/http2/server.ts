import type { Socket } from 'node:net';
import type { KeyPair, SocketFile } from '../../../contract/listen-settings.js';
import { ClientShares, type ConnectionShare, networkOf } from '../../client-shares.js';
import type { ConnectionRefusals } from '../../connection-refusals.js';
import type { ListenOptions } from '../../transport.js';
import { type Listener, listen } from '../listener.js';
import { listenOnFile, type SocketListener } from '../socket-file.js';
import { within } from '../within.js';
import { ArrivalClock } from './arrival-clock.js';
import { Beginnings } from './beginnings.js';
import { type ConnectionOptions, Http2Connection } from './connection.js';
import { idlest, ofCrowdingAddress, unusedBeyondBound, WaitingConnection } from './giving-way.js';
import { ENDED_MAX, GOAWAY_PAUSE_MS, PREFACE_MS_MAX, SWEEP_MAX, SWEEP_MS } from './limits.js';
import { SocketLink } from './socket-link.js';

/** Time in milliseconds for connections to send their rest at the end. */
const CLOSE_MS = 200;

export interface Http2ServerOptions extends ConnectionOptions {
  /** What the clients use; absent = there is no bound on their streams. */
  readonly shares?: ClientShares | undefined;
  /** Whether the clients of the port have shown a certificate. */
  readonly isVerified?: boolean;
  /** Turns in which connections begin; absent = those of the event loop. */
  readonly beginnings?: Beginnings | undefined;
}

/** Connections of one listening socket. */
export class Http2Server {
  readonly #options: ConnectionOptions;
  readonly #shares: ClientShares;
  readonly #isVerified: boolean;
  readonly #connections = new Set<Http2Connection>();
  /** Streams of connections that have ended. */
  #openedBefore = 0;
  readonly #sockets = new Set<Socket>();
  /** Sockets without a first byte, and the times at which they were accepted. */
  readonly #silent = new Map<Socket, number>();
  /** Sockets whose first bytes wait for the turn of their connection. */
  readonly #waiting = new Map<Socket, WaitingConnection>();
  #isEnding = false;
  #isSweeping = false;
  readonly #arrivals = new ArrivalClock();
  readonly #beginnings: Beginnings;
  readonly #sweeps: NodeJS.Timeout;
  #listener: Listener | undefined;
  #file: SocketListener | undefined;
  #refusals: ConnectionRefusals | undefined;
  #ended: (() => void) | undefined;

  constructor({ shares, isVerified = false, beginnings, ...options }: Http2ServerOptions) {
    this.#options = options;
    this.#beginnings = beginnings ?? new Beginnings();
    this.#shares = shares ?? new ClientShares({ streamsMax: Number.POSITIVE_INFINITY });
    this.#isVerified = isVerified;
    this.#sweeps = setInterval(() => this.#sweep(), SWEEP_MS);
    this.#sweeps.unref();
  }

  /** Open streams of all connections. */
  get streams(): number {
    let sum = 0;
    for (const connection of this.#connections) sum += connection.streamCount;
    return sum;
  }

  /** Streams so far, of connections that have ended, too. */
  get opened(): number {
    let sum = this.#openedBefore;
    for (const connection of this.#connections) sum += connection.opened;
    return sum;
  }

  /** TLS connections whose handshake has not ended. */
  get handshakes(): number {
    return this.#listener?.handshakes ?? 0;
  }

  /** Resolves to the bound port. Rejects with a message that names what cannot be had. */
  async listen(options: ListenOptions): Promise<number> {
    const { now } = this.#options;
    this.#refusals = options.refusals;
    const makeRoom = (socket: Socket): boolean => this.#makeRoom(socket.remoteAddress);
    const own = { now, makeRoom, pauseOnConnect: true };
    this.#listener = await listen({ ...options, ...own }, (socket) => this.#accept(socket));
    return this.#listener.port;
  }

  /**
   * Takes connections from a Unix domain socket as well.
   * @param options `connectionsMax`: open ones, on the port and here
   */
  async listenOn(file: SocketFile, options: Pick<ListenOptions, 'connectionsMax' | 'refusals'>): Promise<void> {
    const { connectionsMax = Number.POSITIVE_INFINITY, refusals } = options;
    this.#file = await listenOnFile(file, (socket) => {
      if (this.#sockets.size < connectionsMax || this.#makeRoom(undefined)) return void this.#accept(socket);
      refusals?.note('connections', { address: file.path });
      socket.destroy();
    });
  }

  replaceCertificate(pair: KeyPair): void {
    this.#listener?.replaceCertificate(pair);
  }

  /**
   * Stops accepting, and lets the streams end, within `timeoutMs`. GOAWAY is sent twice. The first one refuses nothing,
   * so that a stream opened before the client has read it is served (RFC 9113, section 6.8).
   */
  async drain(timeoutMs: number): Promise<void> {
    this.#listener?.stop();
    this.#file?.stop();
    this.#isEnding = true;
    for (const connection of this.#connections) connection.announceEnd();
    const ended = new Promise<void>((resolve) => {
      this.#ended = resolve;
    });
    const second = setTimeout(
      () => {
        this.#dropUnbegun();
        for (const connection of this.#connections) connection.drain();
      },
      Math.min(GOAWAY_PAUSE_MS, timeoutMs),
    );
    if (this.#connections.size > 0) await within(timeoutMs, ended);
    clearTimeout(second);
    this.#ended = undefined;
  }

  /** Ends everything now. */
  async close(): Promise<void> {
    clearInterval(this.#sweeps);
    this.#file?.stop();
    this.#dropUnbegun();
    for (const connection of this.#connections) connection.destroy();
    const closed = [...this.#sockets].map((socket) => new Promise<void>((resolve) => socket.once('close', resolve)));
    await within(
      CLOSE_MS,
      Promise.all(closed).then(() => undefined),
    );
    for (const socket of this.#sockets) socket.destroy();
    await this.#listener?.close();
  }

  #accept(accepted: Socket): Socket {
    if (!this.#isVerified && this.#shares.refuses(accepted.remoteAddress, this.#options.now())) {
      return accepted.destroy();
    }
    const link = new SocketLink(accepted, {
      ...this.#options,
      arrivals: this.#arrivals,
      beginnings: this.#beginnings,
    });
    const { socket } = link;
    this.#sockets.add(socket);
    this.#silent.set(socket, this.#options.now());
    let connection: Http2Connection | undefined;
    socket.once('close', () => {
      this.#silent.delete(socket);
      this.#endWaiting(socket);
      this.#sockets.delete(socket);
      if (connection !== undefined) this.#leave(connection);
      if (this.#connections.size === 0) this.#ended?.();
    });
    const begin = (): Http2Connection => {
      connection = this.#begin(link);
      return connection;
    };
    link.start(begin, () => this.#wait(socket));
    return socket;
  }

  /** Takes a client whose first bytes have come, and whose connection begins later. */
  #wait(socket: Socket): void {
    this.#silent.delete(socket);
    const now = this.#options.now();
    const end = (): void => this.#endWaiting(socket);
    this.#waiting.set(socket, new WaitingConnection(this.#join(socket), now, end));
  }

  #endWaiting(socket: Socket): void {
    const waiting = this.#waiting.get(socket);
    if (waiting === undefined) return;
    this.#waiting.delete(socket);
    waiting.share.leave();
    socket.destroy();
  }

  #join(socket: Socket): ConnectionShare {
    return this.#shares.join(socket.remoteAddress, this.#isVerified, this.#options.now());
  }

  /** Makes the connection of a client that has sent its first bytes. */
  #begin(link: SocketLink): Http2Connection {
    const { socket } = link;
    const share = this.#waiting.get(socket)?.share ?? this.#join(socket);
    this.#silent.delete(socket);
    this.#waiting.delete(socket);
    const connection = new Http2Connection(link, this.#options, share);
    this.#connections.add(connection);
    if (this.#isEnding) connection.announceEnd();
    return connection;
  }

  /** Ends a connection that is not in use, for a new one. @returns whether there was one */
  #makeRoom(by: string | undefined): boolean {
    const [silent] = this.#silent.keys();
    if (silent !== undefined) {
      this.#refusals?.note('idle', { address: silent.remoteAddress });
      this.#silent.delete(silent);
      silent.destroy();
      return true;
    }
    const idle = idlest(this.#placed());
    if (idle === undefined) return this.#makeRoomByAddress(by);
    this.#refusals?.note('idle', { address: idle.share.address });
    this.#endFor(idle);
    return true;
  }

  /** Connections, and those that wait for their beginning. */
  *#placed(): Generator<Http2Connection | WaitingConnection, void> {
    yield* this.#connections;
    yield* this.#waiting.values();
  }

  /** Ends a connection of another address that holds more than half of them. @returns whether there is one */
  #makeRoomByAddress(by: string | undefined): boolean {
    const crowding = this.#shares.isShared ? ofCrowdingAddress(this.#connections) : undefined;
    if (crowding === undefined || (by !== undefined && networkOf(by) === crowding.share.address)) return false;
    this.#shares.refusals?.note('connections', { address: crowding.share.address });
    this.#endFor(crowding);
    return true;
  }

  #endFor(connection: Http2Connection | WaitingConnection): void {
    if (connection instanceof Http2Connection) this.#leave(connection);
    connection.destroy();
  }

  #leave(connection: Http2Connection): void {
    if (this.#connections.delete(connection)) this.#openedBefore += connection.opened;
  }

  /** Ends all sockets that have no connection. */
  #dropUnbegun(): void {
    this.#dropSilent(Number.POSITIVE_INFINITY);
    for (const socket of this.#waiting.keys()) this.#endWaiting(socket);
  }

  /**
   * Ends sockets without a first byte.
   * @param before bound on the time of their acceptance
   * @param most bound on their number
   * @returns whether there are more of them
   */
  #dropSilent(before: number, most = Number.POSITIVE_INFINITY): boolean {
    let ended = 0;
    // In the order of their acceptance.
    for (const [socket, acceptedAt] of this.#silent) {
      if (acceptedAt >= before) return false;
      if (ended++ === most) return true;
      this.#silent.delete(socket);
      socket.destroy();
    }
    return false;
  }

  #sweep(): void {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    const unused = this.#shares.isShared ? unusedBeyondBound(this.#connections, this.#options.now()) : [];
    this.#sweepSome(this.#connections.values(), unused);
  }

  /**
   * Looks at some sockets and connections in each turn of the event loop: to end or to ask a thousand of them at one
   * time takes 20 ms.
   */
  #sweepSome(connections: SetIterator<Http2Connection>, unused: Http2Connection[]): void {
    let hasMore = this.#dropSilent(this.#options.now() - PREFACE_MS_MAX, SWEEP_MAX);
    for (const connection of unused.splice(-ENDED_MAX)) this.#endUnused(connection);
    hasMore ||= unused.length > 0;
    for (let swept = 0; swept < SWEEP_MAX; swept++) {
      const { done, value } = connections.next();
      if (done) break;
      value.sweep();
      hasMore ||= swept === SWEEP_MAX - 1;
    }
    if (hasMore) setImmediate(() => this.#sweepSome(connections, unused));
    else this.#isSweeping = false;
  }

  #endUnused(connection: Http2Connection): void {
    if (connection.isClosed || connection.opened > 0) return;
    this.#shares.refusals?.note('unused', { address: connection.share.address });
    this.#endFor(connection);
  }
}
