/** How many of a request's media each endpoint is believed to have encoded. */
export interface MediaMatch {
  /** Different media of the request, 1 or more. */
  readonly total: number;
  /** Media that the endpoint in a slot holds; absent = none. */
  readonly matched: ReadonlyMap<number, number>;
}

/** Attribute under which the producer of this name leaves its match. */
export function mediaMatchAttribute(producer: string): string {
  return `media match ${producer}`;
}
