// Answers that are protobuf messages: those of vLLM's engine service, and google.api.HttpBody of Vertex AI with JSON or
// server-sent events in it.
//
// Owns: the protobuf words of a response scan (layout.ts); its own thread only, no lock. The gRPC frames around the
// messages are the host's: it knows which are compressed.
//
// The messages (field numbers):
//   GenerateResponse (vllm.grpc.engine)  chunk 1 { prompt_tokens 2, completion_tokens 3, cached_tokens 4 },
//                                        complete 2 { prompt_tokens 3, completion_tokens 4, cached_tokens 5 }
//   EmbedResponse                        prompt_tokens 2
//   HttpBody                             data 2
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
} from '../protobuf/reader';
import { eventsBegin, eventsEnd, eventsResume, readEvents } from './events';
import { jsonBegin, jsonComplete, jsonEnd, readJson } from './json';
import { FORM_ENGINE, FORM_ENGINE_EMBED, FORM_VERTEX, MODE_BODY, MODE_EVENTS, MODE_UNKNOWN } from './layout';
import { ResponseScan } from './scan-state';
import { usageCachedIsZero, usageClose, usageCommit, usageCount, usageOpen } from './usage';

/** Begins the next message. */
export function messageBegin(at: ResponseScan): void {
  wireBegin(at.wire);
  if (at.mode != MODE_EVENTS) at.events += 1;
  if (at.form == FORM_VERTEX) return;
  at.staged = 0;
  usageOpen(at, 1);
}

/** Reads the bytes [start, end) of the message; stops at bytes that are no message. */
export function readMessage(at: ResponseScan, start: usize, end: usize): void {
  const wire = at.wire;
  const vertex = at.form == FORM_VERTEX;
  wireFeed(start, end);
  while (true) {
    const found = wireNext(wire);
    if (found == WIRE_PAUSE || found == WIRE_BAD) return;
    if (vertex) readBody(at, wire, found);
    else if (found == WIRE_NUMBER) readCount(at, wire);
    else if (found == WIRE_LENGTH && wireLevel(wire) == 0 && at.form == FORM_ENGINE) {
      if (wireField(wire) <= 2) wireEnter(wire);
    }
  }
}

function readCount(at: ResponseScan, wire: Wire): void {
  const field = wireField(wire);
  if (at.form == FORM_ENGINE_EMBED) {
    if (wireLevel(wire) == 0 && field == 2) usageCount(at, 0, wireNumber(wire));
    return;
  }
  if (wireLevel(wire) != 1) return;
  // The counters of a complete answer have numbers one above those of a chunk.
  const first: u32 = wireParent(wire, 1) == 1 ? 2 : 3;
  if (field < first || field > first + 2) return;
  const count = field - first;
  usageCount(at, count == 2 ? 3 : count, wireNumber(wire));
}

/** Ends the message: what it said about usage counts. */
export function messageEnd(at: ResponseScan): void {
  if (at.form == FORM_VERTEX) {
    if (at.mode != MODE_BODY || !jsonComplete(at)) return;
    jsonEnd(at);
    jsonBegin(at);
  } else if (wireComplete(at.wire)) {
    // Proto3 leaves out a counter of 0: usage without cached tokens is usage with none.
    if (at.form == FORM_ENGINE) usageCachedIsZero(at);
    usageClose(at);
    usageCommit(at);
  }
}

/** Ends the answer. */
export function messagesEnd(at: ResponseScan): void {
  const mode = at.mode;
  if (at.form == FORM_VERTEX && mode == MODE_EVENTS) eventsEnd(at);
}

function readBody(at: ResponseScan, wire: Wire, found: u32): void {
  if (found == WIRE_LENGTH && wireField(wire) == 2) wireTake(wire);
  if (found != WIRE_PIECE) return;
  const from = wireFrom();
  const to = wireTo();
  if (at.mode == MODE_UNKNOWN && !chooseMode(at, from, to)) return;
  if (at.mode == MODE_BODY) {
    readJson(at, from, to, to);
    return;
  }
  eventsResume(at, from, to);
  readEvents(at, from, to);
}

/** Chooses the mode by the first byte that is no white space. @returns false while there is none. */
function chooseMode(at: ResponseScan, from: usize, to: usize): bool {
  while (from < to && <u32>load<u8>(from) <= 0x20) from++;
  if (from == to) return false;
  const json = <u32>load<u8>(from) == 0x7b || <u32>load<u8>(from) == 0x5b;
  at.mode = json ? MODE_BODY : MODE_EVENTS;
  if (json) jsonBegin(at);
  else eventsBegin(at);
  return true;
}
