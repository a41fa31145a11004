import type { PromptKind, RequestScanResult, ScanRefusal } from '../core/types.js';

/** What the request path needs of the core's scanner. Every open scan must be closed. */
export interface BodyScanner {
  /** Start a scan; -1 when all scans of this thread are in use. */
  open(kind: PromptKind, blockBytes: number): number;
  /** The next bytes of the body; false once the bytes cannot be JSON any more. */
  feed(id: number, chunk: Uint8Array): boolean;
  /** The body has ended; false when it is not one JSON document. */
  finish(id: number): boolean;
  result(id: number): RequestScanResult;
  refusal(id: number): ScanRefusal | undefined;
  close(id: number): void;
}
