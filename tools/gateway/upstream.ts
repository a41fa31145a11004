import { type Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { headerValue, parseDestination, plainHeaders } from './headers.js';
import type { Header } from './messages.js';

/** Bytes up to which a body is kept until a connection takes it, so that the next destination can have it. */
const REPLAY_BYTES = 8 * 1024 * 1024;

export interface UpstreamListener {
  /** Called at the begin of the model server's answer. */
  response(response: IncomingMessage, served: string): void;
  /** Called when no destination could be reached, or the connection broke before an answer. */
  failed(error: Error): void;
  writable(): void;
}

/**
 * The request to the model server: tries the destinations in order while they cannot be connected to.
 * A keep-alive connection that the server closed at the same moment is replaced by a new one, once.
 */
export class Upstream {
  readonly #agent: Agent;
  readonly #headers: readonly Header[];
  readonly #listener: UpstreamListener;
  readonly #destinations: string[];
  /** Bytes written so far; undefined when they are too many to be sent again. */
  #written: Buffer[] | undefined = [];
  #writtenBytes = 0;
  #ended = false;
  #aborted = false;
  /**
   * Whether a kept connection was closed under the request. The others may have been closed too, so the next one is
   * new.
   */
  #stale = false;
  #request: ClientRequest | undefined;

  constructor(agent: Agent, headers: readonly Header[], destinations: readonly string[], listener: UpstreamListener) {
    this.#agent = agent;
    this.#headers = headers;
    this.#listener = listener;
    this.#destinations = [...destinations];
    this.#connectNext(new Error('no usable destination'));
  }

  /** False when the model server is slow to take the body: wait for `writable`. */
  write(piece: Buffer): boolean {
    this.#keep(piece);
    return this.#request?.write(piece) ?? true;
  }

  end(): void {
    this.#ended = true;
    this.#request?.end();
  }

  abort(): void {
    this.#aborted = true;
    this.#request?.destroy();
  }

  #keep(piece: Buffer): void {
    if (this.#written === undefined) return;
    this.#writtenBytes += piece.length;
    if (this.#writtenBytes > REPLAY_BYTES) this.#written = undefined;
    else this.#written.push(piece);
  }

  #connectNext(reason: Error): void {
    const destination = this.#destinations.shift();
    if (destination === undefined) {
      this.#request = undefined;
      // Deferred, so that the owner has this object before it is told of the failure.
      setImmediate(() => {
        if (!this.#aborted) this.#listener.failed(reason);
      });
      return;
    }
    const place = parseDestination(destination);
    if (place === undefined) this.#connectNext(new Error(`the destination "${destination}" is not host:port`));
    else this.#connect(place, destination);
  }

  #connect(place: { host: string; port: number }, destination: string): void {
    const request = httpRequest({
      ...place,
      agent: this.#stale ? false : this.#agent,
      method: headerValue(this.#headers, ':method'),
      path: headerValue(this.#headers, ':path'),
      headers: [...plainHeaders(this.#headers), 'host', headerValue(this.#headers, ':authority')],
      setHost: false,
    });
    this.#request = request;
    let connected = false;
    let answered = false;
    request.on('socket', (socket) => {
      if (!socket.connecting) connected = true;
      else socket.once('connect', () => (connected = true));
    });
    request.on('drain', () => this.#listener.writable());
    request.on('response', (response) => {
      answered = true;
      this.#written = undefined;
      this.#listener.response(response, destination.trim());
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      if (this.#aborted || answered) return;
      const stale = !this.#stale && request.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
      if (this.#written === undefined || (connected && !stale)) this.#listener.failed(error);
      else {
        if (stale) {
          this.#stale = true;
          this.#destinations.unshift(destination);
        }
        this.#connectNext(error);
      }
    });
    for (const piece of this.#written ?? []) request.write(piece);
    if (this.#ended) request.end();
  }
}
