import { GrpcFrames } from '../runtime/grpc-frames.js';
import { CORE } from './core-names.js';
import { InputBytes } from './input-bytes.js';
import type { CoreInstance } from './memory.js';
import { AnswerForm, type Usage } from './types.js';

/** Way to read an answer. */
export interface ResponseScanOptions {
  /** Whether the answer is a stream of server-sent events; else it is one JSON document. */
  readonly streaming: boolean;
  /** Form of the usage; `usage` when absent. Answers in gRPC frames are never renamed. */
  readonly form?: AnswerForm;
  /** The model name to change back. Without it, and for a name of more than 1,024 bytes, nothing is changed. */
  readonly renameFrom?: string | undefined;
  /** Name that replaces it. */
  readonly renameTo?: string | undefined;
}

/** Bound on a compressed gRPC message in bytes, before and after inflating; the usage in a longer one stays unknown. */
const PACKED_BYTES_MAX = 1024 * 1024;

const encoder = new TextEncoder();
const nothing = new Uint8Array(0);

/**
 * Reads answers as they pass: token usage, number of events, and the model name to change back.
 *
 * At most one per thread and core, because its scans are in the thread's part of shared memory (as many as the pool's
 * `scans`). Bytes are copied into the core and do not change there; the host splices the name.
 */
export class ResponseScanner {
  readonly #core: CoreInstance;
  readonly #free: Int32Array;
  #freeCount: number;
  readonly #open: Uint8Array;
  /** JSON of the replacement name, quotes included, per scan. */
  readonly #replacement: (Uint8Array | undefined)[] = [];
  /** Raw bytes of a possible model name that is not complete yet, per scan. */
  readonly #held: (Uint8Array | undefined)[] = [];
  /** gRPC frames of answers, by scan. */
  readonly #frames: (GrpcFrames | undefined)[] = [];
  readonly #input: InputBytes;
  readonly #output: number;
  readonly #pieceBytes: number;

  constructor(core: CoreInstance) {
    const { scans } = core.sizes;
    this.#core = core;
    this.#input = new InputBytes(core);
    this.#output = core.call.outputAddress() >>> 0;
    this.#pieceBytes = CORE.THREAD_INPUT_BYTES;
    this.#open = new Uint8Array(scans);
    this.#free = Int32Array.from({ length: scans }, (_, i) => scans - 1 - i);
    this.#freeCount = scans;
  }

  /** Number of scans that can be opened. */
  get free(): number {
    return this.#freeCount;
  }

  /**
   * Begins to read an answer.
   * @returns the scan's number, or -1 when as many answers as the pool's `scans` are open on this thread.
   */
  open(options: ResponseScanOptions): number {
    if (this.#freeCount === 0) return -1;
    const id = this.#free[--this.#freeCount]!;
    const { call } = this.#core;
    this.#open[id] = 1;
    const form = options.form ?? AnswerForm.usage;
    const framed = form >= AnswerForm.engine;
    this.#frames[id] = framed ? new GrpcFrames(PACKED_BYTES_MAX) : undefined;
    const nameBytes = framed ? 0 : this.#setRename(id, options.renameFrom, options.renameTo);
    call.responseOpen(id, form, options.streaming ? CORE.MODE_EVENTS : CORE.MODE_BODY, nameBytes);
    return id;
  }

  /** Writes the name to look for into INPUT; returns its length, 0 when nothing is to be changed. */
  #setRename(id: number, from: string | undefined, to: string | undefined): number {
    this.#replacement[id] = undefined;
    if (!from || !to || from === to) return 0;
    const longest = CORE.NAME_BYTES_MAX;
    const name = encoder.encode(from);
    if (name.length > longest || Buffer.byteLength(to) > longest) return 0;
    this.#input.write(name);
    this.#replacement[id] = encoder.encode(JSON.stringify(to));
    return name.length;
  }

  /**
   * Reads the answer's next bytes.
   * @param end the answer ends with this chunk (which may be empty).
   * @returns the bytes to forward: the same object when nothing changes. A model name cut by the chunk's end is held
   * back while it may be the one to change: at most 6 raw bytes for each byte of the name, and 12 more for its opening
   * quote and one incomplete escaped character beyond ASCII.
   * @throws RangeError when the scan is not open.
   */
  feed(id: number, chunk: Uint8Array, end: boolean): Uint8Array {
    this.#check(id);
    const frames = this.#frames[id];
    if (frames !== undefined) return this.#feedFrames(id, frames, chunk, end);
    if (chunk.length <= this.#pieceBytes) return this.#feedPiece(id, chunk, end);
    const parts: Uint8Array[] = [];
    let changed = false;
    for (let at = 0; at < chunk.length; at += this.#pieceBytes) {
      const piece = chunk.subarray(at, at + this.#pieceBytes);
      const out = this.#feedPiece(id, piece, end && at + this.#pieceBytes >= chunk.length);
      changed ||= out !== piece;
      parts.push(out);
    }
    return changed ? Buffer.concat(parts) : chunk;
  }

  #feedFrames(id: number, frames: GrpcFrames, chunk: Uint8Array, end: boolean): Uint8Array {
    const { call } = this.#core;
    frames.feed(chunk, {
      messageBegin: () => call.responseMessageBegin(id),
      piece: (message) => {
        for (let at = 0; at < message.length; at += this.#pieceBytes) {
          const piece = message.subarray(at, at + this.#pieceBytes);
          this.#input.write(piece);
          call.responseMessageFeed(id, piece.length, 0);
        }
        return true;
      },
      messageEnd: () => {
        call.responseMessageEnd(id);
        return true;
      },
    });
    if (end) call.responseMessageFeed(id, 0, 1);
    return chunk;
  }

  #feedPiece(id: number, piece: Uint8Array, end: boolean): Uint8Array {
    this.#input.write(piece);
    const changes = this.#core.call.responseFeed(id, piece.length, end ? 1 : 0);
    return changes === 0 && this.#held[id] === undefined ? piece : this.#splice(id, piece);
  }

  /** Builds the bytes to forward from the held bytes, the piece and the edits that the core wrote to OUTPUT. */
  #splice(id: number, piece: Uint8Array): Uint8Array {
    const { view } = this.#core;
    const held = this.#held[id] ?? nothing;
    const raw = held.length === 0 ? piece : Buffer.concat([held, piece]);
    const heldFrom = view.getInt32(this.#output + CORE.RESPONSE_HELD_FROM, true);
    const until = heldFrom === CORE.RESPONSE_HOLD_NOTHING ? raw.length : position(heldFrom, held.length);
    this.#held[id] = until < raw.length ? new Uint8Array(raw.subarray(until)) : undefined;

    const edits = view.getUint32(this.#output + CORE.RESPONSE_EDITS, true);
    return edits === 0
      ? raw.subarray(0, until)
      : this.#replace(raw.subarray(0, until), edits, held.length, this.#replacement[id]!);
  }

  /** Replaces each name in OUTPUT's edits, whose offsets count from the byte behind the held ones. */
  #replace(raw: Uint8Array, edits: number, held: number, replacement: Uint8Array): Uint8Array {
    const { view } = this.#core;
    const list = this.#output + CORE.RESPONSE_EDIT_LIST;
    const end = list + edits * CORE.RESPONSE_EDIT_BYTES;
    let length = raw.length + edits * replacement.length;
    for (let at = list; at < end; at += CORE.RESPONSE_EDIT_BYTES)
      length -=
        position(view.getInt32(at + CORE.RESPONSE_EDIT_END, true), held) - position(view.getInt32(at, true), held);
    const out = Buffer.allocUnsafe(length);
    let from = 0;
    let to = 0;
    for (let at = list; at < end; at += CORE.RESPONSE_EDIT_BYTES) {
      const start = position(view.getInt32(at, true), held);
      out.set(raw.subarray(from, start), to);
      to += start - from;
      out.set(replacement, to);
      to += replacement.length;
      from = position(view.getInt32(at + CORE.RESPONSE_EDIT_END, true), held);
    }
    out.set(raw.subarray(from), to);
    return out;
  }

  /** Bytes that are held back now. */
  held(id: number): number {
    this.#check(id);
    return this.#held[id]?.length ?? 0;
  }

  /**
   * Token usage of all JSON documents that have ended; unknown parts are -1.
   * @throws RangeError when the scan is not open.
   */
  usage(id: number): Usage {
    this.#check(id);
    const { f64 } = this.#core;
    const at = this.#address(id);
    return {
      promptTokens: f64[(at + CORE.SCAN_USAGE_PROMPT) >>> 3]!,
      completionTokens: f64[(at + CORE.SCAN_USAGE_COMPLETION) >>> 3]!,
      totalTokens: f64[(at + CORE.SCAN_USAGE_TOTAL) >>> 3]!,
      cachedTokens: f64[(at + CORE.SCAN_USAGE_CACHED) >>> 3]!,
    };
  }

  /**
   * Events of a stream: its `data:` lines without `[DONE]`. 0 for a JSON document.
   * @throws RangeError when the scan is not open.
   */
  events(id: number): number {
    this.#check(id);
    return this.#core.u32[(this.#address(id) + CORE.SCAN_EVENTS) >>> 2]!;
  }

  /**
   * Frees the scan. Bytes still held back are dropped: end the answer with `feed(…, true)` first. A second close does
   * nothing.
   */
  close(id: number): void {
    if (this.#open[id] !== 1) return;
    this.#open[id] = 0;
    this.#held[id] = undefined;
    this.#replacement[id] = undefined;
    this.#frames[id] = undefined;
    this.#free[this.#freeCount++] = id;
  }

  #address(id: number): number {
    return this.#core.call.responseScanAddress(id) >>> 0;
  }

  #check(id: number): void {
    if (this.#open[id] !== 1) throw new RangeError(`response scan ${id} is not open`);
  }
}

/** Position of an offset of the core after `held` bytes: -1 stands for the first of these. */
function position(offset: number, held: number): number {
  return offset < 0 ? 0 : offset + held;
}
