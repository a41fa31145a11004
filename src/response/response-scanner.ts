import type { AnswerForm, Usage } from '../core/types.js';

export interface ResponseScanOptions {
  /** Whether the body is a stream of server-sent events. */
  readonly streaming: boolean;
  /** Form of the usage. */
  readonly form: AnswerForm;
  /** The engine's model name, and the name that the client is to read; both or neither. */
  readonly renameFrom?: string;
  readonly renameTo?: string;
}

/** The part of the core's response scanner that the response path uses. Every open scan must be closed. */
export interface ResponseScanner {
  /** Starts a scan; -1 when all scans of this thread are in use. */
  open(options: ResponseScanOptions): number;
  /**
   * Scans the next bytes and returns the bytes to forward, valid until the next call. A few bytes may be held back
   * until the next chunk; `end` returns all of them.
   */
  feed(id: number, chunk: Uint8Array, end: boolean): Uint8Array;
  usage(id: number): Usage;
  /** Server-sent data events so far, without the closing `[DONE]`. */
  events(id: number): number;
  close(id: number): void;
}
