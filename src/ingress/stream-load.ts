import type { HeldBytes } from './byte-budget.js';

/** How much a shard's streams may hold together. */
export interface StreamLimits {
  /** Bytes of one request body. */
  readonly maxRequestBodyBytes: number;
  /** Open ext_proc streams. */
  readonly maxStreams: number;
  /** Bytes that are held, over all streams. */
  readonly maxBufferedBytes: number;
}

/** What all streams of a shard count together. */
export interface SharedLoad {
  openStreams: number;
  /** Request bodies until their requests are answered, messages on their way in, replies that the proxy does not take. */
  readonly held: HeldBytes;
  /** Streams over the bound that have sent nothing yet, so that they could not be answered. */
  silentStreams: number;
}

/** What a shard's streams hold now. */
export interface StreamLoad extends Readonly<Omit<SharedLoad, 'held'>> {
  /** Bytes that are held. */
  readonly bufferedBytes: number;
  /** Streams that wait for their turn. */
  readonly waiting: number;
}
