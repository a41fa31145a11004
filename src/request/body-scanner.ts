import type { PromptKind, RequestScanResult, ScanRefusal } from '../core/types.js';

/** The part of the core's request scanner that the request path uses. Every open scan must be closed. */
export interface BodyScanner {
  /** Starts a scan; -1 when all scans of this thread are in use. */
  open(kind: PromptKind, blockBytes: number): number;
  /** Scans the next bytes of the body; false once they cannot be JSON any more. */
  feed(id: number, chunk: Uint8Array): boolean;
  /** Ends the body; false when it is not one JSON document. */
  finish(id: number): boolean;
  result(id: number): RequestScanResult;
  refusal(id: number): ScanRefusal | undefined;
  close(id: number): void;
}
