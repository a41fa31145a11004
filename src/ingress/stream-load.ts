/** How much a shard's streams may hold together. */
export interface StreamLimits {
  /** Bytes of one request body. */
  readonly maxRequestBodyBytes: number;
  /** Open ext_proc streams. */
  readonly maxStreams: number;
  /** Bytes of request bodies that are held until their request is answered, over all streams. */
  readonly maxBufferedBytes: number;
}

/** What all streams of a shard count together. */
export interface SharedLoad {
  openStreams: number;
  bufferedBytes: number;
  /** Streams over the bound that have sent nothing yet, so that they could not be answered. */
  silentStreams: number;
}

/** What a shard's streams hold now. */
export interface StreamLoad extends Readonly<SharedLoad> {
  /** Streams that wait for their turn. */
  readonly waiting: number;
}
