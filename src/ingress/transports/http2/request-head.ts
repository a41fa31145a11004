import type { HeaderField } from './hpack/decoder.js';
import { HEADER_LIST_BYTES_MAX } from './limits.js';

/** Units of `grpc-timeout` in milliseconds (gRPC over HTTP/2, "Timeout"). */
const TIMEOUT_UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** Fields of HTTP/1 connections, which HTTP/2 has no use for (RFC 9113, section 8.2.2). */
const CONNECTION_FIELDS = new Set(['connection', 'proxy-connection', 'keep-alive', 'transfer-encoding', 'upgrade']);

/**
 * Header block or trailers of a request. Collects the fields of one block; `problem` tells whether it was
 * well formed (RFC 9113, sections 8.2 and 8.3).
 */
export class RequestHead {
  method: string | undefined;
  scheme: string | undefined;
  path: string | undefined;
  contentType: string | undefined;
  encoding: string | undefined;
  contentLength: number | undefined;
  /** Milliseconds; undefined when the request has all the time in the world. */
  timeoutMs: number | undefined;
  /** A malformed `grpc-timeout`. */
  badTimeout: string | undefined;
  #authority: string | undefined;
  #regular = false;
  #bytes = 0;
  #fault: string | undefined;

  /** Whether the list is longer than the bound, so that nothing in it counts. */
  get tooLarge(): boolean {
    return this.#bytes > HEADER_LIST_BYTES_MAX;
  }

  /** Reason why the block is malformed; undefined when it is not. @param trailers the block ends a request */
  problem(trailers: boolean): string | undefined {
    if (this.#fault !== undefined) return this.#fault;
    const pseudo = this.method ?? this.scheme ?? this.path ?? this.#authority;
    if (trailers) return pseudo === undefined ? undefined : 'a pseudo-header in trailers';
    if (this.method === undefined || this.scheme === undefined || !this.path) return 'a pseudo-header is missing';
    return undefined;
  }

  readonly add = (field: HeaderField): void => {
    this.#bytes += field.size;
    const { name, value } = field;
    if (!field.valid) this.#fault ??= 'a field with a forbidden character';
    else if (name.charCodeAt(0) === 0x3a) this.#pseudo(name, value);
    else this.#field(name, value);
  };

  #pseudo(name: string, value: string): void {
    if (this.#regular) this.#fault ??= 'a pseudo-header behind a field';
    if (name === ':method') this.method = this.#once(this.method, value);
    else if (name === ':scheme') this.scheme = this.#once(this.scheme, value);
    else if (name === ':path') this.path = this.#once(this.path, value);
    else if (name === ':authority') this.#authority = this.#once(this.#authority, value);
    else this.#fault ??= 'an unknown pseudo-header';
  }

  #once(before: string | undefined, value: string): string {
    if (before !== undefined) this.#fault ??= 'a pseudo-header twice';
    return value;
  }

  #field(name: string, value: string): void {
    this.#regular = true;
    switch (name) {
      case 'content-type':
        this.contentType = value;
        return;
      case 'te':
        if (value !== 'trailers') this.#fault ??= 'te is not trailers';
        return;
      case 'grpc-timeout':
        this.timeoutMs = grpcTimeoutMs(value);
        if (this.timeoutMs === undefined) this.badTimeout = value;
        return;
      case 'grpc-encoding':
        this.encoding = value;
        return;
      case 'content-length':
        if (!/^\d{1,15}$/.test(value)) this.#fault ??= 'content-length is no number';
        this.contentLength = Number(value);
        return;
      default:
        if (CONNECTION_FIELDS.has(name)) this.#fault ??= `the field ${name}`;
    }
  }
}

/** A `grpc-timeout` in milliseconds; undefined = it is malformed. */
export function grpcTimeoutMs(value: string): number | undefined {
  const match = /^(\d{1,8})([HMSmun])$/.exec(value);
  return match === null ? undefined : Number(match[1]) * TIMEOUT_UNIT_MS[match[2]!]!;
}
