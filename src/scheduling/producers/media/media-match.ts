/** Number of a request's media that each endpoint has probably encoded. */
export interface MediaMatch {
  /** Distinct media of the request, 1 or more. */
  readonly total: number;
  /** Media that the endpoint in a slot holds; absent = none. */
  readonly matched: ReadonlyMap<number, number>;
}

/** Attribute with the match of the producer of this name. */
export function mediaMatchAttribute(producer: string): string {
  return `media match ${producer}`;
}
