import type { PickedEndpoint, RequestHeaders } from '../types.js';
import type { HostResponse } from './hooks.js';

/** RFC 9110 §5.6.2: characters of a header name, in lower case. */
const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const REFUSED: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding', 'connection', 'host']);

/** The head of an answer, and the headers that plugins add to it. */
export class AnswerHeaders implements HostResponse {
  readonly status: number | undefined;
  readonly headers: RequestHeaders;
  readonly endpoint: PickedEndpoint;
  readonly served: string | undefined;
  /** Values by lower-case name. */
  readonly added = new Map<string, string>();

  constructor(
    { status, headers, served }: Pick<HostResponse, 'status' | 'headers' | 'served'>,
    endpoint: PickedEndpoint,
  ) {
    this.status = status;
    this.headers = headers;
    this.served = served;
    this.endpoint = endpoint;
  }

  setHeader(name: string, value: string): void {
    const key = name.toLowerCase();
    if (!NAME.test(key) || REFUSED.has(key)) throw new RangeError(`${JSON.stringify(name)} is no header to set`);
    if (!isPrintable(value)) throw new RangeError(`the value of ${key} has control characters`);
    this.added.set(key, value);
  }
}

function isPrintable(value: string): boolean {
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i);
    if ((code < 0x20 && code !== 0x09) || code === 0x7f) return false;
  }
  return true;
}
