import { Client, type ClientDuplexStream, credentials } from '@grpc/grpc-js';
import { decodeReply, type PickerReply } from './messages.js';

const METHOD = '/envoy.service.ext_proc.v3.ExternalProcessor/Process';

/** Timeout for the end of a stream that the gateway has half-closed (Envoy: remote_close_timeout). */
const CLOSE_TIMEOUT_MS = 1_000;

export interface PickerAddress {
  readonly host: string;
  readonly port: number;
}

/** Events of an ext_proc stream. `ended` is the last one. */
export interface ProcessListener {
  reply(reply: PickerReply): void;
  /** Called when the picker takes messages again after `send` returned false. */
  writable(): void;
  /** Called when the picker has ended the stream, well (undefined) or with an error. Not called after `finish`. */
  ended(error: Error | undefined): void;
}

/** One ext_proc stream: the picker's view of one HTTP request. */
export class ProcessCall {
  readonly #call: ClientDuplexStream<Buffer, Buffer>;
  #finished = false;

  constructor(call: ClientDuplexStream<Buffer, Buffer>, listener: ProcessListener) {
    this.#call = call;
    call.on('data', (message: Buffer) => {
      if (this.#finished) return;
      try {
        listener.reply(decodeReply(message));
      } catch (error) {
        call.cancel();
        this.#close(listener, error as Error);
      }
    });
    call.on('drain', () => listener.writable());
    // An error comes at once, a good end after the last message was read. grpc-js never emits `close`.
    call.on('error', (error: Error) => this.#close(listener, error));
    call.on('end', () => this.#close(listener, undefined));
  }

  #close(listener: ProcessListener, error: Error | undefined): void {
    if (this.#finished) return;
    this.#finished = true;
    listener.ended(error);
  }

  /** False when the picker is slow to take messages: wait for `writable`. */
  send(message: Buffer): boolean {
    return this.#finished || this.#call.write(message);
  }

  /** Stops and goes on reading replies, for the sake of a slow client. */
  pause(): void {
    this.#call.pause();
  }

  resume(): void {
    this.#call.resume();
  }

  /** Ends the exchange of messages: half-closes like Envoy, and cancels if the picker lingers. */
  finish(): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#call.resume();
    this.#call.end();
    const timer = setTimeout(() => this.#call.cancel(), CLOSE_TIMEOUT_MS);
    timer.unref();
    this.#call.on('status', () => clearTimeout(timer));
  }
}

/** The gateway's connection to one picker; reconnects by itself. */
export class PickerClient {
  readonly #client: Client;

  constructor({ host, port }: PickerAddress) {
    const target = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
    this.#client = new Client(target, credentials.createInsecure(), {
      'grpc.initial_reconnect_backoff_ms': 50,
      'grpc.max_reconnect_backoff_ms': 500,
      'grpc.min_reconnect_backoff_ms': 50,
      'grpc.max_receive_message_length': -1,
      'grpc.enable_channelz': 0,
    });
  }

  open(listener: ProcessListener): ProcessCall {
    const pass = (bytes: Buffer) => bytes;
    return new ProcessCall(this.#client.makeBidiStreamRequest(METHOD, pass, pass), listener);
  }

  close(): void {
    this.#client.close();
  }
}
