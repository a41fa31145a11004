import type { Placement, Rejection } from '../scheduling/decision.js';
import { prefers } from '../scheduling/preferences.js';
import type { RequestHeaders } from '../scheduling/request-headers.js';
import { encodeImmediateReply, setHeader } from './codec/process-response.js';

/** Preference of a request that asks for its endpoint and is not to be sent there (llm-d-router's). */
const RESERVE = 'reserve-endpoint';

/** Headers that a sent request would have brought to the model server, where plugins set them. */
const ROUTING_HEADERS = [
  'x-prefiller-host-port',
  'x-encoder-hosts-ports',
  'x-data-parallel-host-port',
  'x-kv-cache-source-host-port',
];

/**
 * Whether a request asks for its endpoint alone; such a request must never be sent there.
 * @param served whether the configuration answers such requests. Otherwise the preference is one that the picker
 *   does not know, and goes for nothing (RFC 7240, section 2).
 */
export function isReservation(headers: RequestHeaders, served: boolean): boolean {
  return served && prefers(headers, RESERVE);
}

/** Refusal of a request that asks for its endpoint alone; undefined = it can be answered. */
export function refusedReservation(hasBody: boolean): Rejection | undefined {
  if (hasBody) return undefined;
  return { kind: 'rejected', code: 'BadRequest', message: `Prefer: ${RESERVE} needs a body`, reason: undefined };
}

/** The endpoint of a request as the proxy's answer to its client. */
export function reservationReply({ endpoints, headers }: Placement): Buffer {
  const routing = ROUTING_HEADERS.flatMap((name) => {
    const value = headers.get(name);
    return value === undefined ? [] : [setHeader(name, value)];
  });
  const reserved = [
    setHeader('x-llm-d-reserved-host-port', endpoints[0]!.address),
    setHeader('preference-applied', RESERVE),
  ];
  return encodeImmediateReply(204, [...reserved, ...routing], '');
}
