import { type handleBidiStreamingCall, Server, ServerCredentials, type ServerOptions } from '@grpc/grpc-js';
import type { KeyPair, SocketFile } from '../../contract/listen-settings.js';
import type { HealthSource, ListenOptions, TransportOptions } from '../transport.js';
import { type HealthHandlers, healthHandlers } from './health-service.js';
import { type Listener, listen } from './listener.js';
import { promptInterceptor } from './prompt-call.js';
import { listenOnFile, type SocketListener } from './socket-file.js';

type ConnectionInjector = ReturnType<Server['createConnectionInjector']>;

/** Any of grpc-js's handler shapes, over raw messages; which one it is says the kind of the method. */
type MethodHandler = (call: never, callback: never) => void;

const identity = (bytes: Buffer): Buffer => bytes;

/**
 * grpc-js advertises receive windows of 65,535 bytes and has no option for the server side. Sixteen bodies of 4 KB
 * would fill the window of a whole connection, so it is raised where the HTTP/2 session is made.
 */
const RECEIVE_WINDOW_BYTES = 16 * 1024 * 1024;

interface Http2SessionLike {
  setLocalWindowSize?(bytes: number): void;
  settings?(settings: { initialWindowSize: number }): void;
}

interface Http2ServerLike {
  on?(event: 'session', listener: (session: Http2SessionLike) => void): void;
}

/** Uses a private field of grpc-js; should it go away, the windows stay small and everything still works. */
function raiseReceiveWindows(server: Server): void {
  const servers = (server as unknown as { http2Servers?: Map<Http2ServerLike, unknown> }).http2Servers;
  if (!(servers instanceof Map)) return;
  for (const http2 of servers.keys()) {
    http2.on?.('session', (session) => {
      session.setLocalWindowSize?.(RECEIVE_WINDOW_BYTES);
      session.settings?.({ initialWindowSize: RECEIVE_WINDOW_BYTES });
    });
  }
}

/**
 * Resets are usual: a proxy resets a stream when its request was answered here, or its client went away. Node.js takes
 * more than 1,000 resets, and 33 a second after that, for an attack and ends the connection with every stream on it: an
 * overload in which requests are turned away would do that within seconds. The client is the proxy, so this shuts out
 * no client.
 */
const RESETS = 2 ** 30;

/** Uses a private field of grpc-js, which has no option for it. */
function allowResets(server: Server): void {
  const { commonServerOptions } = server as unknown as { commonServerOptions?: object };
  if (commonServerOptions === undefined) return;
  Object.assign(commonServerOptions, { streamResetBurst: RESETS, streamResetRate: RESETS });
}

/** A proxy whose host vanished is noticed within a minute, so that the charges of its streams are released. */
const KEEPALIVE_MS = 30_000;
const KEEPALIVE_TIMEOUT_MS = 20_000;

/**
 * A grpc-js server over a listening socket that is handed to it: so several threads can share a port, and a busy port
 * is an error that names it.
 */
export class GrpcServer {
  readonly #server: Server;
  #injector: ConnectionInjector | undefined;
  #listener: Listener | undefined;
  #file: SocketListener | undefined;
  #health: HealthHandlers | undefined;

  constructor(options: Pick<TransportOptions, 'maxReceiveBytes' | 'maxSendBytes'>) {
    const settings: ServerOptions = {
      'grpc.enable_channelz': 0,
      'grpc.max_receive_message_length': options.maxReceiveBytes,
      'grpc.max_send_message_length': options.maxSendBytes,
      'grpc.keepalive_time_ms': KEEPALIVE_MS,
      'grpc.keepalive_timeout_ms': KEEPALIVE_TIMEOUT_MS,
      interceptors: [promptInterceptor],
    };
    this.#server = new Server(settings);
  }

  get handshakes(): number {
    return this.#listener?.handshakes ?? 0;
  }

  /** Adds a method over raw messages. */
  register(path: string, handler: MethodHandler, kind: 'unary' | 'serverStream' | 'bidi'): void {
    const typed = handler as handleBidiStreamingCall<Buffer, Buffer>;
    this.#server.register(path, typed, identity, identity, kind);
  }

  /** Answers health checks from `health`. */
  serveHealth(health: HealthSource): void {
    const handlers = healthHandlers(health);
    this.#health = handlers;
    this.register('/grpc.health.v1.Health/Check', handlers.check, 'unary');
    this.register('/grpc.health.v1.Health/List', handlers.list, 'unary');
    this.register('/grpc.health.v1.Health/Watch', handlers.watch, 'serverStream');
  }

  /** Resolves to the bound port. */
  async listen(options: ListenOptions): Promise<number> {
    // TLS ends in the listener, which knows versions and ciphers; HTTP/2 sees the plain side of its sockets.
    allowResets(this.#server);
    const injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
    this.#injector = injector;
    raiseReceiveWindows(this.#server);
    this.#listener = await listen(options, (socket) => {
      injector.injectConnection(socket);
      return socket;
    });
    return this.#listener.port;
  }

  /** Takes connections from a Unix domain socket as well. Called behind `listen`. */
  async listenOn(file: SocketFile): Promise<void> {
    this.#file = await listenOnFile(file, (socket) => this.#injector?.injectConnection(socket));
  }

  /** Changes the certificate of later connections. */
  replaceCertificate(pair: KeyPair): void {
    this.#listener?.replaceCertificate(pair);
  }

  /**
   * Stops accepting and tells the clients (GOAWAY); streams go on for at most `graceMs`. Resolves when every connection
   * has ended; a health watch keeps its connection until `endHealth`.
   */
  async drain(graceMs: number): Promise<void> {
    const ended = this.#listener?.stop();
    this.#file?.stop();
    this.#injector?.drain(graceMs);
    await ended;
  }

  /** Ends the health watches; checks are answered as before. */
  endHealth(): void {
    this.#health?.close();
  }

  /** Ends everything now. */
  async close(): Promise<void> {
    this.endHealth();
    this.#file?.stop();
    this.#injector?.destroy();
    this.#server.forceShutdown();
    await this.#listener?.close();
  }
}
