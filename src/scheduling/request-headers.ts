/** Request headers by lower-case name; the last one of duplicates counts. */
export interface RequestHeaders {
  get(name: string): string | undefined;
}
