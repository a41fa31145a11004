import type { Endpoint } from '../../contract/endpoint.js';

/** Label with the stage of a request that an endpoint serves. */
export const ROLE_LABEL = 'llm-d.ai/role';

/** An endpoint slot and its endpoint. */
export interface PoolSlot {
  readonly slot: number;
  readonly endpoint: Endpoint;
}

/** Slots by the half of a request that their endpoints serve; an endpoint that serves both is in both. */
export interface PoolStages {
  readonly prefill: readonly number[];
  readonly decode: readonly number[];
}

/** Values of the role label by stage (as in llm-d-router); endpoints with other roles take no part. */
const PREFILL = new Set(['prefill', 'encode-prefill', 'prefill-decode', 'both', 'encode-prefill-decode']);
const DECODE = new Set([undefined, 'decode', 'prefill-decode', 'both', 'encode-prefill-decode']);

export function poolStages(pool: readonly PoolSlot[]): PoolStages {
  const slots = (roles: ReadonlySet<string | undefined>) =>
    pool.filter(({ endpoint }) => roles.has(endpoint.labels[ROLE_LABEL])).map(({ slot }) => slot);
  return { prefill: slots(PREFILL), decode: slots(DECODE) };
}
