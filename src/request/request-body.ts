import type { RequestScanResult } from '../core/types.js';
import type { Rejection } from '../scheduling/decision.js';
import { BodyMemory } from './body-memory.js';
import type { BodyScanner } from './body-scanner.js';
import type { Dialect } from './dialects.js';
import { badRequest, bodyTooLarge, overloaded } from './rejections.js';

/**
 * An incoming request body: its bytes, copied once, and their scan. The scan takes one of the core's scan slots from
 * the first byte until `close`.
 */
export class RequestBody {
  /** Held until `close`; other parts may retain it longer. */
  readonly memory = new BodyMemory();
  /** Bytes of the body so far. */
  bytes = 0;
  #dialect: Dialect;
  #scanner: BodyScanner;
  #blockBytes: number;
  readonly #limit: number;
  #scan = -1;
  /** Outcome of `finish`; undefined before it. */
  #finished: RequestScanResult | Rejection | undefined;
  #closed = false;
  /** Whether bytes are not read, or no longer. */
  #isOpaque: boolean;

  /**
   * @param blockBytes prompt bytes of one hashed block
   * @param limit bound on the bytes of a body
   */
  constructor(dialect: Dialect, scanner: BodyScanner, blockBytes: number, limit: number) {
    this.#dialect = dialect;
    this.#isOpaque = dialect.prompt === undefined;
    this.#scanner = scanner;
    this.#blockBytes = blockBytes;
    this.#limit = limit;
  }

  get dialect(): Dialect {
    return this.#dialect;
  }

  /** Id of the scan for the scheduler; -1 when the body is not read, or has no prompt that an engine computes. */
  get scan(): number {
    return this.dialect.countsOnly === true ? -1 : this.#scan;
  }

  /** The bytes so far, in pieces; valid until `close`, or longer where the memory is retained. */
  get chunks(): readonly Uint8Array[] {
    return this.memory.chunks();
  }

  /** Bytes of memory that the body takes. */
  get heldBytes(): number {
    return this.memory.heldBytes;
  }

  /**
   * Reads the whole body by another scanner, for the pool that it turns out to be for.
   * @returns a rejection when the body cannot be read there
   */
  move(dialect: Dialect, scanner: BodyScanner, blockBytes: number): Rejection | undefined {
    if (scanner === this.#scanner && dialect.prompt === this.#dialect.prompt && blockBytes === this.#blockBytes) {
      this.#dialect = dialect;
      return undefined;
    }
    if (this.#scan >= 0) this.#scanner.close(this.#scan);
    this.#scan = -1;
    this.#finished = undefined;
    this.#dialect = dialect;
    this.#scanner = scanner;
    this.#blockBytes = blockBytes;
    this.#isOpaque = dialect.prompt === undefined;
    if (this.#isOpaque) return undefined;
    const refused = this.#open();
    if (refused !== undefined) return refused;
    for (const chunk of this.chunks) if (!scanner.feed(this.#scan, chunk)) return this.#unreadable();
    return undefined;
  }

  /** Copies the next slice. A rejection is final: the caller answers the request with it at once. */
  append(chunk: Uint8Array): Rejection | undefined {
    if (chunk.length === 0) return undefined;
    this.bytes += chunk.length;
    if (this.bytes > this.#limit) return bodyTooLarge(this.bytes, this.#limit);
    this.memory.append(chunk);
    if (this.#isOpaque) return undefined;
    const refused = this.#open();
    if (refused !== undefined) return refused;
    return this.#scanner.feed(this.#scan, chunk) ? undefined : this.#unreadable();
  }

  /** Ends the body. @returns the result of the scan, a rejection, or undefined for an opaque body */
  finish(): RequestScanResult | Rejection | undefined {
    this.#finished ??= this.#finish();
    return this.#finished;
  }

  #finish(): RequestScanResult | Rejection | undefined {
    if (this.#isOpaque) return undefined;
    const refused = this.#open();
    if (refused !== undefined) return refused;
    if (!this.#scanner.finish(this.#scan)) return this.#unreadable();
    const result = this.#scanner.result(this.#scan);
    if (result.isObject) return result;
    return this.dialect.countsOnly === true ? undefined : badRequest(this.dialect.errors.unreadable(undefined));
  }

  /** Releases the scan slot and the memory. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#scan >= 0) this.#scanner.close(this.#scan);
    this.#scan = -1;
    this.memory.release();
  }

  #open(): Rejection | undefined {
    if (this.#scan < 0) this.#scan = this.#scanner.open(this.dialect.prompt!, this.#blockBytes);
    return this.#scan < 0 ? overloaded('too many request bodies are being read') : undefined;
  }

  /** A body that is only counted passes unchanged. */
  #unreadable(): Rejection | undefined {
    this.#isOpaque = this.dialect.countsOnly === true;
    if (this.#isOpaque) return undefined;
    return badRequest(this.dialect.errors.unreadable(this.#scanner.refusal(this.#scan)));
  }
}
