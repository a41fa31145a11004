import type { PickedEndpoint } from '../decision.js';

/** Headers that tell llm-d's sidecar on the decode endpoint the endpoints of the other stages, and the picked rank. */
const PREFILL_HEADER = 'x-prefiller-host-port';
const ENCODE_HEADER = 'x-encoder-hosts-ports';
export const RANK_HEADER = 'x-data-parallel-host-port';

/**
 * Headers that name the endpoints of the prefill and encode stages. Without a stage its header is removed, because a
 * client must not choose the sidecar's targets.
 */
export function stageHeaders(
  prefill: readonly PickedEndpoint[] | undefined,
  encode: readonly PickedEndpoint[] | undefined,
): ReadonlyMap<string, string | undefined> {
  return new Map([
    [PREFILL_HEADER, prefill?.[0]?.address],
    [ENCODE_HEADER, encode?.map(({ address }) => address).join(',')],
  ]);
}
