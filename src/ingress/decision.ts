import type { PromptTokens } from '../core/token-chain.js';
import { QueuedCharge } from '../flow-control/queued-charge.js';
import type { Dispatch, WaitingLine } from '../flow-control/waiting-line.js';
import type { UnderstoodRequest } from '../request/understand.js';
import type { GateInput, Placement, Rejection, ScheduleInput, Waiting } from '../scheduling/decision.js';
import type { HookRequestRecord } from '../scheduling/hooks/hook-request-record.js';
import type { EndpointPredictions } from '../scheduling/latency-outlook.js';
import type { RequestHeaders } from '../scheduling/request-headers.js';
import { BodyMode } from './codec/process-request.js';
import type { StreamServices } from './exchange.js';

/** A request that is ready to be placed. */
export interface DecisionInput {
  readonly request: UnderstoodRequest;
  readonly headers: RequestHeaders;
  readonly path: string;
  /** Id of the finished scan, or -1. */
  readonly scan: number;
  readonly bodyBytes: number;
  /** Tokens of the prompt; undefined = they are estimated. */
  readonly tokens?: PromptTokens | undefined;
  /** Answers of the prediction servers about endpoints; undefined = none was asked for or given. */
  readonly predictions?: EndpointPredictions | undefined;
  /** The proxy's hint, from whichever message carried it last. */
  readonly subset: readonly string[] | undefined;
  /** The request in the form for hook plugins; undefined = there are none. */
  readonly hookRequest: HookRequestRecord | undefined;
  /** Dispatch of a request that has waited: an endpoint is charged for it already. */
  readonly dispatch?: Dispatch | undefined;
}

/** Admit and schedule one request, and record both. A dispatch that was not used is released. */
export function decide(services: StreamServices, input: DecisionInput): Placement | Rejection | Waiting {
  const { dispatch } = input;
  const { line } = services;
  const outcome = admitAndSchedule(services, input);
  if (dispatch === undefined || line === undefined) return outcome;
  // The ticket of the decision has been replaced.
  line.release(dispatch);
  if (outcome.kind === 'placed') {
    return { ...outcome, charge: new QueuedCharge(outcome.charge, line, dispatch.handle) };
  }
  if (outcome.kind === 'rejected') line.end(dispatch.handle, 0);
  return outcome;
}

function gateOf(line: WaitingLine | undefined, { request, bodyBytes, dispatch }: DecisionInput): GateInput | undefined {
  if (line === undefined) return undefined;
  const queued = line.mustQueue(request.fairnessId, bodyBytes);
  return { waitSlots: line.waitSlots, held: dispatch, blind: !request.stream, queued };
}

function admitAndSchedule(services: StreamServices, input: DecisionInput): Placement | Rejection | Waiting {
  const { request, hookRequest } = input;
  const hint = services.decide.ignoreSubset ? undefined : input.subset;
  const { priority, fairnessId } = request;
  const admitted = services.admission.admit({ priority, fairnessId, subset: hint });
  if (admitted !== 'admitted') return admitted;
  const subset = hookRequest === undefined ? hint : services.plugins?.allow(hookRequest, hint, request);
  if (subset !== undefined && 'kind' in subset) return subset;
  const startedAt = services.now();
  const outcome = services.scheduler.schedule(scheduleInput(input, subset, gateOf(services.line, input)));
  if (outcome.kind === 'waiting') return outcome;
  const seconds = (services.now() - startedAt) / 1_000;
  const { recorder } = services;
  if (outcome.kind === 'rejected') {
    // Without a candidate there was nothing to schedule (llm-d-router counts no attempt either).
    if (outcome.unscheduled !== true) recorder.scheduled(seconds, 'failure', request.targetModel, -1);
    return outcome;
  }
  recorder.scheduled(seconds, 'success', request.targetModel, outcome.endpoints[0]!.slot);
  if (outcome.totalBlocks > 0) recorder.prefix(outcome.matchedBlocks, outcome.totalBlocks, services.blockBytes());
  return outcome;
}

/** A request in the form of the scheduler. @param subset the endpoints that it may use, by address; undefined = all */
export function scheduleInput(
  input: DecisionInput,
  subset: readonly string[] | undefined,
  gate?: GateInput | undefined,
): ScheduleInput {
  const { request, headers, path, scan, tokens, predictions, hookRequest } = input;
  return {
    scan,
    model: request.model,
    targetModel: request.targetModel,
    cacheSalt: request.cacheSalt,
    promptBytes: request.promptBytes,
    tokenIds: request.tokenIds,
    media: request.media,
    hasMedia: request.hasMedia,
    tokens,
    predictions,
    maxOutputTokens: request.maxOutputTokens,
    outputClass: request.outputClass,
    priority: request.priority,
    fairnessId: request.fairnessId,
    subset,
    headers,
    path,
    hookRequest,
    gate,
  };
}

/**
 * Says what will be seen of the answer: only its end, where it comes in one piece or the proxy sends no bodies of
 * answers.
 * @param bodyMode BodyMode of answers
 */
export function expectAnswer(request: UnderstoodRequest, { charge }: Placement, bodyMode: number): void {
  const isSeen = request.stream && bodyMode !== BodyMode.none;
  charge.expects?.(isSeen ? 'stream' : 'end', request.maxOutputTokens);
}
