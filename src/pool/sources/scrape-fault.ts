/** Causes of failed scrapes: the label values of the error counter. */
export const SCRAPE_FAULTS = [
  /** No connection: refused, unreachable, TLS handshake. */
  'connect',
  /** No complete page in time. */
  'timeout',
  /** The server closed the connection before the page was complete. */
  'closed',
  /** A status other than 200. */
  'status',
  /** No valid HTTP/1.1, or an encoding that was not asked for. */
  'malformed',
  /** A page or head above its limit. */
  'too large',
  /** The page could not be scanned or its signals not be published. */
  'scan',
] as const;
export type ScrapeFaultKind = (typeof SCRAPE_FAULTS)[number];

/** A failed scrape. The message says what was seen, never more than a short piece of what the server sent. */
export class ScrapeFault extends Error {
  readonly kind: ScrapeFaultKind;
  /** Place of the page as a redirect tells it; undefined = the server does not tell. */
  readonly location: string | undefined;

  constructor(kind: ScrapeFaultKind, message: string, location?: string) {
    super(message);
    this.name = 'ScrapeFault';
    this.kind = kind;
    this.location = location;
  }
}
