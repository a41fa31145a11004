import type { CoreInstance } from '../../core/memory.js';
import type { SeriesKind } from './metric-kind.js';
import { seriesKinds } from './metric-table.js';

/**
 * One thread's part of REGION_TELEMETRY: a directory of series, each with its cells after its labels.
 *
 *   +0  u32  bytes in use, this head included (0 = no thread has written here yet)
 *   +8       series, concatenated, each a multiple of 8 bytes:
 *            u32 kind · u32 bytes of the whole series · u32 bytes of the labels · u32 unused
 *            labels: the values as a JSON array, UTF-8, padded to 8 bytes
 *            f64 × cells of the kind
 *
 * Only the thread itself writes; the control thread reads. A series becomes visible when the head is stored, after the
 * series is complete. It never moves or disappears: a thread that replaces a dead one finds all series again, and no
 * counter decreases. The cells are plain 64-bit adds without atomics, because each has one writer.
 */
const HEAD_BYTES = 8;
const SERIES_HEAD_BYTES = 16;

export interface Series {
  readonly kind: SeriesKind;
  readonly values: readonly string[];
  /** Index of its first cell in `core.f64`. */
  readonly base: number;
}

const kindById = new Map(seriesKinds.map((kind) => [kind.id, kind]));
const encoder = new TextEncoder();
const decoder = new TextDecoder();

function padded(bytes: number): number {
  return (bytes + 7) & ~7;
}

/** Bytes of a series of `kind` with these label values. */
export function seriesBytes(kind: SeriesKind, values: readonly string[]): number {
  return SERIES_HEAD_BYTES + padded(encoder.encode(JSON.stringify(values)).length) + kind.cells * 8;
}

/** Reads the directory of one thread, each series once. */
export class SeriesReader {
  readonly #core: CoreInstance;
  readonly #address: number;
  #seen = HEAD_BYTES;

  constructor(core: CoreInstance, thread: number) {
    this.#core = core;
    this.#address = core.call.telemetryAddress(thread) >>> 0;
  }

  /** The series added since the last call. */
  fresh(): Series[] {
    const { i32, view, bytes } = this.#core;
    const used = Atomics.load(i32, this.#address >> 2);
    const found: Series[] = [];
    while (this.#seen < used) {
      const at = this.#address + this.#seen;
      const kind = kindById.get(view.getUint32(at, true));
      const size = view.getUint32(at + 4, true);
      const labelBytes = view.getUint32(at + 8, true);
      if (!kind) throw new Error(`the telemetry directory is damaged at byte ${this.#seen}`);
      // TextDecoder refuses shared memory, so slice() copies.
      const text = decoder.decode(bytes.slice(at + SERIES_HEAD_BYTES, at + SERIES_HEAD_BYTES + labelBytes));
      const base = (at + SERIES_HEAD_BYTES + padded(labelBytes)) >> 3;
      found.push({ kind, values: JSON.parse(text) as string[], base });
      this.#seen += size;
    }
    return found;
  }
}

/** Adds series to this thread's own directory. */
export class SeriesWriter {
  readonly #core: CoreInstance;
  readonly #address: number;
  readonly #limit: number;
  #used: number;

  constructor(core: CoreInstance) {
    this.#core = core;
    this.#address = core.call.telemetryAddress(core.thread) >>> 0;
    this.#limit = core.sizes.telemetryBytes & ~7;
    this.#used = Atomics.load(core.i32, this.#address >> 2) || HEAD_BYTES;
  }

  /** @returns the index of the new series' first cell in `core.f64`, or -1 when the block is full */
  add(kind: SeriesKind, values: readonly string[]): number {
    const labels = encoder.encode(JSON.stringify(values));
    const cellsAt = SERIES_HEAD_BYTES + padded(labels.length);
    const size = cellsAt + kind.cells * 8;
    if (this.#used + size > this.#limit) return -1;
    const { view, bytes, f64, i32 } = this.#core;
    const at = this.#address + this.#used;
    view.setUint32(at, kind.id, true);
    view.setUint32(at + 4, size, true);
    view.setUint32(at + 8, labels.length, true);
    bytes.set(labels, at + SERIES_HEAD_BYTES);
    const base = (at + cellsAt) >> 3;
    // A thread that was killed here may have written beyond the visible end.
    f64.fill(0, base, base + kind.cells);
    this.#used += size;
    Atomics.store(i32, this.#address >> 2, this.#used);
    return base;
  }
}
