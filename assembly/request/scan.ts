// Scans of request bodies: opened, fed, finished, read, chained, closed.
//
// Owns: the list of scan states in this thread's part of REGION_SCANS (layout.ts). No lock: all of it belongs to one
// thread.
import { ASSERTIONS } from '../assertions';
import { attached, HASH_SEED, INPUT, SCAN_REGION, SCANS, THREAD_INPUT_BYTES } from '../memory';
import { fitsChain, isMapped, isScan } from '../preconditions';
import { PROMPT_CHAT, PROMPT_RESPONSES, PROMPT_SGLANG } from './body-kinds';
import { contentBeginning, contentChain, contentClose, contentOpen, contentStart, contentTail } from './content';
import {
  ENVELOPE_EMBED,
  ENVELOPE_GENERATE,
  ENVELOPE_NONE,
  ENVELOPE_VERTEX,
  envelopeBegin,
  envelopeEnd,
  envelopeFeed,
} from './envelope';
import { promptBytes } from './fields';
import { grammarEnd, grammarFeed, SCAN_REASON_CLOSED, SCAN_REASON_LENGTH } from './grammar';
import { hashBytes, hashLink } from './hash';
import { SCAN_BYTES, SCAN_HEAD_BYTES, SCAN_HEAD_NAME } from './layout';
import { mediaOf } from './media';
import { SHAPE_BAD, SHAPE_EMPTY } from './prompt-shapes';
import { RequestScan, scanHead } from './scan-state';

// Kinds beyond those of fields.ts: what the message in an envelope holds.
export const PROMPT_ENGINE: u32 = 9; // vLLM's GenerateRequest
export const PROMPT_ENGINE_EMBED: u32 = 10; // vLLM's EmbedRequest
export const PROMPT_VERTEX_CHAT: u32 = 11;
export const PROMPT_VERTEX_RESPONSES: u32 = 12;
const PROMPT_KINDS: u32 = 13;

export const SCAN_FLAW_MISSING: u32 = 1; // no prompt
export const SCAN_FLAW_EMPTY: u32 = 2; // a prompt without elements
export const SCAN_FLAW_SHAPE: u32 = 4; // a prompt of a shape that is not allowed
export const SCAN_FLAW_SYSTEM: u32 = 8; // these three are FAULT_* three bits up
export const SCAN_FLAW_SALT: u32 = 16;
export const SCAN_FLAW_STREAM: u32 = 32;

// ------------------------------------------------------------------------------------------------ life of a scan

function envelopeOf(kind: u32): u32 {
  if (kind <= PROMPT_SGLANG) return ENVELOPE_NONE;
  if (kind == PROMPT_ENGINE) return ENVELOPE_GENERATE;
  return kind == PROMPT_ENGINE_EMBED ? ENVELOPE_EMBED : ENVELOPE_VERTEX;
}

/** Closes every scan of this thread: for a thread that replaces a dead one. */
export function scanReset(): void {
  memory.fill(SCAN_REGION, 0, SCAN_HEAD_NAME);
  if (ASSERTIONS) assert(scanHead().open == 0 && scanHead().fresh == 0, 'no scan is open');
}

function stateOf(id: u32): RequestScan {
  return changetype<RequestScan>(SCAN_REGION + SCAN_HEAD_BYTES + <usize>id * SCAN_BYTES);
}

/** Address of an open scan's state, 0 when no open scan has the number. */
export function scanAddress(id: u32): usize {
  if (id >= scanHead().fresh) return 0;
  const scan = stateOf(id);
  return scan.block != 0 ? changetype<usize>(scan) : 0;
}

/** State of an open scan, null when no open scan has the number. */
function openScan(id: u32): RequestScan | null {
  return changetype<RequestScan | null>(scanAddress(id));
}

/** Address of the head of this thread's scans (SCAN_HEAD_*). */
export function scanHeadAddress(): usize {
  return attached(SCAN_REGION);
}

/**
 * Opens a scan.
 * @param kind PROMPT_*
 * @param blockBytes bytes of prompt content per block, at least 1.
 * @returns its number, -1 when SCANS are open already, -2 when an argument is out of range.
 */
export function scanOpen(kind: u32, blockBytes: u32): i32 {
  if (kind >= PROMPT_KINDS || blockBytes == 0) return -2;
  let id = scanHead().free;
  if (id != 0) {
    id--;
    scanHead().free = stateOf(id).open;
  } else {
    id = scanHead().fresh;
    if (id >= SCANS) return -1;
    scanHead().fresh = id + 1;
  }
  scanHead().open += 1;
  const scan = stateOf(id);
  memory.fill(changetype<usize>(scan), 0, offsetof<RequestScan>());
  scan.open = 1;
  scan.kind = kind <= PROMPT_SGLANG ? kind : kind == PROMPT_VERTEX_RESPONSES ? PROMPT_RESPONSES : PROMPT_CHAT;
  scan.block = blockBytes;
  contentOpen(scan);
  const envelope = envelopeOf(kind);
  if (envelope != ENVELOPE_NONE) envelopeBegin(scan, envelope);
  if (ASSERTIONS) assert(isScan(id), 'the scan is one of the thread');
  return <i32>id;
}

/** Closes a scan and frees what it holds; does nothing when no open scan has the number. */
export function scanClose(id: u32): void {
  if (ASSERTIONS) assert(isScan(id), 'the scan is one of the thread');
  const scan = openScan(id);
  if (scan == null) return;
  contentStart();
  contentClose(scan);
  scan.block = 0;
  scan.open = scanHead().free;
  scanHead().free = id + 1;
  if (ASSERTIONS) assert(scanHead().open != 0, 'an open scan is counted');
  scanHead().open -= 1;
}

/**
 * Scan the next `length` bytes of the body, which lie in INPUT.
 * @returns 0, or the reason why the body is refused (SCAN_REASON_*, then and for every later feed).
 */
export function scanFeed(id: u32, length: u32): u32 {
  if (ASSERTIONS) assert(isScan(id), 'the scan is one of the thread');
  const scan = openScan(id);
  if (scan == null) return SCAN_REASON_CLOSED;
  const refused = scan.reason;
  if (refused != 0) return refused;
  if (length > <u32>THREAD_INPUT_BYTES || length > u32.MAX_VALUE - scan.position) {
    scan.reason = SCAN_REASON_LENGTH;
    return SCAN_REASON_LENGTH;
  }
  if (scan.envelope == ENVELOPE_NONE) {
    const reason = grammarFeed(scan, INPUT, length);
    if (ASSERTIONS) assert(scan.reason == reason, 'a body that was refused stays so');
    return reason;
  }
  const reason = envelopeFeed(scan, length);
  scan.reason = reason;
  return reason;
}

/**
 * Ends the body.
 * @returns 0 when it was one JSON document, or the reason why it is refused.
 */
export function scanFinish(id: u32): u32 {
  if (ASSERTIONS) assert(isScan(id), 'the scan is one of the thread');
  const scan = openScan(id);
  if (scan == null) return SCAN_REASON_CLOSED;
  const refused = scan.reason;
  if (refused != 0) return refused;
  const reason = scan.envelope == ENVELOPE_NONE ? grammarEnd(scan) : envelopeEnd(scan);
  scan.reason = reason;
  return reason;
}

// --------------------------------------------------------------------------------------------------- the results

/** Returns the flaws of the body's fields (SCAN_FLAW_*, bits); 0 when an engine would take them. */
export function scanFlaws(id: u32): u32 {
  if (ASSERTIONS) assert(isScan(id), 'the scan is one of the thread');
  const scan = openScan(id);
  if (scan == null) return 0;
  const others = scan.fault << 3;
  if (scan.promptEnd != 0) return others;
  const shape = scan.shape;
  if (shape == SHAPE_EMPTY) return others | SCAN_FLAW_EMPTY;
  return others | (shape == SHAPE_BAD ? SCAN_FLAW_SHAPE : SCAN_FLAW_MISSING);
}

/** Returns whether the prompt has images, audio or video. */
export function scanMediaSeen(id: u32): u32 {
  if (ASSERTIONS) assert(isScan(id), 'the scan is one of the thread');
  const scan = openScan(id);
  return scan == null ? 0 : mediaOf(scan).seen;
}

/** Bytes of prompt content, tools and system included: four of them are one estimated token. */
export function scanPromptBytes(id: u32): u32 {
  if (ASSERTIONS) assert(isScan(id), 'the scan is one of the thread');
  const scan = openScan(id);
  return scan == null ? 0 : promptBytes(scan);
}

/**
 * Writes the chain hashes of the prompt to HASHES (u64 each): whole blocks, then the tail if scanTail() says so. The
 * root stands for the pool's seed, the bytes at `name` (the target model) and the cache salt. Behind it come the blocks
 * of tools, of system and of the prompt's content.
 * @returns whole blocks, at most CHAIN_BLOCKS.
 */
export function scanChain(id: u32, name: usize, length: u32): u32 {
  if (ASSERTIONS) assert(isScan(id), 'the scan is one of the thread');
  if (ASSERTIONS) assert(isMapped(name, length), 'the name is in the memory');
  const scan = openScan(id);
  if (scan == null) return 0;
  contentStart();
  let root = hashLink(HASH_SEED, hashBytes(name, length));
  root = hashLink(root, scan.saltHash);
  const blocks = contentChain(scan, root);
  if (ASSERTIONS) assert(fitsChain(blocks), 'the blocks are those of one chain');
  return blocks;
}

/** Notes the beginning of the prompt's text beside the chain of its tokens, which has a block and stands in HASHES. */
export function scanBeginning(id: u32): void {
  if (ASSERTIONS) assert(isScan(id), 'the scan is one of the thread');
  const scan = openScan(id);
  if (scan != null) contentBeginning(scan);
}

/** 1 when a last block of at least one byte, but not whole, follows the whole ones in the chain. */
export function scanTail(id: u32): u32 {
  if (ASSERTIONS) assert(isScan(id), 'the scan is one of the thread');
  const scan = openScan(id);
  return scan != null && contentTail(scan) ? 1 : 0;
}
