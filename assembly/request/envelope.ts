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
  Wire,
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
import { SCAN_LIMIT_FIRST } from './layout';
import { RequestScan } from './scan-state';

export const ENVELOPE_NONE: u32 = 0;
export const ENVELOPE_GENERATE: u32 = 1;
export const ENVELOPE_EMBED: u32 = 2;
export const ENVELOPE_VERTEX: u32 = 3;

// Content found in an engine request (RequestScan.envelopeSeen).
const SEEN_INPUT: u32 = 1;
const SEEN_TOKENS: u32 = 2;

/** Begins a body in an envelope. */
export function envelopeBegin(scan: RequestScan, envelope: u32): void {
  scan.envelope = envelope;
  scan.isObject = 1;
  wireBegin(scan.wire);
}

/** Scan `length` bytes in INPUT. @returns 0, or the reason why the body is refused (SCAN_REASON_*). */
export function envelopeFeed(scan: RequestScan, length: u32): u32 {
  wireFeed(INPUT, INPUT + length);
  scan.messageBytes += length;
  if (scan.envelope == ENVELOPE_VERTEX) return feedVertex(scan);
  contentStart();
  const reason = feedEngine(scan);
  contentFlush(scan);
  return reason;
}

/** Checks whether the body may end here. @returns 0, or the reason why not. */
export function envelopeEnd(scan: RequestScan): u32 {
  if (!wireComplete(scan.wire)) return SCAN_REASON_MESSAGE;
  const seen = scan.envelopeSeen;
  if (scan.envelope == ENVELOPE_VERTEX) return seen == 0 ? SCAN_REASON_BARE : grammarEnd(scan);
  // The range of an engine's prompt is all of its message: only that there is one matters.
  if (seen != 0) scan.promptEnd = scan.messageBytes;
  return 0;
}

// ------------------------------------------------------------------------------------------------- Vertex AI

function feedVertex(scan: RequestScan): u32 {
  const wire = scan.wire;
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
      scan.envelopeSeen = 1;
    }
  }
}

// -------------------------------------------------------------------------------------- vLLM's engine service

function feedEngine(scan: RequestScan): u32 {
  const wire = scan.wire;
  while (true) {
    const found = wireNext(wire);
    if (found == WIRE_PAUSE) return 0;
    if (found == WIRE_BAD) return SCAN_REASON_MESSAGE;
    if (found == WIRE_LENGTH) engineLength(scan, wire);
    else if (found == WIRE_NUMBER) engineNumber(scan, wire);
    else if (found == WIRE_PIECE) contentRaw(scan, wireFrom(), <u32>(wireTo() - wireFrom()));
  }
}

function engineLength(scan: RequestScan, wire: Wire): void {
  const field = wireField(wire);
  const generate = scan.envelope == ENVELOPE_GENERATE;
  if (wireLevel(wire) == 0) {
    if (field == 4 && generate) wireEnter(wire);
    if (field != 2 && (field != 3 || !generate)) return;
    // Of several inputs the last one counts.
    contentReset(scan);
    scan.envelopeSeen = SEEN_INPUT;
    if (field == 2) wireEnter(wire);
    else wireTake(wire);
  } else if (wireLevel(wire) == 1 && wireParent(wire, 1) == 2) {
    if (field == 2) wireUnpack(wire);
    else if (field == 1 && (scan.envelopeSeen & SEEN_TOKENS) == 0) wireTake(wire);
  }
}

function engineNumber(scan: RequestScan, wire: Wire): void {
  const field = wireField(wire);
  const level = wireLevel(wire);
  if (level == 0) {
    if (field == 5) scan.stream = u32(wireNumber(wire) != 0);
  } else if (wireParent(wire, 1) == 4) {
    if (field == 8) keepLimit(scan, wireNumber(wire));
  } else if (field == 2) {
    takeToken(scan, <u32>wireNumber(wire));
  }
}

/** Takes the first token id in the place of the text before it. */
function takeToken(scan: RequestScan, token: u32): void {
  const seen = scan.envelopeSeen;
  if ((seen & SEEN_TOKENS) == 0) {
    contentReset(scan);
    scan.envelopeSeen = seen | SEEN_TOKENS;
  }
  contentToken(scan, token);
}

/** Keeps the output bound in the form of JSON: as decimal text. */
function keepLimit(scan: RequestScan, value: u64): void {
  const limit = <u32>value;
  let scale: u32 = 1;
  let digits: u32 = 1;
  while (limit / scale >= 10) {
    scale *= 10;
    digits++;
  }
  scan.limitFirstLength = digits;
  for (let to = changetype<usize>(scan) + SCAN_LIMIT_FIRST; scale != 0; scale /= 10)
    store<u8>(to++, 0x30 + ((limit / scale) % 10));
}
