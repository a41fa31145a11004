import { type FrameFault, GrpcFrames } from '../runtime/grpc-frames.js';
import { RememberedTexts } from '../runtime/remembered-texts.js';
import { CORE } from './core-names.js';
import { InputBytes } from './input-bytes.js';
import type { CoreInstance } from './memory.js';
import {
  type ByteRange,
  type Medium,
  PromptKind,
  type RequestScanResult,
  type ScanFlaw,
  type ScanRefusal,
} from './types.js';

/** Chain hashes of a prompt, written by scanner.chain() into the thread's HASHES area. */
export interface PromptChain {
  /** Whole blocks. */
  readonly blocks: number;
  /** Whether one more hash follows, of a partial last block. */
  readonly tail: boolean;
}

/** Scans and hash pages in use by a thread, and the number of shortages of pages. */
export interface ScannerUsage {
  readonly openScans: number;
  /** Prompts whose hashing stopped for lack of a page: their later blocks are not matched. */
  readonly hashShortages: number;
}

/** Offsets of a text in a scan state, and the bytes of it that are kept. */
interface TextField {
  readonly length: number;
  readonly bytes: number;
  readonly bytesMax: number;
}

const MODEL = { length: CORE.SCAN_MODEL_LENGTH, bytes: CORE.SCAN_MODEL, bytesMax: CORE.SCAN_MAX_MODEL };
const SALT = { length: CORE.SCAN_SALT_LENGTH, bytes: CORE.SCAN_SALT, bytesMax: CORE.SCAN_MAX_SALT };
const LIMITS = [
  { length: CORE.SCAN_LIMIT_FIRST_LENGTH, bytes: CORE.SCAN_LIMIT_FIRST, bytesMax: CORE.SCAN_MAX_LIMIT },
  { length: CORE.SCAN_LIMIT_SECOND_LENGTH, bytes: CORE.SCAN_LIMIT_SECOND, bytesMax: CORE.SCAN_MAX_LIMIT },
] as const;

const NO_MEDIA: readonly Medium[] = [];
const MODALITIES: Readonly<Record<number, Medium['modality']>> = {
  [CORE.MEDIUM_IMAGE]: 'image',
  [CORE.MEDIUM_VIDEO]: 'video',
  [CORE.MEDIUM_AUDIO]: 'audio',
};

/** Reason why a body is refused, by SCAN_REASON_*. */
const reasons: Readonly<Record<number, string>> = {
  [CORE.SCAN_REASON_BYTE]: 'unexpected byte',
  [CORE.SCAN_REASON_CONTROL]: 'raw control character in a string: write it as an escape',
  [CORE.SCAN_REASON_ESCAPE]: 'unknown escape in a string',
  [CORE.SCAN_REASON_UNICODE]: '\\u must be followed by four hex digits',
  [CORE.SCAN_REASON_NUMBER]: 'malformed number',
  [CORE.SCAN_REASON_LITERAL]: 'expected true, false or null',
  [CORE.SCAN_REASON_TRAILING]: 'unexpected byte after the end of the JSON document',
  [CORE.SCAN_REASON_DEPTH]: 'nested deeper than 512 levels',
  [CORE.SCAN_REASON_ENDED]: 'unexpected end of JSON input',
  [CORE.SCAN_REASON_EMPTY]: 'the body is empty: a JSON document is required',
  [CORE.SCAN_REASON_LENGTH]: 'the body is longer than 4 GiB',
  [CORE.SCAN_REASON_MESSAGE]: 'cannot parse invalid wire-format data',
  [CORE.SCAN_REASON_BARE]: 'no HttpBody',
};

/**
 * Bound on a compressed gRPC message in bytes, before and after inflating: it fits the longest prompts and bounds the
 * work of one turn.
 */
const PACKED_BYTES_MAX = 16 * 1024 * 1024;

const frameReasons: Readonly<Record<FrameFault | 'cut', string>> = {
  flag: 'unknown compression flag',
  'too large': `a compressed message may have at most ${PACKED_BYTES_MAX} bytes`,
  'not decompressed': 'neither gzip nor deflate',
  cut: 'the body ends inside a frame',
};

const flaws: readonly (readonly [bit: number, flaw: ScanFlaw])[] = [
  [CORE.SCAN_FLAW_MISSING, 'missing'],
  [CORE.SCAN_FLAW_EMPTY, 'empty'],
  [CORE.SCAN_FLAW_SHAPE, 'shape'],
  [CORE.SCAN_FLAW_SYSTEM, 'system'],
  [CORE.SCAN_FLAW_SALT, 'salt'],
  [CORE.SCAN_FLAW_STREAM, 'stream'],
];

/**
 * Scans of request bodies on one thread. A scan is opened, fed with the body as it arrives, finished, read, chained and
 * closed. Its state is in shared memory; this object holds only addresses.
 *
 * There may be one scanner per attached core. A new scanner closes every scan that the thread number had open before.
 */
export class RequestScanner {
  readonly #core: CoreInstance;
  readonly #input: InputBytes;
  readonly #pieceBytes: number;
  readonly #text: Buffer;
  /** gRPC frames of bodies, by scan. */
  readonly #frames: (GrpcFrames | undefined)[] = [];
  readonly #name: number;
  readonly #nameBytes: number;
  readonly #models = new RememberedTexts();
  /** The name at #name; most requests of a pool name the same model. */
  #rootModel = '';
  #rootLength = 0;

  constructor(core: CoreInstance) {
    this.#core = core;
    this.#input = new InputBytes(core);
    this.#pieceBytes = CORE.THREAD_INPUT_BYTES;
    this.#text = Buffer.from(core.memory.buffer);
    this.#name = (core.call.scanHeadAddress() >>> 0) + CORE.SCAN_HEAD_NAME;
    this.#nameBytes = CORE.SCAN_HEAD_NAME_BYTES;
    core.call.scanReset();
  }

  /** Scans open now; at most `sizes.scans`. */
  get openScans(): number {
    return this.usage.openScans;
  }

  get usage(): ScannerUsage {
    const { call, view } = this.#core;
    const head = call.scanHeadAddress() >>> 0;
    return {
      openScans: view.getUint32(head + CORE.SCAN_HEAD_OPEN, true),
      hashShortages: view.getUint32(head + CORE.SCAN_HEAD_SHORTAGES, true),
    };
  }

  /**
   * Opens a scan.
   * @param blockBytes bytes of prompt content per block, from 1 to 1,048,576.
   * @returns the scan's number, or -1 when `sizes.scans` are open already.
   * @throws RangeError when an argument is out of range.
   */
  open(kind: PromptKind, blockBytes: number): number {
    if (!Number.isInteger(blockBytes) || blockBytes < 1 || blockBytes > 1_048_576)
      throw new RangeError('blockBytes must be a whole number from 1 to 1048576');
    const id = this.#core.call.scanOpen(kind, blockBytes);
    if (id === -2) throw new RangeError(`unknown prompt kind ${kind}`);
    if (kind >= PromptKind.engine && id >= 0) this.#frames[id] = new GrpcFrames(PACKED_BYTES_MAX);
    return id;
  }

  /**
   * Scans the next piece of the body, of any length. In a body of gRPC frames the first message counts, and its bytes
   * must not change until finish().
   * @returns false once the body is refused; refusal() gives position and reason.
   */
  feed(id: number, chunk: Uint8Array): boolean {
    const state = this.#state(id);
    const frames = this.#frames[id];
    return frames === undefined ? this.#feedDocument(id, state, chunk) : this.#feedFrames(id, state, frames, chunk);
  }

  #feedFrames(id: number, state: number, frames: GrpcFrames, chunk: Uint8Array): boolean {
    if (frames.messages > 0) return this.#word(state, CORE.SCAN_REASON) === 0 && frames.fault === undefined;
    frames.feed(chunk, {
      piece: (bytes) => this.#feedDocument(id, state, bytes),
      messageBegin: () => undefined,
      messageEnd: () => false,
    });
    return this.#word(state, CORE.SCAN_REASON) === 0 && frames.fault === undefined;
  }

  #feedDocument(id: number, state: number, chunk: Uint8Array): boolean {
    for (let at = 0; at < chunk.length; at += this.#pieceBytes) {
      if (!this.#feedPiece(id, chunk.length <= this.#pieceBytes ? chunk : chunk.subarray(at, at + this.#pieceBytes)))
        return false;
    }
    return this.#word(state, CORE.SCAN_REASON) === 0;
  }

  #feedPiece(id: number, piece: Uint8Array): boolean {
    this.#input.write(piece);
    return this.#core.call.scanFeed(id, piece.length) === 0;
  }

  /** Ends the body. @returns false when it was not one document of its kind */
  finish(id: number): boolean {
    this.#state(id);
    const frames = this.#frames[id];
    if (frames !== undefined && (frames.messages === 0 || frames.fault !== undefined)) return false;
    return this.#core.call.scanFinish(id) === 0;
  }

  /** Position and reason of a refusal; undefined when the body was not refused so far. */
  refusal(id: number): ScanRefusal | undefined {
    const state = this.#state(id);
    const code = this.#word(state, CORE.SCAN_REASON);
    const position = this.#word(state, CORE.SCAN_POSITION);
    if (code !== 0) {
      const { SCAN_REASON_MESSAGE, SCAN_REASON_BARE } = CORE;
      const reason = reasons[code]!;
      if (code === SCAN_REASON_MESSAGE) return { layer: 'message', position, reason };
      return code === SCAN_REASON_BARE ? { layer: 'bare', position, reason } : { position, reason };
    }
    const frames = this.#frames[id];
    if (frames === undefined || (frames.messages > 0 && frames.fault === undefined)) return undefined;
    return { layer: 'frame', position, reason: frameReasons[frames.fault ?? 'cut'] };
  }

  #flaw(id: number): ScanFlaw | undefined {
    const found = this.#core.call.scanFlaws(id);
    return found === 0 ? undefined : flaws.find(([bit]) => (found & bit) !== 0)?.[1];
  }

  /** Result of the scan; complete once finish() has returned true. */
  result(id: number): RequestScanResult {
    const state = this.#state(id);
    const hasModel = this.#word(state, CORE.SCAN_MODEL_KNOWN) === 1;
    return {
      model: hasModel ? this.#model(state) : undefined,
      modelRange: this.#range(state, CORE.SCAN_MODEL_START, CORE.SCAN_MODEL_END),
      stream: this.#word(state, CORE.SCAN_STREAM) === 1,
      maxOutputTokens: this.#limit(state, LIMITS[0]) ?? this.#limit(state, LIMITS[1]),
      promptRange: this.#range(state, CORE.SCAN_PROMPT_START, CORE.SCAN_PROMPT_END),
      promptBytes: this.#core.call.scanPromptBytes(id) >>> 0,
      toolsRange: this.#range(state, CORE.SCAN_TOOLS_START, CORE.SCAN_TOOLS_END),
      templateRange: this.#range(state, CORE.SCAN_TEMPLATE_START, CORE.SCAN_TEMPLATE_END),
      cacheSalt: this.#word(state, CORE.SCAN_SALT_KNOWN) === 1 ? this.#string(state, SALT) : undefined,
      media: this.#word(state, CORE.SCAN_PROMPT_END) === 0 ? NO_MEDIA : this.#media(state),
      hasMedia: this.#core.call.scanMediaSeen(id) === 1,
      isObject: this.#word(state, CORE.SCAN_IS_OBJECT) === 1,
      flaw: this.#flaw(id),
    };
  }

  /**
   * Writes the prompt's chain hashes into the thread's HASHES area (see assembly/request/scan.ts).
   * @param model the target model, after any rewrite. Its first 4,032 bytes count.
   */
  chain(id: number, model: string): PromptChain {
    this.#state(id);
    if (model !== this.#rootModel) {
      this.#rootLength = this.#text.write(model, this.#name, this.#nameBytes, 'utf8');
      this.#rootModel = model;
    }
    const { call } = this.#core;
    const blocks = call.scanChain(id, this.#name, this.#rootLength);
    return { blocks, tail: call.scanTail(id) === 1 };
  }

  /** Notes the beginning of the prompt's text beside the chain of its tokens, which has at least one block. */
  noteBeginning(id: number): void {
    this.#core.call.scanBeginning(id);
  }

  /** Copies the same chain, the hash of a partial last block included. */
  chainHashes(id: number, model: string): BigUint64Array {
    const { blocks, tail } = this.chain(id, model);
    const { call, memory } = this.#core;
    return new BigUint64Array(memory.buffer, call.hashesAddress() >>> 0, blocks + (tail ? 1 : 0)).slice();
  }

  /** Closes a scan; its number may be used again. */
  close(id: number): void {
    this.#state(id);
    this.#frames[id] = undefined;
    this.#core.call.scanClose(id);
  }

  #state(id: number): number {
    const state = this.#core.call.scanAddress(id) >>> 0;
    if (state === 0) throw new RangeError(`no open request scan has the number ${id}`);
    return state;
  }

  #word(state: number, offset: number): number {
    return this.#core.view.getUint32(state + offset, true);
  }

  #media(state: number): readonly Medium[] {
    const count = this.#word(state, CORE.SCAN_MEDIA_COUNT);
    if (count === 0) return NO_MEDIA;
    const { view } = this.#core;
    return Array.from({ length: count }, (_, i) => ({
      hash: view.getBigUint64(state + CORE.SCAN_MEDIA + i * 8, true),
      modality: MODALITIES[view.getUint8(state + CORE.SCAN_MEDIA_KINDS + i)]!,
    }));
  }

  /** An end of 0 means no range: a range ends after its first byte at the earliest. */
  #range(state: number, startOffset: number, endOffset: number): ByteRange | undefined {
    const end = this.#word(state, endOffset);
    return end === 0 ? undefined : { start: this.#word(state, startOffset), end };
  }

  #model(state: number): string {
    const length = this.#word(state, MODEL.length);
    if (length > MODEL.bytesMax) return this.#string(state, MODEL);
    const from = state + MODEL.bytes;
    return this.#models.read(this.#text, from, from + length);
  }

  #string(state: number, at: TextField): string {
    const length = this.#word(state, at.length);
    const from = state + at.bytes;
    return this.#text.toString(
      'utf8',
      from,
      from + (length > at.bytesMax ? characterEnd(this.#text, from, at.bytesMax) : length),
    );
  }

  /** Value of a limit by its text, as JSON.parse would read it. */
  #limit(state: number, at: TextField): number | undefined {
    const length = this.#word(state, at.length);
    if (length === 0 || length > at.bytesMax) return undefined;
    const value = Number(this.#text.toString('latin1', state + at.bytes, state + at.bytes + length));
    return Number.isSafeInteger(value) && value >= 0 ? value + 0 : undefined;
  }
}

/** Number of bytes that hold whole characters among the first `kept` bytes of a longer UTF-8 text. */
function characterEnd(text: Buffer, at: number, kept: number): number {
  let lead = kept - 1;
  while (lead > kept - 4 && (text[at + lead]! & 0xc0) === 0x80) lead--;
  const first = text[at + lead]!;
  const size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  return lead + size > kept ? lead : kept;
}
