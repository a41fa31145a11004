import type { RequestHeaders } from './request-headers.js';

/** Whether the header `Prefer` names a preference (RFC 7240), alone or among others. */
export function prefers(headers: RequestHeaders, preference: string): boolean {
  const named = headers.get('prefer');
  if (named === undefined) return false;
  return named.split(',').some((each) => each.split(';')[0]!.trim().toLowerCase() === preference);
}
