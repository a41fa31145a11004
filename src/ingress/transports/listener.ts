import { constants } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type SecureContextOptions, type Server as TlsServer } from 'node:tls';
import type { KeyPair, TlsMaterial } from '../../contract/listen-settings.js';
import type { ListenOptions } from '../transport.js';
import { Handshakes } from './handshakes.js';
import { within } from './within.js';

/** A connection burst of a proxy with many workers must not be dropped by the kernel. */
const BACKLOG = 1_024;

/**
 * A destroyed HTTP/2 session says good-bye and closes its socket itself. To take the socket away meanwhile trips an
 * assertion of Node that aborts the process (`SubmitRstStream`: `!this->is_destroyed()`).
 */
const GOODBYE_MS = 100;

/** A bound port and the connections that came through it. */
export interface Listener {
  readonly port: number;
  /** TLS connections whose handshake has not ended. */
  readonly handshakes: number;
  /** Uses another certificate for connections from now on; nothing to do without TLS. */
  replaceCertificate(pair: KeyPair): void;
  /** Stops accepting; connections go on. Resolves when the last of them has ended. */
  stop(): Promise<void>;
  /** Stops accepting, and breaks every connection that does not end by itself; resolves when the port is free. */
  close(): Promise<void>;
}

/**
 * Takes a connection. Without TLS it may return another socket, to be read in place of the accepted one; nothing has
 * been read by then.
 */
export type Accept = (socket: Socket) => Socket;

export interface ListenerOptions extends ListenOptions {
  /** Whether nothing is read before `accept`; without TLS only. */
  readonly pauseOnConnect?: boolean;
  /** As `HandshakeOptions.makeRoom`. */
  readonly makeRoom?: ((socket: Socket) => boolean) | undefined;
  /** Milliseconds of a clock, for handshakes. Default `performance.now`. */
  readonly now?: (() => number) | undefined;
}

/**
 * A listening socket whose connections, after the TLS handshake if there is one, go to `accept`.
 * Rejects with a message that names the port.
 */
export async function listen(options: ListenerOptions, accept: Accept): Promise<Listener> {
  const { tls, connectionsMax = Number.POSITIVE_INFINITY, pauseOnConnect = false, refusals, makeRoom } = options;
  // With TLS these are the sockets underneath, so that a handshake that never ends does not outlive the listener.
  const sockets = new Set<Socket>();
  const track = (socket: Socket): void => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  };
  const secure = tls === undefined ? undefined : tlsServer(tls);
  const handshakes = secure && new Handshakes(secure, { connectionsMax, refusals, makeRoom, now: options.now });
  secure?.on('connection', track);
  secure?.on('secureConnection', (socket) => {
    if (!socket.destroyed) accept(socket);
  });
  const server = secure ?? createServer({ noDelay: true, pauseOnConnect });
  if (secure === undefined) {
    server.on('connection', (socket: Socket) => {
      if (sockets.size < connectionsMax || makeRoom?.(socket)) return track(accept(socket));
      refusals?.note('connections', { address: socket.remoteAddress });
      socket.destroy();
    });
  }
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(new Error(bindProblem(options, error))));
    const { host, port, reusePort } = options;
    server.listen({ ...listenHost(host), port, reusePort, backlog: BACKLOG }, resolve);
  });
  server.removeAllListeners('error');
  // A failed accept (no file descriptors left) concerns one connection; its client sees it closed.
  server.on('error', () => undefined);
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : options.port,
    get handshakes() {
      return handshakes?.unfinished ?? 0;
    },
    replaceCertificate: (pair) => {
      if (tls !== undefined) secure?.setSecureContext(secureContext({ ...tls, ...pair }));
    },
    stop: () => new Promise((resolve) => server.close(() => resolve())),
    close: async () => {
      // A server that has stopped already calls back with an error, which says the same.
      const ended = new Promise<void>((resolve) => server.close(() => resolve()));
      await within(GOODBYE_MS, ended);
      for (const socket of sockets) socket.destroy();
      await ended;
    },
  };
}

/**
 * The host to give to `listen` of Node.js for an address. A host is looked up, for which each thread compiles a pattern
 * of all IPv6 addresses (10 ms of CPU time); without one Node.js takes `::` itself, and where there is no IPv6
 * `0.0.0.0`.
 */
export function listenHost(address: string): { readonly host?: string } {
  return address === '::' ? {} : { host: address };
}

/** Rejects as `listen` does when the port is in use, even by a listener that would share it. */
export async function assertFree(host: string, port: number, flag: string): Promise<void> {
  const listener = await listen({ host, port, flag, reusePort: false }, (socket) => socket.destroy());
  await listener.close();
}

function tlsServer(tls: TlsMaterial): TlsServer {
  const asks = tls.clientCa !== undefined;
  return createTlsServer({
    ...secureContext(tls),
    ALPNProtocols: ['h2'],
    noDelay: true,
    requestCert: asks,
    rejectUnauthorized: asks,
  });
}

function secureContext({ key, cert, minVersion, ciphers, clientCa }: TlsMaterial): SecureContextOptions {
  return {
    key,
    cert,
    minVersion: minVersion ?? 'TLSv1.2',
    // A handshake costs the server more than the client, which could ask for one after the other over one connection.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(ciphers === undefined ? {} : { ciphers }),
    ...(clientCa === undefined ? {} : { ca: clientCa }),
  };
}

/** The flags that say on which address the port of a flag is opened. */
export function addressFlags(portFlag: string | undefined): string {
  const own = portFlag?.endsWith('-port') ? `--${portFlag.replace(/-port$/, '-bind-address')} or ` : '';
  return `${own}--bind-address`;
}

function bindProblem({ host, port, flag }: ListenOptions, error: NodeJS.ErrnoException): string {
  const where = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const remedy = flag === undefined ? '' : ` with --${flag}`;
  if (error.code === 'EADDRINUSE') {
    return `port ${port} is in use (${where}): choose another${remedy} or stop its owner`;
  }
  if (error.code === 'EADDRNOTAVAIL') {
    return `this machine has no address ${host}: choose another with ${addressFlags(flag)}`;
  }
  if (error.code === 'EACCES') return `port ${port} needs more rights (${where}): choose one above 1023${remedy}`;
  const chosen = flag === undefined ? '' : ` (--${flag})`;
  return `cannot listen on port ${port} (${where}): ${error.message}${chosen}`;
}
