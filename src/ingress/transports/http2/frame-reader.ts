import {
  ConnectionError,
  ErrorCode,
  FLAG_PADDED,
  FRAME_BYTES_MAX,
  FRAME_HEADER_BYTES,
  FrameType,
  PREFACE,
} from './protocol.js';

/** Takes the frames of one connection in order. */
export interface FrameSink {
  /**
   * Called at the begin of a DATA frame. @param length its whole payload, padding included: what flow control counts
   */
  dataBegin(stream: number, length: number, flags: number): void;
  /** Called with the next part of its data; the bytes are valid during the call. */
  dataPart(bytes: Buffer, from: number, to: number): void;
  /** Called at the end of a DATA frame. */
  dataEnd(): void;
  /** Any other frame of a known type, whole; the bytes are valid during the call. */
  frame(type: number, flags: number, stream: number, bytes: Buffer, from: number, to: number): void;
}

type State =
  /** Inside the client's preface. */
  | 'preface'
  /** Inside a frame's nine bytes. */
  | 'header'
  /** Before the pad length of a DATA frame. */
  | 'pad'
  | 'data'
  /** Behind the data of a padded frame, or inside a frame that means nothing. */
  | 'skip'
  /** Inside a frame that is taken whole. */
  | 'payload';

/**
 * Cuts the bytes of a connection into frames, wherever they are cut. DATA passes in pieces without a copy. Any other
 * frame passes whole: in place when its bytes came together, else from a buffer of one frame.
 */
export class FrameReader {
  readonly #sink: FrameSink;
  #state: State = 'preface';
  /** The frame header, or the whole frame, on its way in. */
  readonly #header = Buffer.alloc(FRAME_HEADER_BYTES);
  #payload: Buffer | undefined;
  #have = 0;
  #length = 0;
  #type = 0;
  #flags = 0;
  #stream = 0;
  /** Bytes of data and of padding that are still to come. */
  #data = 0;
  #skip = 0;
  #stopped = false;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** Whether the client's preface has come. */
  get begun(): boolean {
    return this.#state !== 'preface';
  }

  /** Stops reading; callable from inside the sink. */
  stop(): void {
    this.#stopped = true;
  }

  /**
   * Takes the next bytes of the connection.
   * @throws ConnectionError when they are no HTTP/2, or a frame is too large
   */
  push(bytes: Buffer, from: number, to: number): void {
    let at = from;
    while (!this.#stopped) {
      if (this.#state === 'data' && this.#data === 0) this.#endData();
      else if (this.#state === 'payload' && this.#length === this.#have) at = this.#endPayload(bytes, at);
      else if (this.#state === 'skip' && this.#skip === 0) this.#state = 'header';
      else if (at === to) return;
      else at = this.#step(bytes, at, to);
    }
  }

  #step(bytes: Buffer, at: number, to: number): number {
    switch (this.#state) {
      case 'preface':
        return this.#readPreface(bytes, at, to);
      case 'header':
        return this.#readHeader(bytes, at, to);
      case 'pad':
        return this.#readPad(bytes, at);
      case 'data': {
        const end = Math.min(to, at + this.#data);
        this.#data -= end - at;
        this.#sink.dataPart(bytes, at, end);
        return end;
      }
      case 'skip': {
        const end = Math.min(to, at + this.#skip);
        this.#skip -= end - at;
        return end;
      }
      case 'payload':
        return this.#readPayload(bytes, at, to);
    }
  }

  #readPreface(bytes: Buffer, at: number, to: number): number {
    let next = at;
    while (next < to && this.#have < PREFACE.length) {
      if (bytes[next++] !== PREFACE[this.#have++]) {
        throw new ConnectionError(ErrorCode.protocol, 'no HTTP/2 preface');
      }
    }
    if (this.#have === PREFACE.length) this.#expectHeader();
    return next;
  }

  #readHeader(bytes: Buffer, at: number, to: number): number {
    if (this.#have === 0 && to - at >= FRAME_HEADER_BYTES) {
      this.#open(bytes, at);
      return at + FRAME_HEADER_BYTES;
    }
    const end = Math.min(to, at + FRAME_HEADER_BYTES - this.#have);
    for (let i = at; i < end; i++) this.#header[this.#have++] = bytes[i]!;
    if (this.#have === FRAME_HEADER_BYTES) this.#open(this.#header, 0);
    return end;
  }

  #open(header: Buffer, at: number): void {
    this.#have = 0;
    this.#length = (header[at]! << 16) | (header[at + 1]! << 8) | header[at + 2]!;
    this.#type = header[at + 3]!;
    this.#flags = header[at + 4]!;
    this.#stream =
      ((header[at + 5]! & 0x7f) << 24) | (header[at + 6]! << 16) | (header[at + 7]! << 8) | header[at + 8]!;
    if (this.#length > FRAME_BYTES_MAX) {
      throw new ConnectionError(ErrorCode.frameSize, `a frame of ${this.#length} bytes`);
    }
    if (this.#type === FrameType.data) this.#openData();
    else if (this.#type <= FrameType.continuation) this.#state = 'payload';
    else this.#openUnknown();
  }

  #openData(): void {
    this.#sink.dataBegin(this.#stream, this.#length, this.#flags);
    this.#data = this.#length;
    this.#skip = 0;
    this.#state = 'data';
    if ((this.#flags & FLAG_PADDED) === 0) return;
    if (this.#length === 0) throw new ConnectionError(ErrorCode.frameSize, 'a padded frame without a pad length');
    this.#state = 'pad';
  }

  /** Passes over a frame of a type that this version of HTTP/2 does not know, but not inside a header block. */
  #openUnknown(): void {
    this.#sink.frame(this.#type, this.#flags, this.#stream, this.#header, 0, 0);
    this.#skip = this.#length;
    this.#state = 'skip';
  }

  #readPad(bytes: Buffer, at: number): number {
    const pad = bytes[at]!;
    this.#data = this.#length - 1 - pad;
    if (this.#data < 0) throw new ConnectionError(ErrorCode.protocol, 'more padding than payload');
    this.#skip = pad;
    this.#state = 'data';
    return at + 1;
  }

  #endData(): void {
    this.#state = this.#skip > 0 ? 'skip' : 'header';
    this.#sink.dataEnd();
  }

  #readPayload(bytes: Buffer, at: number, to: number): number {
    const length = this.#length;
    if (this.#have === 0 && to - at >= length) {
      this.#expectHeader();
      this.#sink.frame(this.#type, this.#flags, this.#stream, bytes, at, at + length);
      return at + length;
    }
    this.#payload ??= Buffer.allocUnsafeSlow(FRAME_BYTES_MAX);
    const end = Math.min(to, at + length - this.#have);
    bytes.copy(this.#payload, this.#have, at, end);
    this.#have += end - at;
    return end;
  }

  /** Ends a frame that came in pieces; one without a payload ends at once. */
  #endPayload(bytes: Buffer, at: number): number {
    const length = this.#length;
    this.#expectHeader();
    this.#sink.frame(this.#type, this.#flags, this.#stream, length === 0 ? bytes : this.#payload!, 0, length);
    return at;
  }

  #expectHeader(): void {
    this.#state = 'header';
    this.#have = 0;
  }
}
