// Response scans: what the host calls.
//
// Owns: this thread's part of REGION_RESPONSES (layout.ts); its own thread only, no lock. Which scans are open is known
// to the host; the core only fills and reads them.
import { ASSERTIONS } from '../assertions';
import { INPUT, RESPONSE_REGION } from '../memory';
import { fitsInput, isScan, isTruth } from '../preconditions';
import { eventsBegin, eventsEnd, eventsResume, readEvents } from './events';
import { jsonBegin, jsonEnd, readJson } from './json';
import {
  FORM_ENGINE,
  FORM_VERTEX,
  MODE_BODY,
  MODE_UNKNOWN,
  NAME_BYTES_MAX,
  nameOf,
  RESPONSE_SCAN_BYTES,
} from './layout';
import { messageBegin, messageEnd, messagesEnd, readMessage } from './message';
import { renameBegin, renameEnd } from './rename';
import { ResponseScan } from './scan-state';
import { usageReset } from './usage';

/** Address of response scan `id` of this thread. */
export function responseScanAddress(id: u32): usize {
  if (ASSERTIONS) assert(isScan(id), 'the scan is one of the thread');
  return RESPONSE_REGION + <usize>id * RESPONSE_SCAN_BYTES;
}

function scanOf(id: u32): ResponseScan {
  return changetype<ResponseScan>(responseScanAddress(id));
}

/**
 * Begins a scan of an answer of `form` (FORM_*) in `mode` (MODE_EVENTS or MODE_BODY; of no matter for answers of
 * messages). The name to rename is the first `nameBytes` bytes of INPUT; 0 = none, as it must be for messages.
 */
export function responseOpen(id: u32, form: u32, mode: u32, nameBytes: u32): void {
  if (ASSERTIONS) assert(isScan(id), 'the scan is one of the thread');
  if (ASSERTIONS) assert(form <= FORM_VERTEX, 'the form is one of answers');
  if (ASSERTIONS) assert(mode <= MODE_BODY, 'the mode is that of events or of a body');
  if (ASSERTIONS) assert(nameBytes <= NAME_BYTES_MAX, 'the name fits into the scan');
  const at = scanOf(id);
  at.form = form;
  at.mode = form == FORM_VERTEX ? MODE_UNKNOWN : form >= FORM_ENGINE ? MODE_BODY : mode;
  at.nameBytes = nameBytes;
  at.holding = 0;
  memory.copy(nameOf(at), INPUT, nameBytes);
  usageReset(at);
  eventsBegin(at);
  jsonBegin(at);
}

/** Begins the next message of an answer that consists of messages. */
export function responseMessageBegin(id: u32): void {
  if (ASSERTIONS) assert(isScan(id), 'the scan is one of the thread');
  messageBegin(scanOf(id));
}

/** Ends a message. */
export function responseMessageEnd(id: u32): void {
  if (ASSERTIONS) assert(isScan(id), 'the scan is one of the thread');
  messageEnd(scanOf(id));
}

/** Reads the next `length` bytes of the message, which stand at INPUT; `last` = 1 when the answer ends with them. */
export function responseMessageFeed(id: u32, length: u32, last: u32): void {
  if (ASSERTIONS) assert(isScan(id), 'the scan is one of the thread');
  if (ASSERTIONS) assert(fitsInput(length), 'the bytes fit into the input of the thread');
  if (ASSERTIONS) assert(isTruth(last), '`last` is 0 or 1');
  const at = scanOf(id);
  renameBegin(INPUT);
  if (length > 0) readMessage(at, INPUT, INPUT + length);
  if (last != 0) messagesEnd(at);
}

/**
 * Reads the answer's next `length` bytes, which stand at INPUT; `last` = 1 when the answer ends with them.
 * @returns 0 when they can be passed on as they are, 1 when OUTPUT says what to change or to hold back.
 */
export function responseFeed(id: u32, length: u32, last: u32): u32 {
  if (ASSERTIONS) assert(isScan(id), 'the scan is one of the thread');
  if (ASSERTIONS) assert(fitsInput(length), 'the bytes fit into the input of the thread');
  if (ASSERTIONS) assert(isTruth(last), '`last` is 0 or 1');
  const at = scanOf(id);
  const body = at.mode == MODE_BODY;
  const end = INPUT + length;
  renameBegin(INPUT);
  if (body) readJson(at, INPUT, end, end);
  else {
    eventsResume(at, INPUT, end);
    readEvents(at, INPUT, end);
  }
  if (last != 0) {
    if (body) jsonEnd(at);
    else eventsEnd(at);
  }
  return renameEnd(at);
}
