import { randomFillSync } from 'node:crypto';
import { setHeader } from '../codec/process-response.js';

/** Codes of the hexadecimal digits. */
const DIGITS = Uint8Array.from('0123456789abcdef', (digit) => digit.charCodeAt(0));
const UNSAMPLED = `00-${'0'.repeat(32)}-${'0'.repeat(16)}-00`;
const RANGE_31 = 2 ** 31;

/**
 * Makes ids of traces and spans. A trace id also says whether a sampler by ratio takes it, in the bits that
 * OpenTelemetry's TraceIdRatioBased compares (the 63 upper bits of the last 8 bytes), so that other programs with the
 * same ratio agree.
 */
export class TraceIds {
  /** State of xorshift128 (George Marsaglia, Xorshift RNGs, 2003). */
  readonly #state = new Uint32Array(4);
  /** Trace ids whose third word, shifted right by one, is below this are sampled. */
  readonly #bound: number;
  readonly #header = setHeader('traceparent', UNSAMPLED);
  readonly #traceAt = this.#header.indexOf(UNSAMPLED) + 3;

  /** @param ratio share of traces that are sampled, from 0 to 1 */
  constructor(ratio: number) {
    this.#bound = Math.floor(ratio * RANGE_31);
    randomFillSync(this.#state);
    this.#state[0]! |= 1;
    // Trace and span id are the same for all unsampled traces of this shard: their spans are not recorded.
    this.#write(this.#traceAt, this.#next() | 1);
    this.#write(this.#traceAt + 33, this.#next() | 1);
    this.#write(this.#traceAt + 41, this.#next());
  }

  /** Whether the next trace is sampled. */
  draw(): boolean {
    return this.#next() >>> 1 < this.#bound;
  }

  /** Whether a ratio takes the trace of this id. */
  takes(traceId: string): boolean {
    return Number.parseInt(traceId.slice(16, 24), 16) >>> 1 < this.#bound;
  }

  /** Id of a sampled trace. */
  trace(): string {
    const lower = Math.floor(((this.#next() >>> 1) / RANGE_31) * this.#bound) * 2;
    return hex(this.#next() | 1) + hex(this.#next()) + hex(lower) + hex(this.#next());
  }

  span(): string {
    return hex(this.#next() | 1) + hex(this.#next());
  }

  /**
   * Header mutation with the context of a new trace that is not sampled. Samplers behind it that follow their parent do
   * not sample it either. The bytes are valid until the next call.
   */
  unsampledHeader(): Buffer {
    const at = this.#traceAt;
    this.#write(at + 8, this.#next());
    const upper = this.#bound + Math.floor(((this.#next() >>> 1) / RANGE_31) * (RANGE_31 - this.#bound));
    this.#write(at + 16, upper * 2);
    this.#write(at + 24, this.#next());
    return this.#header;
  }

  #write(at: number, word: number): void {
    const bytes = this.#header;
    for (let digit = 7, rest = word; digit >= 0; digit--, rest >>>= 4) bytes[at + digit] = DIGITS[rest & 15]!;
  }

  #next(): number {
    const state = this.#state;
    let mixed = state[3]!;
    const first = state[0]!;
    state[3] = state[2]!;
    state[2] = state[1]!;
    state[1] = first;
    mixed ^= mixed << 11;
    mixed ^= mixed >>> 8;
    mixed ^= first ^ (first >>> 19);
    state[0] = mixed;
    return mixed;
  }
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0');
}
