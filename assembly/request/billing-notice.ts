// The billing notice that a client puts in front of the system text: other in every request, so it is no content.
//
// Owns: in this thread's part of REGION_SCANS, RequestScan.notice. No lock: all of it belongs to one thread.
import { contentEnd, contentMove, contentRaw } from './content';
import { RequestScan } from './scan-state';
import { SINK_NONE, SINK_PROMPT } from './value-sinks';

// "x-anthropic-billing-header": a system text that begins so is a notice of the client, other in every request.
const NOTICE_BYTES: u32 = 26;
const NOTICE_0: u64 = 0x6f7268746e612d78;
const NOTICE_8: u64 = 0x6c6c69622d636970;
const NOTICE_16: u64 = 0x646165682d676e69;
const NOTICE_24: u64 = 0x7265;

function noticeByte(index: u32): u32 {
  const word = index < 8 ? NOTICE_0 : index < 16 ? NOTICE_8 : index < 24 ? NOTICE_16 : NOTICE_24;
  return <u32>(word >> ((<u64>(index & 7)) << 3)) & 255;
}

/** Compares the beginning of a system text with that of the notice; content is what turns out to be another text. */
export function takeNotice(scan: RequestScan, from: usize, length: u32): void {
  let matched = scan.notice;
  let taken: u32 = 0;
  while (taken < length && matched < NOTICE_BYTES && <u32>load<u8>(from + taken) == noticeByte(matched)) {
    matched++;
    taken++;
  }
  scan.notice = matched;
  if (matched == NOTICE_BYTES) scan.sink = SINK_NONE;
  else if (taken < length) {
    noticeEnd(scan);
    contentRaw(scan, from + taken, length - taken);
    scan.sink = SINK_PROMPT;
  }
}

/** Ends the text, or the likeness to the notice: what was like it is content, unless it was all of the notice. */
export function noticeEnd(scan: RequestScan): void {
  const matched = scan.notice;
  scan.notice = 0;
  if (matched == NOTICE_BYTES) return;
  const to = contentEnd();
  for (let i: u32 = 0; i < matched; i++) store<u8>(to + i, noticeByte(i));
  contentMove(to + matched);
}
