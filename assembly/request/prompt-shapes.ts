// Shape of the prompt, and of other fields whose shape an engine can reject.
//
// Owns: in this thread's part of REGION_SCANS, RequestScan.fault. No lock: all of it belongs to one thread.
import { RequestScan } from './scan-state';

// Shapes of the prompt value.
export const SHAPE_MISSING: u32 = 0; // no such key, or null
export const SHAPE_BAD: u32 = 1;
export const SHAPE_EMPTY: u32 = 2; // an array without elements so far
export const SHAPE_GOOD: u32 = 3;
export const SHAPE_STRINGS: u32 = 4;
export const SHAPE_TOKENS: u32 = 5;

// Other fields whose shape an engine would refuse (bits).
export const FAULT_SYSTEM: u32 = 1; // Anthropic's system is neither text nor a list of parts
export const FAULT_SALT: u32 = 2; // SGLang's extra_key is no string
export const FAULT_STREAM: u32 = 4; // SGLang's stream is neither true nor false

/** Notes whether a field has a wrong shape; of several with one name the last one counts. */
export function fault(scan: RequestScan, bit: u32, wrong: bool): void {
  const others = scan.fault & ~bit;
  scan.fault = wrong ? others | bit : others;
}
