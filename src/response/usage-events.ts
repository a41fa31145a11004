const NO_BYTES = new Uint8Array(0);
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
/** Longest event that is held back while it may be the usage of the stream, in bytes. */
const HELD_BYTES_MAX = 64 * 1024;

/** Beginning of an event with a chunk of a completion, whole or cut. */
const CHUNK = /^data:[ \t]*\{/;
const CHUNK_SO_FAR = /^(d|da|dat|data|data:[ \t]*)?$/;
/** Output: an event with a choice is never the usage of the stream alone. */
const CHOICE = /"choices"\s*:\s*\[\s*[^\s\]]/;

/** `more`: the event is not whole, and may still be the usage of the stream. */
type Verdict = 'pass' | 'drop' | 'more';

/**
 * Takes the event that holds nothing but the usage out of a stream of server-sent events: the picker asked for it, the
 * client did not. All other bytes pass unchanged and in order. A split event is held back only until its bytes differ
 * from it.
 */
export class UsageEvents {
  /** Beginning of an event. */
  #held: Buffer = Buffer.alloc(0);
  /** Whether the rest of the present event passes. */
  #passes = false;

  /**
   * @param end the stream ends with this chunk, which may be empty
   * @returns the bytes that go on: the same object when all of them do
   */
  feed(chunk: Uint8Array, end: boolean): Uint8Array {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    const isNew = this.#held.length === 0;
    const data = isNew ? bytes : Buffer.concat([this.#held, bytes]);
    this.#held = Buffer.alloc(0);
    const kept: Buffer[] = [];
    let start = 0;
    /** Beginning of the bytes that pass and are not in `kept`. */
    let from = 0;
    for (;;) {
      const whole = eventEnd(data, start, end);
      const verdict = this.#passes ? 'pass' : verdictOf(data, start, whole ?? data.length, whole !== undefined);
      if (whole === undefined) {
        const holds = verdict === 'more' && data.length - start <= HELD_BYTES_MAX;
        this.#passes = !holds && start < data.length;
        if (holds) this.#held = Buffer.from(data.subarray(start));
        const until = holds ? start : data.length;
        if (from === 0 && until === data.length && isNew) return chunk;
        if (from < until) kept.push(data.subarray(from, until));
        return kept.length === 0 ? NO_BYTES : Buffer.concat(kept);
      }
      this.#passes = false;
      if (verdict === 'drop') {
        if (from < start) kept.push(data.subarray(from, start));
        from = whole;
      }
      start = whole;
    }
  }
}

/**
 * Position behind the empty line that ends the event at `start`; undefined = it has not come, or there is no event.
 * @param isLast nothing comes behind the data
 */
function eventEnd(data: Buffer, start: number, isLast: boolean): number | undefined {
  if (start === data.length) return undefined;
  for (let line = start; ; ) {
    const feed = data.indexOf(LINE_FEED, line);
    if (feed < 0) return isLast ? data.length : undefined;
    if (feed === line || (feed === line + 1 && data[line] === CARRIAGE_RETURN)) return feed + 1;
    line = feed + 1;
  }
}

function verdictOf(data: Buffer, start: number, end: number, isWhole: boolean): Verdict {
  const text = data.toString('utf8', start, Math.min(end, start + HELD_BYTES_MAX));
  if (!CHUNK.test(text)) return !isWhole && CHUNK_SO_FAR.test(text) ? 'more' : 'pass';
  if (CHOICE.test(text)) return 'pass';
  if (!isWhole) return 'more';
  return isUsageAlone(text.slice(text.indexOf('{'))) ? 'drop' : 'pass';
}

function isUsageAlone(document: string): boolean {
  let chunk: { readonly choices?: unknown; readonly usage?: unknown };
  try {
    chunk = JSON.parse(document) as typeof chunk;
  } catch {
    return false;
  }
  const { choices, usage } = chunk;
  return Array.isArray(choices) && choices.length === 0 && typeof usage === 'object' && usage !== null;
}
