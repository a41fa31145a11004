import type { KeyPair, SocketFile, TlsMaterial } from '../contract/listen-settings.js';
import type { ClientShares } from './client-shares.js';
import type { ConnectionRefusals } from './connection-refusals.js';

/**
 * The one interface of every ext_proc transport: connections in, messages out, replies in.
 * Messages and replies are encoded `ProcessingRequest`s and `ProcessingResponse`s without the gRPC frame.
 */
export interface ProcessStream {
  /** Sends one encoded ProcessingResponse, which is copied. After end or cancellation it is dropped. */
  send(reply: Uint8Array): void;
  /**
   * Sends one ProcessingResponse: a copy of `head`, then `parts`, one behind the other.
   * @param memory that holds all parts until its release; without it, unsent parts are copied
   */
  sendParts(head: Uint8Array, parts: readonly Uint8Array[], memory?: HeldMemory): void;
  /** Ends the stream without an error. */
  end(): void;
  /** Ends the stream with a gRPC status. */
  fail(code: number, message: string): void;
  /** Bytes accepted by `send` and not yet taken by the connection. */
  readonly pendingBytes: number;
  /** Bytes of replies that can leave now or wait: as many as the stream's connection may hold more. */
  readonly room: number;
  /** Whether its first message is handled on arrival, whatever waits for its turn. Absent = it is not. */
  readonly goesFirst?: boolean;
  /** Earliest time at which the first byte of the stream can have come, in milliseconds of `performance.now()`. */
  readonly arrivedAt: number;
}

/** Is told of streams for which no handler is made. */
export interface UnopenedStreams {
  /**
   * Answers a stream before anything is made for it. A transport that does not ask opens the stream, which is answered
   * then.
   * @param arrivedAt as `ProcessStream.arrivedAt`
   * @param crowded whether its connection has its share of the streams, and there are other connections
   * @param passes whether the stream is opened whatever waits, and its age means nothing
   * @returns the only message of the stream, encoded; undefined when the stream is to be opened
   */
  turnAway?(arrivedAt: number, crowded: boolean, passes: boolean): Uint8Array | undefined;
  /**
   * Counts a stream that has ended before its first message; nothing was made for it. A transport that opens streams
   * with their headers tells the handler.
   */
  abandoned?(arrivedAt: number): void;
  /** Called when a socket was not read to its end, since the others had to be read, too: new streams are left in it. */
  behind?(): void;
}

/** Takes the streams of a transport. */
export interface StreamEntry extends UnopenedStreams {
  (stream: ProcessStream): ProcessHandler;
}

/** Memory that is counted and freed for other use. It does not change while it is retained. */
export interface HeldMemory {
  retain(): void;
  release(): void;
}

/** Face of the stream machine for a transport. Called on the shard's thread, in order, never re-entered. */
export interface ProcessHandler {
  /**
   * Called with one encoded ProcessingRequest, bytes[from, to). They are valid during the call only, so that later uses
   * need a copy.
   */
  message(bytes: Buffer, from: number, to: number): void;
  /** Called when the proxy has half-closed: no more messages. */
  halfClosed(): void;
  /** Called when the next message cannot be held: too many bytes are. It will not come. */
  overflowed(): void;
  /** Called when nothing has come for `TransportOptions.stallMs`. Called again after each further `stallMs`. */
  stalled(): void;
  /**
   * Called when the stream has ended: client reset, connection lost, or the own end. Called exactly once, last, and
   * never from inside a call of the stream.
   * @param cancelled the handler had not ended the stream
   */
  closed(cancelled: boolean): void;
}

/** gRPC path of ext_proc. */
export const PROCESS_PATH = '/envoy.service.ext_proc.v3.ExternalProcessor/Process';

/** Bytes that a shard may hold, over all of its streams. */
export interface ByteBudget {
  readonly bytesMax: number;
  /** @returns false = no room, and nothing was taken */
  take(bytes: number): boolean;
  /** As `take`, for bytes that have to be held: they count even beyond the bound. @returns whether there was */
  force(bytes: number): boolean;
  give(bytes: number): void;
}

/** Address and settings with which a transport listens. */
export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** Flag that chooses the port, without dashes: for the message when it cannot be had. */
  readonly flag?: string | undefined;
  /** Whether several threads listen on the port; the kernel spreads connections. Needs Node 22.12 or newer. */
  readonly reusePort: boolean;
  /** Absent = plain text. */
  readonly tls?: TlsMaterial | undefined;
  /**
   * Connections at one time; one more is closed at once. TLS handshakes under way do not count. Absent = as many as
   * there are file descriptors.
   */
  readonly connectionsMax?: number | undefined;
  /** Counts and logs the connections that are closed at once. Absent = nothing does. */
  readonly refusals?: ConnectionRefusals | undefined;
}

export interface TransportOptions extends ListenOptions {
  /** Socket file to listen on as well, in plain text; its permissions say who may connect. */
  readonly socket?: SocketFile | undefined;
  readonly maxReceiveBytes: number;
  readonly maxSendBytes: number;
  /**
   * Bound on the streams that are served at one time; the transport accepts some more, to refuse them with a reason.
   */
  readonly streamsMax: number;
  /** Silence of a stream after which its handler is told (`ProcessHandler.stalled`), in milliseconds. */
  readonly stallMs: number;
  /** For incomplete messages, and replies that the proxy does not take. */
  readonly budget: ByteBudget;
  /** What the clients of the shard use, on all of its ports. Absent = those of this transport alone. */
  readonly shares?: ClientShares | undefined;
}

/** State of a health service. */
export type ServingStatus = 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN';

/** Answers health checks; the same object serves port 9003 and the ext_proc port. */
export interface HealthSource {
  status(service: string): ServingStatus;
  services(): readonly string[];
  /** Calls back on every change; returns the way to stop. */
  watch(changed: () => void): () => void;
}

export interface Transport {
  /** Open streams of all connections, as they count against the bounds of the connections. */
  readonly streams: number;
  /** Grows with each stream of ext_proc that a client opens, and not with the set-up of a connection or a PING. */
  readonly opened: number;
  /** TLS connections whose handshake has not ended. */
  readonly handshakes: number;
  /** Rejects when the port cannot be bound. Resolves to the bound port. */
  listen(options: TransportOptions, open: StreamEntry, health?: HealthSource): Promise<number>;
  /** Replaces the certificate for new connections; open ones keep theirs. */
  replaceCertificate(pair: KeyPair): void;
  /** Stops accepting; resolves when the last stream has ended or `timeoutMs` has passed. */
  drain(timeoutMs: number): Promise<void>;
  close(): Promise<void>;
}

/** A health service on a port of its own. */
export interface HealthListener {
  readonly port: number;
  close(): Promise<void>;
}

/** Address at which the health service listens. */
export type HealthListenOptions = Pick<ListenOptions, 'host' | 'port' | 'flag' | 'tls'>;

/** Largest health message: a service name, or a list of a few. */
export const HEALTH_MESSAGE_BYTES = 64 * 1024;
