import type { Endpoint } from '../../pool/endpoint.js';

/** Label that says which stage of a request an endpoint serves. */
export const ROLE_LABEL = 'llm-d.ai/role';

/** An endpoint slot with who sits in it. */
export interface PoolSlot {
  readonly slot: number;
  readonly endpoint: Endpoint;
}

/** Slots of the endpoints that do one half of a request each; one that does both is in both. */
export interface PoolStages {
  readonly prefill: readonly number[];
  readonly decode: readonly number[];
}

/** What an endpoint does, by the value of its role label (llm-d-router); other roles take no part. */
const PREFILL = new Set(['prefill', 'encode-prefill', 'prefill-decode', 'both', 'encode-prefill-decode']);
const DECODE = new Set([undefined, 'decode', 'prefill-decode', 'both', 'encode-prefill-decode']);

export function poolStages(pool: readonly PoolSlot[]): PoolStages {
  const slots = (roles: ReadonlySet<string | undefined>) =>
    pool.filter(({ endpoint }) => roles.has(endpoint.labels[ROLE_LABEL])).map(({ slot }) => slot);
  return { prefill: slots(PREFILL), decode: slots(DECODE) };
}
