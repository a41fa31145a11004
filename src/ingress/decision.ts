import type { PromptTokens } from '../core/token-chain.js';
import { requestPath } from '../request/control-headers.js';
import type { UnderstoodRequest } from '../request/understand.js';
import type { HostedRequest } from '../scheduling/host/hosted-request.js';
import type { Placement, Rejection, RequestHeaders } from '../scheduling/types.js';
import type { StreamServices } from './stream-services.js';

/** A request that is ready to be placed. */
export interface DecisionInput {
  readonly request: UnderstoodRequest;
  readonly headers: RequestHeaders;
  /** Id of the finished scan, or -1. */
  readonly scan: number;
  /** Tokens of the prompt; undefined = they are estimated. */
  readonly tokens?: PromptTokens | undefined;
  /** The proxy's hint, from whichever message carried it last. */
  readonly subset: readonly string[] | undefined;
  /** The request as host plugins know it; undefined when there are none. */
  readonly hosted: HostedRequest | undefined;
}

/** Admit and schedule one request, and record both. */
export function decide(services: StreamServices, input: DecisionInput): Placement | Rejection {
  const { request, headers, hosted } = input;
  const hint = services.ignoreSubset ? undefined : input.subset;
  const { priority, fairnessId } = request;
  const admitted = services.admission.admit({ priority, fairnessId, subset: hint });
  if (admitted !== 'admitted') return admitted;
  const subset = hosted === undefined ? hint : services.plugins?.allow(hosted, hint);
  if (subset !== undefined && 'kind' in subset) return subset;
  const startedAt = services.now();
  const outcome = services.scheduler.schedule({
    scan: input.scan,
    model: request.model,
    targetModel: request.targetModel,
    cacheSalt: request.cacheSalt,
    promptBytes: request.promptBytes,
    hasMedia: request.hasMedia,
    tokens: input.tokens,
    maxOutputTokens: request.maxOutputTokens,
    priority,
    fairnessId,
    subset,
    headers,
    path: requestPath(headers),
    hosted,
  });
  const seconds = (services.now() - startedAt) / 1_000;
  const { recorder } = services;
  if (outcome.kind === 'rejected') {
    // Without a candidate there was nothing to schedule (the incumbent counts no attempt either).
    if (outcome.reason !== 'rejected-no-endpoints') recorder.scheduled(seconds, 'failure', request.targetModel, -1);
    return outcome;
  }
  recorder.scheduled(seconds, 'success', request.targetModel, outcome.endpoints[0]!.slot);
  if (outcome.totalBlocks > 0) recorder.prefix(outcome.matchedBlocks, outcome.totalBlocks, services.blockBytes());
  return outcome;
}
