import type { PageBuffers } from './page-buffers.js';
import { excerpt, malformed, type ResponseHead, readHead } from './response-head.js';
import { ScrapeFault } from './scrape-fault.js';

/** Bound on a head, on all 1xx heads together with it, and on the trailers after a chunked body. */
export const HEAD_BYTES_MAX = 64 * 1024;
const CHUNK_LINE_BYTES_MAX = 1024;
const CHUNK_LINE = /^([0-9A-Fa-f]{1,8})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/;

/** Statuses that say where the page is (RFC 9110 §15.4). */
const REDIRECTS = [301, 302, 303, 307, 308];

const LF = 10;
const CR = 13;

type State = 'head' | 'length' | 'chunk size' | 'chunk data' | 'chunk end' | 'trailer' | 'close' | 'complete';

/**
 * An incremental parser of one HTTP/1.1 response to a GET, cut anywhere. It keeps the body (the page) in one piece up
 * to `pageBytesMax`. `push` and `end` throw ScrapeFault; the parser must then be reset and the connection given up.
 */
export class ResponseParser {
  readonly #buffers: PageBuffers;
  readonly #pageBytesMax: number;
  #state: State = 'head';
  /** The line under way, without its end, and the complete lines of the head. */
  #line = '';
  #lines: string[] = [];
  /** Bytes of head or trailers seen. */
  #headBytes = 0;
  /** Bytes of the body or of the chunk still to come. */
  #remaining = 0;
  #page: Uint8Array | undefined;
  #pageBytes = 0;
  #keepAlive = false;

  constructor(buffers: PageBuffers, pageBytesMax: number) {
    this.#buffers = buffers;
    this.#pageBytesMax = pageBytesMax;
  }

  /** Prepares for the next response; the page's buffer is free again. */
  reset(): void {
    this.#state = 'head';
    this.#line = '';
    this.#lines = [];
    this.#headBytes = 0;
    this.#remaining = 0;
    this.#pageBytes = 0;
    this.#keepAlive = false;
    if (this.#page !== undefined) this.#buffers.give(this.#page);
    this.#page = undefined;
  }

  /** Whether nothing of a response has come yet. */
  get untouched(): boolean {
    return this.#state === 'head' && this.#headBytes === 0 && this.#lines.length === 0 && this.#line === '';
  }

  get complete(): boolean {
    return this.#state === 'complete';
  }

  /** Whether the connection may carry another request. Valid once complete. */
  get keepAlive(): boolean {
    return this.#keepAlive;
  }

  /** The page, valid until `reset`. */
  get page(): Uint8Array {
    return this.#page === undefined ? NO_BYTES : this.#page.subarray(0, this.#pageBytes);
  }

  /** Takes the next `length` bytes of the connection. True once the response is complete. */
  push(bytes: Buffer, length: number): boolean {
    let at = 0;
    while (at < length && this.#state !== 'complete') {
      switch (this.#state) {
        case 'length':
        case 'chunk data':
          at = this.#takeData(bytes, at, length);
          break;
        case 'close':
          this.#keep(bytes, at, length);
          at = length;
          break;
        default:
          at = this.#takeLine(bytes, at, length);
      }
    }
    // Bytes after the response answer nothing that was asked: the connection is out of step.
    if (at < length) this.#keepAlive = false;
    return this.#state === 'complete';
  }

  /** Takes the end of the server's side. True when that completes the response. */
  end(): boolean {
    if (this.#state === 'close') this.#state = 'complete';
    if (this.#state !== 'complete')
      throw new ScrapeFault('closed', 'the server closed the connection before the page was complete');
    return true;
  }

  #takeData(bytes: Buffer, at: number, length: number): number {
    const end = Math.min(length, at + this.#remaining);
    this.#keep(bytes, at, end);
    this.#remaining -= end - at;
    if (this.#remaining === 0) this.#state = this.#state === 'length' ? 'complete' : 'chunk end';
    return end;
  }

  #takeLine(bytes: Buffer, at: number, length: number): number {
    const lf = bytes.indexOf(LF, at);
    const found = lf >= 0 && lf < length;
    const end = found ? lf : length;
    this.#boundLine(this.#line.length + end - at + 1);
    this.#line += bytes.toString('latin1', at, end);
    if (!found) return length;
    if (this.#line.charCodeAt(this.#line.length - 1) !== CR)
      throw malformed(`line "${excerpt(this.#line)}" does not end in CR LF`);
    const line = this.#line.slice(0, -1);
    this.#line = '';
    this.#endLine(line);
    return end + 1;
  }

  #boundLine(bytes: number): void {
    if (this.#state === 'chunk size' || this.#state === 'chunk end') {
      if (bytes > CHUNK_LINE_BYTES_MAX)
        throw new ScrapeFault('too large', `a chunk's size line is above ${CHUNK_LINE_BYTES_MAX} bytes`);
    } else if (this.#headBytes + bytes > HEAD_BYTES_MAX) {
      throw new ScrapeFault('too large', `the answer's head or trailers are above ${HEAD_BYTES_MAX} bytes`);
    }
  }

  #endLine(line: string): void {
    switch (this.#state) {
      case 'head':
        this.#headBytes += line.length + 2;
        if (line === '') this.#endHead();
        else this.#lines.push(line);
        break;
      case 'chunk size':
        this.#startChunk(line);
        break;
      case 'chunk end':
        if (line !== '') throw malformed('a chunk is longer than its size says');
        this.#state = 'chunk size';
        break;
      default:
        this.#headBytes += line.length + 2;
        if (line === '') this.#state = 'complete';
    }
  }

  #endHead(): void {
    const head = readHead(this.#lines);
    this.#lines = [];
    if (head.status === 101) throw malformed('it switches protocols');
    // 1xx: the answer follows; #headBytes counts on, so that their number is bounded.
    if (head.status < 200) return;
    if (head.status !== 200) throw statusFault(head);
    this.#keepAlive = head.keepAlive;
    this.#headBytes = 0;
    this.#remaining = head.length;
    this.#boundPage(head.length);
    if (head.framing === 'chunked') this.#state = 'chunk size';
    else if (head.framing === 'close') this.#state = 'close';
    else this.#state = head.length === 0 ? 'complete' : 'length';
    if (head.length > 0) this.#room(head.length);
  }

  #startChunk(line: string): void {
    const size = CHUNK_LINE.exec(line);
    if (size === null) throw malformed(`chunk size "${excerpt(line)}"`);
    this.#remaining = Number.parseInt(size[1]!, 16);
    this.#boundPage(this.#pageBytes + this.#remaining);
    this.#state = this.#remaining === 0 ? 'trailer' : 'chunk data';
  }

  #boundPage(bytes: number): void {
    if (bytes <= this.#pageBytesMax) return;
    throw new ScrapeFault('too large', `the page is above ${this.#pageBytesMax} bytes`);
  }

  #room(bytes: number): Uint8Array {
    this.#page ??= this.#buffers.take();
    if (this.#page.length < bytes) this.#page = this.#buffers.grow(this.#page, this.#pageBytes, bytes);
    return this.#page;
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    const after = this.#pageBytes + end - start;
    this.#boundPage(after);
    this.#room(after).set(bytes.subarray(start, end), this.#pageBytes);
    this.#pageBytes = after;
  }
}

function statusFault({ status, location }: ResponseHead): ScrapeFault {
  const text = `the server answered ${status} in place of 200`;
  if (location === undefined || !REDIRECTS.includes(status)) return new ScrapeFault('status', text);
  const remedy = 'name scheme, port and path of the page in the data source';
  return new ScrapeFault('status', `${text} and leads to "${excerpt(location)}": ${remedy}`, location);
}

const NO_BYTES = new Uint8Array(0);
