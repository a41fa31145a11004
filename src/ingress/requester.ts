import { DEFAULT_FAIRNESS_ID, namedFairnessId, requestPath } from '../request/control-headers.js';
import { type Requester, requesterOf } from '../request/understand.js';
import type { HookRequestRecord } from '../scheduling/hooks/hook-request.js';
import type { RequestHeaders } from '../scheduling/request-headers.js';
import type { StreamServices } from './stream-services.js';

/** Who asks, and the request as hook plugins know it from then on. */
export interface KnownRequester extends Requester {
  /** Undefined when there are no hook plugins. */
  readonly hosted: HookRequestRecord | undefined;
}

/** Priority and flow of a request; header processors of hook plugins run here. */
export function identify(services: StreamServices, headers: RequestHeaders): KnownRequester {
  const requester = requesterOf(headers, services.rules);
  if (services.plugins === undefined) return { ...requester, hosted: undefined };
  const { priority } = requester;
  const hosted = services.plugins.begin(headers, requestPath(headers), priority, namedFairnessId(headers));
  return { priority, fairnessId: hosted.fairnessId || DEFAULT_FAIRNESS_ID, hosted };
}
