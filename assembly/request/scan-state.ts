// State of a thread's request scans in memory.
//
// Owns no words of its own: layout.ts says where each lies in this thread's part of REGION_SCANS, and each field who
// writes it. No lock: all of it belongs to one thread.
import { SCAN_REGION } from '../memory';
import { Wire } from '../protobuf/reader';

/** Head of a thread's part; SCAN_HEAD_NAME follows. */
@unmanaged
export class ScanHead {
  /** Scans open now · its thread · none. */
  open: u32;
  /** Number of the first released state + 1, 0 = none · its thread · none. */
  free: u32;
  /** States handed out for the first time so far · its thread · none. */
  fresh: u32;
  /** Number of the first released page + 1, 0 = none · its thread · none. */
  freePage: u32;
  /** Pages handed out for the first time so far · its thread · none. */
  freshPages: u32;
  /** Prompts whose hashing stopped because no page was left · its thread · none. */
  shortages: u32;
}

/** A hash stream: four sums over 32-byte stripes (hash.ts). */
@unmanaged
export class HashStream {
  /** First sum · its thread · none. */
  a: u64;
  /** Second sum · its thread · none. */
  b: u64;
  /** Third sum · its thread · none. */
  c: u64;
  /** Fourth sum · its thread · none. */
  d: u64;
  /** Bytes in the unfinished stripe · its thread · none. */
  fill: u32;
  /** Bytes absorbed, modulo 2^32 · its thread · none. */
  length: u32;
  /** The unfinished stripe, 32 bytes · its thread · none. */
  stripeWords: u64;
  private stripeWords1: u64;
  private stripeWords2: u64;
  private stripeWords3: u64;

  get stripe(): usize {
    return changetype<usize>(this) + offsetof<HashStream>('stripeWords');
  }

  get firstSums(): v128 {
    return v128.load(changetype<usize>(this));
  }

  get secondSums(): v128 {
    return v128.load(changetype<usize>(this), offsetof<HashStream>('c'));
  }

  setSums(first: v128, second: v128): void {
    v128.store(changetype<usize>(this), first);
    v128.store(changetype<usize>(this), second, offsetof<HashStream>('c'));
  }
}

/** Head of a segment, cleared when a scan is opened; SEGMENT_INLINE_HASHES content hashes follow. */
@unmanaged
export class ContentSegment {
  /** Whole blocks hashed · its thread · none. */
  hashCount: u32;
  /** Number of its first page + 1, 0 = none · its thread · none. */
  firstPage: u32;
  /** Number of its last page + 1, 0 = none · its thread · none. */
  lastPage: u32;
  /** 1 = hashing stopped: no page was left or the prompt has more than CHAIN_BLOCKS blocks · its thread · none. */
  full: u32;
  /** Bytes · its thread · none. */
  contentBytes: u32;
  private unused0: u32;
  /** HashStream of the block under way · its thread · none. */
  blockStream: u64;
  private blockStream1: u64;
  private blockStream2: u64;
  private blockStream3: u64;
  private blockStream4: u64;
  private blockStream5: u64;
  private blockStream6: u64;
  private blockStream7: u64;
  private blockStream8: u64;

  get stream(): HashStream {
    return changetype<HashStream>(changetype<usize>(this) + offsetof<ContentSegment>('blockStream'));
  }

  /** Address of the hashes in the segment itself. */
  get hashes(): usize {
    return changetype<usize>(this) + offsetof<ContentSegment>();
  }
}

/** Media in the prompt; the first two words are cleared with the content. */
@unmanaged
export class MediaState {
  /** 1 = the prompt has images, audio or video · its thread · none. */
  seen: u32;
  /** 1 = the next value is that of a `type` inside of a value taken raw · its thread · none. */
  typeNext: u32;
  /** Bytes kept of the type under way · its thread · none. */
  typeLength: u32;
  private unused0: u32;
  /** First eight bytes of that type, zero padded · its thread · none. */
  type: u64;
  /** Next eight bytes of it · its thread · none. */
  typeRest: u64;

  get typeText(): usize {
    return changetype<usize>(this) + offsetof<MediaState>('type');
  }
}

/** One open scan: everything up to SCAN_BITS is cleared when it is opened; the areas of layout.ts follow. */
@unmanaged
export class RequestScan {
  /** 1 while open; in the free list number of the next free state + 1 · its thread · none. */
  open: u32;
  /** Kind of body, PROMPT_* · its thread · none. */
  kind: u32;
  /** Bytes per block, 0 = closed · its thread · none. */
  block: u32;
  /** 0, or why the body was refused, SCAN_REASON_* · its thread · none. */
  reason: u32;
  /** Bytes accepted; once refused, offset of the refused byte · its thread · none. */
  position: u32;
  /** Bytes that may come next, LEX_* · its thread · none. */
  lex: u32;
  /** Open brackets · its thread · none. */
  depth: u32;
  /** Depth of the innermost container whose keys or elements matter · its thread · none. */
  tracked: u32;
  /** Role of the value under way at each of eight tracked depths, u8 each, ROLE_* · its thread · none. */
  roles: u64;
  /** Receiver of the string or number under way, SINK_* · its thread · none. */
  sink: u32;
  /** Receiver of the raw bytes of the value under way, RAW_* · its thread · none. */
  raw: u32;
  /** UTF-16 unit of a \u escape, as far as read · its thread · none. */
  unit: u32;
  /** Hex digits read of it · its thread · none. */
  digits: u32;
  /** High surrogate that waits for its low half, 0 = none · its thread · none. */
  high: u32;
  /** Bytes still missing of true, false or null, first one lowest · its thread · none. */
  literal: u32;
  /** Key under way, 32 bytes, zero padded · its thread · none. */
  key: u64;
  private key1: u64;
  private key2: u64;
  private key3: u64;
  /** Bytes of the key · its thread · none. */
  keyLength: u32;
  /** Shape of the prompt value, SHAPE_* · its thread · none. */
  shape: u32;
  /** Token id under way · its thread · none. */
  number: u64;
  /** 1 = the number is no token id · its thread · none. */
  numberBad: u32;
  /** Offset in bytes of the top-level value under way · its thread · none. */
  valueStart: u32;
  /** 1 = the body is an object · its thread · none. */
  isObject: u32;
  /** 1 = the body asks for a stream · its thread · none. */
  stream: u32;
  /** 1 = the last `model` was a string · its thread · none. */
  modelKnown: u32;
  /** Bytes of the model name, kept or not · its thread · none. */
  modelLength: u32;
  /** Offset in bytes of its value · its thread · none. */
  modelStart: u32;
  /** Offset in bytes behind its value · its thread · none. */
  modelEnd: u32;
  /** 1 = the last cache salt was a string · its thread · none. */
  saltKnown: u32;
  /** Bytes of the cache salt; its hash also covers bytes that are not kept · its thread · none. */
  saltLength: u32;
  /** Offset in bytes of the prompt · its thread · none. */
  promptStart: u32;
  /** Offset in bytes behind it, 0 = no prompt of an allowed shape · its thread · none. */
  promptEnd: u32;
  /** Offset in bytes of the tools · its thread · none. */
  toolsStart: u32;
  /** Offset in bytes behind them, 0 = none · its thread · none. */
  toolsEnd: u32;
  /** Offset in bytes of the arguments of the chat template · its thread · none. */
  templateStart: u32;
  /** Offset in bytes behind them, 0 = none · its thread · none. */
  templateEnd: u32;
  /** Envelope of the JSON or the prompt, ENVELOPE_* · its thread · none. */
  envelope: u32;
  /** Offset in bytes of the segment that takes content now · its thread · none. */
  segment: u32;
  /** Fields beside the prompt with a wrong shape, FAULT_* bits · its thread · none. */
  fault: u32;
  /** Bytes of a system text that were like the notice so far · its thread · none. */
  notice: u32;
  /** Bytes of the output bound that counts first · its thread · none. */
  limitFirstLength: u32;
  /** Bytes of the second limit · its thread · none. */
  limitSecondLength: u32;
  /** Members that the envelope held, SEEN_* bits · its thread · none. */
  envelopeSeen: u32;
  /** Bytes of the envelope so far · its thread · none. */
  messageBytes: u32;
  /** Hash of the cache salt, 0 = none · its thread · none. */
  saltHash: u64;
  /** HashStream of the cache salt or medium under way · its thread · none. */
  asideStream: u64;
  private asideStream1: u64;
  private asideStream2: u64;
  private asideStream3: u64;
  private asideStream4: u64;
  private asideStream5: u64;
  private asideStream6: u64;
  private asideStream7: u64;
  private asideStream8: u64;
  /** UTF-8 of one escape, 8 bytes · its thread · none. */
  decoded: u64;
  /** Wire of the envelope · its thread · none. */
  wireState: u64;
  private wireState1: u64;
  private wireState2: u64;
  private wireState3: u64;
  private wireState4: u64;
  private wireState5: u64;
  private wireState6: u64;
  private wireState7: u64;
  private wireState8: u64;
  /** Different media in the prompt, at most SCAN_MAX_MEDIA · its thread · none. */
  mediaCount: u32;
  /** Kind of the medium under way, MEDIUM_* · its thread · none. */
  medium: u32;

  get aside(): HashStream {
    return changetype<HashStream>(changetype<usize>(this) + offsetof<RequestScan>('asideStream'));
  }

  get wire(): Wire {
    return changetype<Wire>(changetype<usize>(this) + offsetof<RequestScan>('wireState'));
  }

  /** Address of the decoded escape. */
  get decodedAt(): usize {
    return changetype<usize>(this) + offsetof<RequestScan>('decoded');
  }

  get keyText(): usize {
    return changetype<usize>(this) + offsetof<RequestScan>('key');
  }

  /** Sets the eight bytes of the key from byte 8 × `i` on. */
  setKeyWord(i: u32, word: u64): void {
    store<u64>(changetype<usize>(this) + ((<usize>i) << 3), word, offsetof<RequestScan>('key'));
  }

  roleAt(depth: u32): u32 {
    return load<u8>(changetype<usize>(this) + <usize>depth, offsetof<RequestScan>('roles'));
  }

  setRoleAt(depth: u32, role: u32): void {
    store<u8>(changetype<usize>(this) + <usize>depth, role, offsetof<RequestScan>('roles'));
  }

  /** Eight bytes of the key from byte 8 × `i` on. */
  keyWord(i: u32): u64 {
    return load<u64>(changetype<usize>(this) + ((<usize>i) << 3), offsetof<RequestScan>('key'));
  }

  contentAt(offset: usize): ContentSegment {
    return changetype<ContentSegment>(changetype<usize>(this) + offset);
  }
}

/** Head of this thread's part. */
export function scanHead(): ScanHead {
  return changetype<ScanHead>(SCAN_REGION);
}
