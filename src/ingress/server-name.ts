import { PROXY_STATUSES } from '../response/response-phase.js';
import type { Placement } from '../scheduling/decision.js';

/** The fields of an answer's head that name the serving endpoint. */
export interface ServedHead {
  /** HTTP status; undefined when the proxy names none. */
  readonly status: number | undefined;
  /** `ip:port` of the endpoint that answered, when the proxy reports it. */
  readonly served: string | undefined;
}

/**
 * Name of the endpoint that served an answer: that which the proxy reports, else the only pick. Of an endpoint that was
 * no pick it is the address. Undefined = it is not known: the proxy may have answered itself, or have chosen from
 * several.
 */
export function serverName({ endpoints }: Placement, { status, served }: ServedHead): string | undefined {
  if (served !== undefined) return endpoints.find(({ address }) => address === served)?.endpoint.name ?? served;
  const answeredItself = status === undefined || PROXY_STATUSES.has(status);
  return endpoints.length === 1 && !answeredItself ? endpoints[0]!.endpoint.name : undefined;
}
