// Bodies that are protobuf messages: requests of vLLM's engine service, and JSON that came in a Vertex AI request.
//
// Owns: in this thread's part of REGION_SCANS where each scan stands in its envelope. No lock: all of it belongs to one
// thread. The gRPC frames around the messages are the host's: it knows which are compressed.
//
// The messages (field numbers):
//   GenerateRequest (vllm.grpc.engine)  tokenized 2 { original_text 1, input_ids 2 }, text 3,
//                                       sampling_params 4 { max_tokens 8 }, stream 5
//   EmbedRequest                        tokenized 2
//   ChatCompletionsRequest, RawPredictRequest, StreamRawPredictRequest (google.cloud.aiplatform.v1)
//                                       http_body 2 { data 2 }
// Prompt content of an engine request are its token ids as little-endian u32 or, when it has none, its text.
import { INPUT } from '../memory';
import {
  WIRE_BAD,
  WIRE_LENGTH,
  WIRE_NUMBER,
  WIRE_PAUSE,
  WIRE_PIECE,
  wireBegin,
  wireComplete,
  wireEnter,
  wireFeed,
  wireField,
  wireFrom,
  wireLevel,
  wireNext,
  wireNumber,
  wireParent,
  wireTake,
  wireTo,
  wireUnpack,
} from '../protobuf/reader';
import { contentFlush, contentRaw, contentReset, contentStart, contentToken } from './content';
import { grammarEnd, grammarFeed, SCAN_REASON_BARE, SCAN_REASON_MESSAGE } from './grammar';
import {
  SCAN_ENVELOPE,
  SCAN_ENVELOPE_SEEN,
  SCAN_IS_OBJECT,
  SCAN_LIMIT_FIRST,
  SCAN_LIMIT_FIRST_LENGTH,
  SCAN_MESSAGE_BYTES,
  SCAN_PROMPT_END,
  SCAN_STREAM,
  SCAN_WIRE,
} from './layout';

export const ENVELOPE_NONE: u32 = 0;
export const ENVELOPE_GENERATE: u32 = 1;
export const ENVELOPE_EMBED: u32 = 2;
export const ENVELOPE_VERTEX: u32 = 3;

// What an engine request was found to hold (SCAN_ENVELOPE_SEEN).
const SEEN_INPUT: u32 = 1;
const SEEN_TOKENS: u32 = 2;

/** A body in an envelope begins. */
export function envelopeBegin(scan: usize, envelope: u32): void {
  store<u32>(scan, envelope, SCAN_ENVELOPE);
  store<u32>(scan, 1, SCAN_IS_OBJECT);
  wireBegin(scan + SCAN_WIRE);
}

/** Scan `length` bytes in INPUT. @returns 0, or the reason why the body is refused (SCAN_REASON_*). */
export function envelopeFeed(scan: usize, length: u32): u32 {
  wireFeed(INPUT, INPUT + length);
  store<u32>(scan, load<u32>(scan, SCAN_MESSAGE_BYTES) + length, SCAN_MESSAGE_BYTES);
  if (load<u32>(scan, SCAN_ENVELOPE) == ENVELOPE_VERTEX) return feedVertex(scan);
  contentStart();
  const reason = feedEngine(scan);
  contentFlush(scan);
  return reason;
}

/** May the body end here? @returns 0, or the reason why not. */
export function envelopeEnd(scan: usize): u32 {
  if (!wireComplete(scan + SCAN_WIRE)) return SCAN_REASON_MESSAGE;
  const seen = load<u32>(scan, SCAN_ENVELOPE_SEEN);
  if (load<u32>(scan, SCAN_ENVELOPE) == ENVELOPE_VERTEX) return seen == 0 ? SCAN_REASON_BARE : grammarEnd(scan);
  // The span of an engine's prompt is all of its message: only that there is one matters.
  if (seen != 0) store<u32>(scan, load<u32>(scan, SCAN_MESSAGE_BYTES), SCAN_PROMPT_END);
  return 0;
}

// ------------------------------------------------------------------------------------------------- Vertex AI

function feedVertex(scan: usize): u32 {
  const wire = scan + SCAN_WIRE;
  while (true) {
    const found = wireNext(wire);
    if (found == WIRE_PAUSE) return 0;
    if (found == WIRE_BAD) return SCAN_REASON_MESSAGE;
    if (found == WIRE_PIECE) {
      const from = wireFrom();
      const reason = grammarFeed(scan, from, <u32>(wireTo() - from));
      if (reason != 0) return reason;
    } else if (found == WIRE_LENGTH && wireField(wire) == 2) {
      if (wireLevel(wire) == 0) wireEnter(wire);
      else wireTake(wire);
      store<u32>(scan, 1, SCAN_ENVELOPE_SEEN);
    }
  }
}

// -------------------------------------------------------------------------------------- vLLM's engine service

function feedEngine(scan: usize): u32 {
  const wire = scan + SCAN_WIRE;
  while (true) {
    const found = wireNext(wire);
    if (found == WIRE_PAUSE) return 0;
    if (found == WIRE_BAD) return SCAN_REASON_MESSAGE;
    if (found == WIRE_LENGTH) engineLength(scan, wire);
    else if (found == WIRE_NUMBER) engineNumber(scan, wire);
    else if (found == WIRE_PIECE) contentRaw(scan, wireFrom(), <u32>(wireTo() - wireFrom()));
  }
}

function engineLength(scan: usize, wire: usize): void {
  const field = wireField(wire);
  const generate = load<u32>(scan, SCAN_ENVELOPE) == ENVELOPE_GENERATE;
  if (wireLevel(wire) == 0) {
    if (field == 4 && generate) wireEnter(wire);
    if (field != 2 && (field != 3 || !generate)) return;
    // Of several inputs the last one counts.
    contentReset(scan);
    store<u32>(scan, SEEN_INPUT, SCAN_ENVELOPE_SEEN);
    if (field == 2) wireEnter(wire);
    else wireTake(wire);
  } else if (wireLevel(wire) == 1 && wireParent(wire, 1) == 2) {
    if (field == 2) wireUnpack(wire);
    else if (field == 1 && (load<u32>(scan, SCAN_ENVELOPE_SEEN) & SEEN_TOKENS) == 0) wireTake(wire);
  }
}

function engineNumber(scan: usize, wire: usize): void {
  const field = wireField(wire);
  const level = wireLevel(wire);
  if (level == 0) {
    if (field == 5) store<u32>(scan, wireNumber(wire) != 0, SCAN_STREAM);
  } else if (wireParent(wire, 1) == 4) {
    if (field == 8) keepLimit(scan, wireNumber(wire));
  } else if (field == 2) {
    takeToken(scan, <u32>wireNumber(wire));
  }
}

/** The first token id takes the place of the text that stands before it. */
function takeToken(scan: usize, token: u32): void {
  const seen = load<u32>(scan, SCAN_ENVELOPE_SEEN);
  if ((seen & SEEN_TOKENS) == 0) {
    contentReset(scan);
    store<u32>(scan, seen | SEEN_TOKENS, SCAN_ENVELOPE_SEEN);
  }
  contentToken(scan, token);
}

/** Keep the output bound the way that JSON has it: as decimal text. */
function keepLimit(scan: usize, value: u64): void {
  const limit = <u32>value;
  let scale: u32 = 1;
  let digits: u32 = 1;
  while (limit / scale >= 10) {
    scale *= 10;
    digits++;
  }
  store<u32>(scan, digits, SCAN_LIMIT_FIRST_LENGTH);
  for (let to = scan + SCAN_LIMIT_FIRST; scale != 0; scale /= 10) store<u8>(to++, 0x30 + ((limit / scale) % 10));
}
