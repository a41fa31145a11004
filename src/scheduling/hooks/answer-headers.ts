import type { PickedEndpoint } from '../decision.js';
import type { RequestHeaders } from '../request-headers.js';
import { headerName, headerValue } from './header-check.js';
import type { HookResponse } from './hooks.js';

/** The head of an answer, and the headers that plugins add to it. */
export class AnswerHeaders implements HookResponse {
  readonly status: number | undefined;
  readonly headers: RequestHeaders;
  readonly endpoint: PickedEndpoint;
  readonly served: string | undefined;
  /** Values by lower-case name. */
  readonly added = new Map<string, string>();

  constructor(
    { status, headers, served }: Pick<HookResponse, 'status' | 'headers' | 'served'>,
    endpoint: PickedEndpoint,
  ) {
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
