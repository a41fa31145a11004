import { ServerInterceptingCall, type ServerInterceptor } from '@grpc/grpc-js';

/** One outgoing message of a bidirectional stream and who wants to know when the connection has taken it. */
export interface OutgoingMessage {
  readonly bytes: Buffer;
  readonly taken: (bytes: number) => void;
}

type NextCall = Parameters<ServerInterceptor>[1];

/**
 * grpc-js hands the second message of a stream to HTTP/2 only when the first has been flushed, so the replies of one
 * request would leave in several turns of the event loop. This call takes every message at once and reports later.
 */
class PromptCall extends ServerInterceptingCall {
  readonly #next: NextCall;

  constructor(next: NextCall) {
    super(next);
    this.#next = next;
  }

  override start(listener: Parameters<NextCall['start']>[0]): void {
    this.#next.start(listener);
  }

  override sendMessage(message: OutgoingMessage | Buffer, callback: () => void): void {
    if (Buffer.isBuffer(message)) {
      this.#next.sendMessage(message, callback);
      return;
    }
    this.#next.sendMessage(message.bytes, () => message.taken(message.bytes.length));
    callback();
  }

  override sendMetadata(metadata: Parameters<NextCall['sendMetadata']>[0]): void {
    this.#next.sendMetadata(metadata);
  }

  override sendStatus(status: Parameters<NextCall['sendStatus']>[0]): void {
    this.#next.sendStatus(status);
  }
}

export const promptInterceptor: ServerInterceptor = (_method, call) => new PromptCall(call);
