import type { ByteRange, RequestScanResult } from '../core/types.js';
import type { OutputClass } from '../scheduling/decision.js';

/** Thinking tokens above which llm-d-router expects a long answer (its plugin outlen-bucket). */
const LONG_BUDGET = 4_000;
/** Bound of the client below which it expects a short one. */
const SHORT_BOUND = 500;
/** Bound on the template's arguments in bytes; longer ones are not read. */
const ARGUMENTS_BYTES_MAX = 16_384;
/** Go's strconv.ParseBool. */
const TRUE: ReadonlySet<unknown> = new Set(['1', 't', 'T', 'true', 'True', 'TRUE']);
const FALSE: ReadonlySet<unknown> = new Set(['0', 'f', 'F', 'false', 'False', 'FALSE']);

/** The body's bytes, in pieces. */
export type BodyChunks = () => readonly Uint8Array[];

type Signs = Pick<RequestScanResult, 'maxOutputTokens' | 'templateRange' | 'toolsRange'>;

/**
 * The expected length of the answer, by the rules of llm-d-router's outlen-bucket. Thinking and tools are read of chats
 * of the OpenAI form only, where both stand in the body.
 * @param chat whether the body is such a chat
 * @param chunks makes the list of the body's pieces, which only few requests need
 */
export function outputClassOf(scan: Signs, chat: boolean, chunks: BodyChunks): OutputClass {
  if (chat) {
    const { thinking, budget } = thinkingOf(scan.templateRange, chunks);
    if (thinking === true) return 'long';
    if (thinking === undefined && budget > LONG_BUDGET) return 'long';
    if (scan.toolsRange !== undefined && hasElement(bytesOf(scan.toolsRange, chunks, 64))) return 'short';
  }
  const bound = scan.maxOutputTokens;
  return bound !== undefined && bound > 0 && bound < SHORT_BOUND ? 'short' : 'unknown';
}

function thinkingOf(range: ByteRange | undefined, chunks: BodyChunks) {
  const none = { thinking: undefined, budget: 0 };
  if (range === undefined || range.end - range.start > ARGUMENTS_BYTES_MAX) return none;
  const given = parsed(bytesOf(range, chunks, ARGUMENTS_BYTES_MAX));
  if (given === null || typeof given !== 'object') return none;
  const { enable_thinking: thinking, thinking_budget: budget } = given as Readonly<Record<string, unknown>>;
  const tokens = typeof budget === 'number' || typeof budget === 'string' ? Number(budget) : 0;
  return { thinking: booleanOf(thinking), budget: Number.isInteger(tokens) ? tokens : 0 };
}

/** The scanner has found valid JSON, so a failure of JSON.parse is no error of the client. */
function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    return undefined;
  }
}

function booleanOf(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value;
  if (typeof value === 'number') return value !== 0;
  if (TRUE.has(value)) return true;
  return FALSE.has(value) ? false : undefined;
}

/** Whether a list, of which these are the first bytes, is not empty. */
function hasElement(list: Uint8Array): boolean {
  return list[0] === 0x5b && list.some((byte) => byte === 0x7b);
}

/** The first `bytesMax` bytes at most of a range of the body. */
export function bytesOf({ start, end }: ByteRange, chunks: BodyChunks, bytesMax: number): Uint8Array {
  const length = Math.min(end - start, bytesMax);
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks()) {
    const from = Math.max(start - at, 0);
    const to = Math.min(start + length - at, chunk.length);
    if (from < to) bytes.set(chunk.subarray(from, to), at + from - start);
    at += chunk.length;
    if (at >= start + length) break;
  }
  return bytes;
}
