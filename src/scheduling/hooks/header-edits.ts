import type { PickedEndpoint } from '../decision.js';
import type { RequestHeaders } from '../request-headers.js';
import type { HookResponse, MetadataSink, OutgoingHeaders } from './hooks.js';

/** RFC 9110 §5.6.2: characters of a header name, in lower case. */
const NAME = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const REFUSED: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding', 'connection', 'host']);

/** The name of a header that a plugin may set, in lower case. @throws RangeError for any other name */
export function headerName(name: string): string {
  const key = name.toLowerCase();
  if (!NAME.test(key) || REFUSED.has(key)) throw new RangeError(`${JSON.stringify(name)} is no header to set`);
  return key;
}

/** The value of header `key`, unchanged. @throws RangeError when it has control characters */
export function headerValue(key: string, value: string): string {
  if (!isPrintable(value)) throw new RangeError(`the value of ${key} has control characters`);
  return value;
}

function isPrintable(value: string): boolean {
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i);
    if ((code < 0x20 && code !== 0x09) || code === 0x7f) return false;
  }
  return true;
}

/** Changes of plugins to the headers of a placed request; undefined = removed. */
export class PlacedHeaders implements OutgoingHeaders {
  readonly changed = new Map<string, string | undefined>();

  set(name: string, value: string | undefined): void {
    const key = headerName(name);
    this.changed.set(key, value === undefined ? undefined : headerValue(key, value));
  }
}

/** What the proxy says of an answer in its head. */
export interface AnswerHead extends Pick<HookResponse, 'status' | 'headers' | 'served'> {
  /** As in HookResponse; absent = the response named the serving endpoint, or nothing. */
  readonly balanced?: boolean;
}

/** The head of an answer, and the headers that plugins add to it. */
export class AnswerHeaders implements HookResponse {
  readonly status: number | undefined;
  readonly headers: RequestHeaders;
  readonly endpoint: PickedEndpoint;
  readonly served: string | undefined;
  readonly balanced: boolean;
  /** Values by lower-case name. */
  readonly added = new Map<string, string>();

  constructor({ status, headers, served, balanced = served !== undefined }: AnswerHead, endpoint: PickedEndpoint) {
    this.balanced = balanced;
    this.status = status;
    this.headers = headers;
    this.served = served;
    this.endpoint = endpoint;
  }

  setHeader(name: string, value: string): void {
    const key = headerName(name);
    this.added.set(key, headerValue(key, value));
  }
}

export type MetadataValue = number | string | boolean;

/** Dynamic metadata of an answer: values by namespace and key. */
export class AnswerMetadata implements MetadataSink {
  readonly namespaces = new Map<string, Map<string, MetadataValue>>();

  set(namespace: string, key: string, value: MetadataValue): void {
    if (namespace === '' || key === '') throw new RangeError('metadata needs a namespace and a key');
    if (typeof value === 'number' && !Number.isFinite(value)) {
      throw new RangeError(`the value of ${namespace}/${key} is no finite number`);
    }
    const values = this.namespaces.get(namespace);
    if (values === undefined) this.namespaces.set(namespace, new Map([[key, value]]));
    else values.set(key, value);
  }
}
