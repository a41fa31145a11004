/** Request headers by lower-case name; of duplicates the last one. */
export interface RequestHeaders {
  get(name: string): string | undefined;
}
