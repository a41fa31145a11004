import { ScrapeFault } from './scrape-fault.js';

/** Framing of a response's body. */
export type BodyFraming = 'length' | 'chunked' | 'close' | 'none';

export interface ResponseHead {
  readonly status: number;
  readonly framing: BodyFraming;
  /** Bytes of the body where `framing` is `length`, else 0. */
  readonly length: number;
  /** Whether the connection may carry another request after this response. */
  readonly keepAlive: boolean;
  /** Field `location`; undefined = there is none. */
  readonly location: string | undefined;
}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const FIELD = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/;

/**
 * Reads the lines of a response head (RFC 9112 §2–§6), without the empty line. Strict: what could be read in two ways
 * is refused (folded lines, two lengths, a length beside a transfer coding). Throws ScrapeFault.
 */
export function readHead(lines: readonly string[]): ResponseHead {
  const status = STATUS_LINE.exec(lines[0] ?? '');
  if (status === null) throw malformed(`status line "${excerpt(lines[0] ?? '')}"`);
  let length: number | undefined;
  let chunked = false;
  let location: string | undefined;
  let keepAlive = status[1] === '1';
  for (let i = 1; i < lines.length; i += 1) {
    const field = FIELD.exec(lines[i]!);
    if (field === null) throw malformed(`header line "${excerpt(lines[i]!)}"`);
    const value = field[2]!.trimEnd();
    switch (field[1]!.toLowerCase()) {
      case 'content-length':
        length = readLength(value, length);
        break;
      case 'transfer-encoding':
        if (chunked || value.toLowerCase() !== 'chunked') throw malformed(`transfer-encoding "${excerpt(value)}"`);
        chunked = true;
        break;
      case 'content-encoding':
        if (value.toLowerCase() !== 'identity')
          throw malformed(`content-encoding "${excerpt(value)}" was not asked for`);
        break;
      case 'location':
        location = value;
        break;
      case 'connection':
        for (const option of value.toLowerCase().split(',')) {
          if (option.trim() === 'close') keepAlive = false;
          else if (option.trim() === 'keep-alive' && status[1] === '0') keepAlive = true;
        }
        break;
    }
  }
  if (chunked && length !== undefined) throw malformed('content-length beside transfer-encoding');
  const code = Number(status[2]);
  if (code < 200 || code === 204 || code === 304)
    return { status: code, framing: 'none', length: 0, keepAlive, location };
  if (chunked) return { status: code, framing: 'chunked', length: 0, keepAlive, location };
  if (length === undefined) return { status: code, framing: 'close', length: 0, keepAlive: false, location };
  return { status: code, framing: 'length', length, keepAlive, location };
}

function readLength(value: string, before: number | undefined): number {
  if (!/^[0-9]{1,15}$/.test(value)) throw malformed(`content-length "${excerpt(value)}"`);
  const length = Number(value);
  if (before !== undefined && before !== length) throw malformed('two different content-lengths');
  return length;
}

export function malformed(what: string): ScrapeFault {
  return new ScrapeFault('malformed', `the server's answer is not HTTP/1.1 as expected: ${what}`);
}

export function excerpt(text: string): string {
  return text.length <= 60 ? text : `${text.slice(0, 60)}…`;
}
