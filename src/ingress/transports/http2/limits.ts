/**
 * Bounds of one connection. Rates are token buckets: `burst` at once, `perSecond` in the long run. They lie far above a
 * proxy's use, and far below what would hold the thread; beyond one the connection ends with ENHANCE_YOUR_CALM.
 */

/** Bytes of one header list, counted as RFC 9113 section 6.5.2 does; a longer one is refused with its stream. */
export const HEADER_LIST_BYTES_MAX = 65_536;
/** Bytes of one encoded header block, over all its frames. */
export const HEADER_BLOCK_BYTES_MAX = 65_536;
/** CONTINUATION frames of one header block: as many as a block of the largest size needs, and some. */
export const CONTINUATIONS_MAX = 8;

/** Receive window of a stream: two body messages of Envoy beyond the one that is being read. */
export const STREAM_WINDOW_BYTES = 1024 * 1024;
/** Receive window of a connection: eight such streams that are read late. */
export const CONNECTION_WINDOW_BYTES = 8 * 1024 * 1024;

/**
 * Memory of one connection's unfinished messages above which its streams get narrow windows, and below which they get
 * wide ones again.
 */
export const CROWDED_BYTES = 4 * 1024 * 1024;
export const RELAXED_BYTES = CROWDED_BYTES / 2;
/** Narrow receive window of a stream: a chat of the usual size. */
export const NARROW_WINDOW_BYTES = 16_384;
/** Messages that are given room for their rest at one time while windows are narrow. */
export const LEADING_BYTES_MAX = 4 * 1024 * 1024;
/**
 * Memory for one connection's unfinished messages, when windows become narrow: what is under way then, and what is
 * granted then, in buffers of twice that size. A client that keeps to its windows reaches it with some 2,000 messages
 * at a time.
 */
export const UNFINISHED_BYTES_MAX = 32 * 1024 * 1024;

/** A stream whose replies pile up is not read any more until half of them are gone. */
export const PAUSE_BYTES = 1024 * 1024;
export const RESUME_BYTES = PAUSE_BYTES / 2;

/**
 * Streams of a connection whose replies wait for a window of their own, from which on it gets no further stream: each
 * keeps its request in memory, and a proxy's windows take many replies.
 */
export const SHUT_STREAMS_MAX = 256;

/**
 * Size up to which waiting replies of a stream are held in any case: a refusal for want of memory must reach its
 * client.
 */
export const SHORT_REPLIES_BYTES = 4_096;

/** Bytes that the kernel has not taken yet: above this, bodies wait in their streams. */
export const UNSENT_BYTES_MAX = 1024 * 1024;
/** Beyond this even acknowledgements are too many: the client sends and does not read. */
export const UNSENT_CONTROL_BYTES_MAX = 8 * 1024 * 1024;

export interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

/** PING and SETTINGS, which are answered. */
export const ANSWERED_FRAMES: Rate = { burst: 1_000, perSecond: 100 };
/**
 * Frames that carry nothing: empty DATA, PRIORITY, window updates and resets of streams that are gone, unknown types.
 */
export const EMPTY_FRAMES: Rate = { burst: 10_000, perSecond: 1_000 };
/**
 * Resets of streams that have had no reply. A proxy whose clients all leave an overload at once resets all of its open
 * streams.
 */
export const RESETS: Rate = { burst: 20_000, perSecond: 1_000 };

/**
 * Streams that were reset before their first message, less those that got to it, from which on the age of new streams
 * is not judged: a flood of resets is no overload. Counted up to the second number, so that a proxy is judged again
 * soon.
 */
export const HASTY_MIN = 32;
export const HASTY_MAX = 64;

/** From the connection, with TLS from the end of its handshake, to the preface. */
export const PREFACE_MS_MAX = 10_000;
/** Silence of a connection after which the server asks whether the client is still there. */
export const KEEPALIVE_MS = 30_000;
export const KEEPALIVE_TIMEOUT_MS = 20_000;
/** Between two looks at the clocks of all connections. */
export const SWEEP_MS = 1_000;
/** Connections that are looked at in one turn of the event loop, and silent ones that are ended. */
export const SWEEP_MAX = 32;
/** Connections of an address that have had no stream so far, once they are as old as this: more of them are ended. */
export const UNUSED_MAX = 64;
export const UNUSED_MS = 1_000;
/** Connections that are ended for it in one turn of the event loop: each takes some 0.1 ms. */
export const ENDED_MAX = 8;
/** Between the first GOAWAY of a drain, which refuses nothing, and the second one. */
export const GOAWAY_PAUSE_MS = 100;
/** Bytes and time for which a connection that this side has closed is still read. */
export const LINGER_BYTES_MAX = 4 * 1024 * 1024;
export const LINGER_MS_MAX = 1_000;
/** Largest receive buffer of a socket, as Linux has it (tcp(7), `tcp_rmem`). */
export const SOCKET_BYTES_MAX = 6 * 1024 * 1024;
/**
 * Bound on the work on one connection's bytes in one turn of the event loop, and so on the wait of other connections'
 * requests for it.
 */
export const TURN_MS = 1;
