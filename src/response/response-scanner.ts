import type { AnswerForm, Usage } from '../core/types.js';

export interface ResponseScanOptions {
  /** The body is a stream of server-sent events. */
  readonly streaming: boolean;
  /** How it tells its usage. */
  readonly form: AnswerForm;
  /** Model name as the engine writes it, and what the client is to read instead; both or neither. */
  readonly renameFrom?: string;
  readonly renameTo?: string;
}

/** What the response path needs of the core's scanner. Every open scan must be closed. */
export interface ResponseScanner {
  /** Start a scan; -1 when all scans of this thread are in use. */
  open(options: ResponseScanOptions): number;
  /**
   * The next bytes; returns what to forward, valid until the next call. A few bytes may be held back until the next
   * chunk; with `end` everything comes out.
   */
  feed(id: number, chunk: Uint8Array, end: boolean): Uint8Array;
  usage(id: number): Usage;
  /** Server-sent data events so far, the closing `[DONE]` not counted. */
  events(id: number): number;
  close(id: number): void;
}
