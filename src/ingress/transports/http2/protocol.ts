/** Numbers of RFC 9113 (HTTP/2). */

/** Types of frames (section 6). */
export const FrameType = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

/** `END_STREAM` of DATA and HEADERS; of SETTINGS and PING the same bit is `ACK`. */
export const FLAG_END_STREAM = 0x1;
export const FLAG_ACK = 0x1;
export const FLAG_END_HEADERS = 0x4;
export const FLAG_PADDED = 0x8;
export const FLAG_PRIORITY = 0x20;

/** Error codes (section 7). */
export const ErrorCode = {
  noError: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  settingsTimeout: 4,
  streamClosed: 5,
  frameSize: 6,
  refusedStream: 7,
  cancel: 8,
  compression: 9,
  connect: 10,
  enhanceYourCalm: 11,
  inadequateSecurity: 12,
} as const;
export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];

/** Identifiers of settings (section 6.5.2). */
export const Setting = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

/** Section 3.4: what a client sends first. */
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

export const FRAME_HEADER_BYTES = 9;
/** The least and the default of SETTINGS_MAX_FRAME_SIZE: the size that is taken here, and the size that is sent. */
export const FRAME_BYTES_MAX = 16_384;
export const FRAME_BYTES_LIMIT = 16_777_215;
/** Of a stream and of the connection until settings and updates change them. */
export const WINDOW_BYTES_DEFAULT = 65_535;
export const WINDOW_BYTES_MAX = 0x7fff_ffff;
export const STREAM_ID_MAX = 0x7fff_ffff;

/** The client broke the protocol in a way that ends the connection (section 5.4.1). */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
