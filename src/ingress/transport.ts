/**
 * The one interface of every ext_proc transport: connections in, messages out, replies in.
 * Messages and replies are encoded `ProcessingRequest`s and `ProcessingResponse`s without the gRPC frame.
 */
export interface ProcessStream {
  /** Send one encoded ProcessingResponse. After end or cancellation it is dropped. */
  send(reply: Uint8Array): void;
  /** End the stream without an error. */
  end(): void;
  /** End the stream with a gRPC status. */
  fail(code: number, message: string): void;
  /** Bytes accepted by `send` and not yet taken by the connection. */
  readonly pendingBytes: number;
}

/** What the stream machine is to a transport. Called on the shard's thread, in order, never re-entered. */
export interface ProcessHandler {
  /** One encoded ProcessingRequest. The bytes stay valid; they are not reused by the transport. */
  message(bytes: Uint8Array): void;
  /** The proxy half-closed: no more messages. */
  halfClosed(): void;
  /** The stream is gone (client reset, connection lost, or after our own end). Called exactly once, last. */
  closed(cancelled: boolean): void;
}

export interface TransportOptions {
  readonly host: string;
  readonly port: number;
  /** Flag that chooses the port, without dashes: for the message when it cannot be had. */
  readonly flag?: string | undefined;
  /** Several shards listen on one port. */
  readonly reusePort: boolean;
  readonly maxReceiveBytes: number;
  readonly maxSendBytes: number;
  /** PEM; absent = plain text. */
  readonly tls?: TlsMaterial | undefined;
}

/** A private key and its certificate chain, PEM. */
export interface KeyPair {
  readonly key: string;
  readonly cert: string;
}

export interface TlsMaterial extends KeyPair {
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined;
  readonly ciphers?: string | undefined;
}

/** State of a health service. */
export type ServingStatus = 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN';

/** Answers health checks; the same object serves port 9003 and the ext_proc port. */
export interface HealthSource {
  status(service: string): ServingStatus;
  services(): readonly string[];
  /** Call back on every change; returns the way to stop. */
  watch(changed: () => void): () => void;
}

export interface Transport {
  /** Rejects when the port cannot be bound. Resolves to the bound port. */
  listen(
    options: TransportOptions,
    open: (stream: ProcessStream) => ProcessHandler,
    health?: HealthSource,
  ): Promise<number>;
  /** Connections from now on get this certificate; those that stand keep theirs. */
  replaceCertificate(pair: KeyPair): void;
  /** Stop accepting; resolves when the last stream has ended or `timeoutMs` has passed. */
  drain(timeoutMs: number): Promise<void>;
  close(): Promise<void>;
}
