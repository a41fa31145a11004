import { headerName, headerValue } from './header-check.js';
import type { OutgoingHeaders } from './hooks.js';

/** What plugins change about the headers of a placed request; undefined = taken out. */
export class PlacedHeaders implements OutgoingHeaders {
  readonly changed = new Map<string, string | undefined>();

  set(name: string, value: string | undefined): void {
    const key = headerName(name);
    this.changed.set(key, value === undefined ? undefined : headerValue(key, value));
  }
}
