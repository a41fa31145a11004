import { AnswerForm } from '../core/types.js';

const LINE_FEED = 0x0a;
const FIELD = Buffer.from('event:');
/** Bytes of a line that are kept when a chunk cuts it: names of events are shorter. */
const LINE_BYTES_MAX = 128;

/** Names of the events with a piece of output: text, reasoning, arguments of a tool. */
const OUTPUT = { [AnswerForm.messages]: /^content_block_delta$/, [AnswerForm.responses]: /^response\..*\.delta$/ };

/**
 * Counts the events with output in a stream whose events have names. Its other events are no tokens: beginnings, ends
 * and pings.
 */
export class DeltaEvents {
  readonly #output: RegExp;
  /** Beginning of a line whose end has not come. */
  #begun: Buffer = Buffer.alloc(0);
  /** Whether the present line cannot be a name, or is too long for one. */
  #skips = false;
  #count = 0;

  private constructor(output: RegExp) {
    this.#output = output;
  }

  /** Counter for a stream of this form; undefined = each of its events has output. */
  static of(form: AnswerForm): DeltaEvents | undefined {
    const output = (OUTPUT as Readonly<Partial<Record<AnswerForm, RegExp>>>)[form];
    return output && new DeltaEvents(output);
  }

  get count(): number {
    return this.#count;
  }

  /** Takes the next bytes of the stream. */
  feed(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    for (let at = 0; at < bytes.length; ) {
      const feed = bytes.indexOf(LINE_FEED, at);
      const end = feed < 0 ? bytes.length : feed;
      if (!this.#skips) this.#take(bytes, at, end);
      if (feed >= 0) this.#endLine();
      at = end + 1;
    }
  }

  /** Keeps the bytes of a line that may be a name. */
  #take(bytes: Buffer, from: number, to: number): void {
    // Most lines are data: nothing of them is copied.
    const isName = this.#begun.length > 0 || bytes[from] === FIELD[0] || from === to;
    this.#skips = !isName || this.#begun.length + to - from > LINE_BYTES_MAX;
    if (!this.#skips) this.#begun = Buffer.concat([this.#begun, bytes.subarray(from, to)]);
  }

  #endLine(): void {
    const isName = !this.#skips && this.#begun.subarray(0, FIELD.length).equals(FIELD);
    if (isName && this.#output.test(this.#begun.toString('latin1', FIELD.length).trim())) this.#count++;
    this.#begun = Buffer.alloc(0);
    this.#skips = false;
  }
}
