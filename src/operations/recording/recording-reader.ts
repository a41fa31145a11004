import { crc32 } from 'node:zlib';
import { DECISION, END, FRAME, FRAME_HEAD_BYTES, FRAME_TAIL_BYTES } from '../../contract/recorded-frames.js';
import { OUTCOMES, type Outcome, UNKNOWN_COUNT } from '../../core/training-sample.js';
import { errorMessage } from '../../runtime/error-message.js';
import { MAGIC, type RecordedEndpoint, type RecordingHeader, type RecordingTrailer } from './recording-format.js';

/** One decision with the changes of its state. Lists are views of the file. */
export interface RecordedDecision {
  readonly timeMs: number;
  readonly thread: number;
  /** Number of its record among those of the thread. */
  readonly number: number;
  readonly profile: number;
  /** DECIDE_* flags. */
  readonly flags: number;
  readonly blocks: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly priority: number;
  readonly blockTokens: number;
  readonly earlier: number;
  readonly wantedTtftMs: number;
  readonly wantedTpotMs: number;
  /** Hash of the model name, and generator before the pick: 8 and 16 bytes. */
  readonly adapter: Buffer;
  readonly random: Buffer;
  readonly score: number;
  readonly used: number;
  /** Slots of the picks, in their order. */
  readonly picks: readonly number[];
  /** Hashes of the request headers, 8 bytes each. */
  readonly keys: Buffer;
  /** Chain hashes of the prompt's blocks, 8 bytes each. */
  readonly hashes: Buffer;
  /** Cells of the state that have changed since the thread's decision before: pairs of u32, cell and value. */
  readonly changes: Buffer;
}

/** The end of a request. Counts are undefined when the engine did not tell them. */
export interface RecordedEnd {
  readonly outcome: Outcome | undefined;
  readonly outputTokens: number | undefined;
  readonly promptTokens: number | undefined;
  readonly cachedTokens: number | undefined;
  readonly firstOutputMs: number;
  readonly perTokenMs: number;
  readonly durationMs: number;
}

export interface Recording {
  readonly header: RecordingHeader;
  /** In the order of the file: the decisions of each thread are in order. */
  readonly decisions: readonly RecordedDecision[];
  /** By `thread.number` of the decision. */
  readonly ends: ReadonlyMap<string, RecordedEnd>;
  /** Endpoints that any of the decisions could see, by slot; of several in one slot the last. */
  readonly endpoints: ReadonlyMap<number, RecordedEndpoint>;
  /** Undefined = the file was cut off. */
  readonly trailer: RecordingTrailer | undefined;
}

/**
 * Reads a recording (docs/reference/recording.md). A truncated file is read up to its last whole frame.
 * @throws Error with one line when the file is no recording or is damaged
 */
export function readRecording(file: Buffer): Recording {
  if (!file.subarray(0, MAGIC.length).equals(MAGIC)) {
    const other = file.subarray(0, MAGIC.length - 1).equals(MAGIC.subarray(0, -1));
    throw new Error(other ? `it has version ${file[MAGIC.length - 1]} of the format, not 1` : 'it is no recording');
  }
  const { header, next } = readHeader(file);
  const endpoints = new Map(header.endpoints.map((endpoint) => [endpoint.slot, endpoint]));
  const decisions: RecordedDecision[] = [];
  const ends = new Map<string, RecordedEnd>();
  let trailer: RecordingTrailer | undefined;
  for (const { kind, payload } of frames(file, next)) {
    if (kind === FRAME.decision) decisions.push(decisionOf(payload));
    else if (kind === FRAME.end) {
      ends.set(`${payload.readUInt32LE(END.thread)}.${payload.readUInt32LE(END.number)}`, endOf(payload));
    } else if (kind === FRAME.endpoints) {
      for (const endpoint of json(payload) as RecordedEndpoint[]) endpoints.set(endpoint.slot, endpoint);
    } else if (kind === FRAME.trailer) trailer = json(payload) as RecordingTrailer;
  }
  return { header, decisions, ends, endpoints, trailer };
}

function readHeader(file: Buffer): { readonly header: RecordingHeader; readonly next: number } {
  const from = MAGIC.length + 4;
  if (file.length < from) throw new Error('it ends within its header');
  const end = from + file.readUInt32LE(MAGIC.length);
  if (file.length < end + 4) throw new Error('it ends within its header');
  const text = file.subarray(from, end);
  if (crc32(text) !== file.readUInt32LE(end)) throw new Error('its header is damaged: the checksum differs');
  return { header: json(text) as RecordingHeader, next: end + 4 };
}

function json(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch (error) {
    throw new Error(`it is damaged: ${errorMessage(error)}`);
  }
}

/** Whole frames of a file, from `first` on. @throws when a checksum differs */
function* frames(file: Buffer, first: number): Generator<{ readonly kind: number; readonly payload: Buffer }> {
  for (let at = first; at + FRAME_HEAD_BYTES + FRAME_TAIL_BYTES <= file.length; ) {
    const end = at + FRAME_HEAD_BYTES + file.readUInt32LE(at);
    if (end + FRAME_TAIL_BYTES > file.length) return;
    if (crc32(file.subarray(at + 4, end)) !== file.readUInt32LE(end)) {
      throw new Error(`it is damaged: the checksum of the frame at byte ${at} differs`);
    }
    yield { kind: file[at + 4]!, payload: file.subarray(at + FRAME_HEAD_BYTES, end) };
    at = end + FRAME_TAIL_BYTES;
  }
}

function decisionOf(payload: Buffer): RecordedDecision {
  const word = (offset: number) => payload.readUInt32LE(offset);
  const [picks, keys, hashes] = [word(DECISION.picks), word(DECISION.keys), word(DECISION.hashes)];
  const keysAt = DECISION.lists + 4 * picks;
  const hashesAt = keysAt + 8 * keys;
  const changesAt = hashesAt + 8 * hashes;
  return {
    timeMs: payload.readDoubleLE(DECISION.timeMs),
    thread: word(DECISION.thread),
    number: word(DECISION.number),
    profile: word(DECISION.profile),
    flags: word(DECISION.flags),
    blocks: word(DECISION.blocks),
    promptTokens: word(DECISION.promptTokens),
    outputTokens: word(DECISION.outputTokens),
    priority: payload.readInt32LE(DECISION.priority),
    blockTokens: word(DECISION.blockTokens),
    earlier: word(DECISION.earlier),
    wantedTtftMs: payload.readFloatLE(DECISION.wantedTtftMs),
    wantedTpotMs: payload.readFloatLE(DECISION.wantedTpotMs),
    adapter: payload.subarray(DECISION.adapter, DECISION.random),
    random: payload.subarray(DECISION.random, DECISION.score),
    score: payload.readFloatLE(DECISION.score),
    used: word(DECISION.used),
    picks: Array.from({ length: picks }, (_, i) => word(DECISION.lists + 4 * i)),
    keys: payload.subarray(keysAt, hashesAt),
    hashes: payload.subarray(hashesAt, changesAt),
    changes: payload.subarray(changesAt, changesAt + 8 * word(DECISION.changes)),
  };
}

const OUTCOME_NAMES = new Map<number, Outcome>(
  Object.entries(OUTCOMES).map(([name, number]) => [number, name as Outcome]),
);

function endOf(payload: Buffer): RecordedEnd {
  const count = (offset: number) => {
    const value = payload.readUInt32LE(offset);
    return value === UNKNOWN_COUNT ? undefined : value;
  };
  return {
    outcome: OUTCOME_NAMES.get(payload.readUInt32LE(END.outcome)),
    outputTokens: count(END.outputTokens),
    promptTokens: count(END.promptTokens),
    cachedTokens: count(END.cachedTokens),
    firstOutputMs: payload.readFloatLE(END.firstOutputMs),
    perTokenMs: payload.readFloatLE(END.perTokenMs),
    durationMs: payload.readFloatLE(END.durationMs),
  };
}
