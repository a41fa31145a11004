/** Bounds of a picker. Those of streams and connections hold for the whole process: a shard has its share. */
export interface Bounds {
  /** Threads that serve ext_proc. */
  readonly shards: number;
  /** Open ext_proc streams of the process. */
  readonly maxStreams: number;
  /** Open ext_proc connections of the process. */
  readonly maxConnections: number;
  /** Bytes that are held, over all streams of the process. */
  readonly maxBufferedBytes: number;
  /** Bytes of one request body. */
  readonly maxRequestBodyBytes: number;
  /** Milliseconds without data from the client after which a request is answered with 408. */
  readonly requestIdleMs: number;
  /** Bytes of one message from the proxy. */
  readonly maxReceiveBytes: number;
  /** Bytes of one message to the proxy. */
  readonly maxSendBytes: number;
  /** Endpoint slots of the pool. */
  readonly maxEndpoints: number;
  readonly indexBlocks: number;
  /** Requests in flight of the pool that are charged. */
  readonly maxCharges: number;
  /** Decisions that the pool's log keeps; 0 = none. */
  readonly decisions: number;
}

/** Share of one shard in a bound of the process. */
export function shareOf(bound: number, { shards }: Pick<Bounds, 'shards'>): number {
  return Math.ceil(bound / shards);
}
