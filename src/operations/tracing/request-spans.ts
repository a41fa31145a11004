import { PromptKind } from '../../core/types.js';
import type { TracedDecision, TracedRequest } from '../../ingress/tracing/trace-record.js';
import type { ShownDecision, ShownEndpoint } from '../why/request-story.js';
import { type AttributeValue, double, type Span, SpanKind } from './span.js';

/** Longest text of an attribute, in characters. Clients make up names of models, paths and ids. */
const TEXT_MAX = 256;
/** Endpoints that `pick_endpoints` names, as in llm-d-router. */
const TOP_ENDPOINTS = 5;

/** Values of `gen_ai.operation.name` by the form of the prompt; the others run no model operation of that list. */
const OPERATIONS: ReadonlyMap<PromptKind, string> = new Map<PromptKind, string>([
  [PromptKind.completions, 'text_completion'],
  [PromptKind.chat, 'chat'],
  [PromptKind.responses, 'chat'],
  [PromptKind.conversations, 'chat'],
  [PromptKind.messages, 'chat'],
  [PromptKind.embeddings, 'embeddings'],
  [PromptKind.tokens, 'text_completion'],
  [PromptKind.sglang, 'text_completion'],
  [PromptKind.engine, 'text_completion'],
]);

/** Attributes, without undefined ones and with long texts cut. */
type Draft = readonly (readonly [string, AttributeValue | undefined])[];

function attributes(draft: Draft): Span['attributes'] {
  const known: [string, AttributeValue][] = [];
  for (const [name, value] of draft) {
    if (value === undefined || value === '') continue;
    known.push([name, typeof value === 'string' ? value.slice(0, TEXT_MAX) : value]);
  }
  return known;
}

/**
 * Spans of a request: the request itself, its placement, its waits and its answer. Names and attributes are
 * llm-d-router's.
 */
export function requestSpans(request: TracedRequest, poolName: string, nextId: () => string): Span[] {
  const spans: Span[] = [
    rootSpan(request, poolName),
    child(request, request.spanId, {
      spanId: request.orchestrationId,
      name: 'gateway.request_orchestration',
      kind: SpanKind.server,
      startMs: request.understoodMs ?? request.startMs,
      endMs: request.answeredMs ?? request.endMs,
      attributes: attributes([
        ['target_model', request.targetModel],
        ['request_prio', request.priority],
      ]),
      error: request.rejection?.code,
    }),
  ];
  const add = (
    parentId: string,
    name: string,
    startMs: number | undefined,
    endMs: number | undefined,
    draft: Draft,
  ) => {
    if (startMs === undefined) return;
    const timed = { startMs, endMs: endMs ?? request.endMs, name, kind: SpanKind.internal };
    spans.push(
      child(request, parentId, { spanId: nextId(), ...timed, attributes: attributes(draft), error: undefined }),
    );
  };
  if (request.preparedMs !== undefined) {
    add(request.orchestrationId, 'prepare_request', request.understoodMs, request.preparedMs, []);
  }
  add(request.orchestrationId, 'flow_control_wait', request.queuedMs, request.dequeuedMs, [
    ['pointsman.flow_control.outcome', request.queueOutcome],
    ['pointsman.fairness_id', request.fairnessId],
    ['request_prio', request.priority],
  ]);
  add(request.spanId, 'gateway.response', request.headMs, request.answerEndMs, [
    ['http.response.status_code', request.status],
    ['http.response.body.size', request.answerBytes],
  ]);
  return spans;
}

function child(
  { traceId }: Pick<TracedRequest, 'traceId'>,
  parentId: string,
  span: Omit<Span, 'traceId' | 'parentId' | 'hasRemoteParent'>,
): Span {
  return { traceId, parentId, hasRemoteParent: false, ...span };
}

function rootSpan(request: TracedRequest, poolName: string): Span {
  const { traceId, spanId, parentId, startMs, endMs, usage, rejection } = request;
  const firstTokenMs = request.firstByteMs === undefined ? undefined : request.firstByteMs - startMs;
  const status = rejection?.status ?? request.status;
  return {
    ...{ traceId, spanId, parentId, startMs, endMs },
    hasRemoteParent: parentId !== undefined,
    name: 'gateway.request',
    kind: SpanKind.server,
    attributes: attributes([
      ['gen_ai.operation.name', request.prompt === undefined ? undefined : OPERATIONS.get(request.prompt)],
      ['gen_ai.request.id', request.requestId],
      ['gen_ai.request.model', request.model],
      ['gen_ai.request.max_tokens', request.maxOutputTokens],
      ['gen_ai.response.model', request.status === undefined ? undefined : request.targetModel],
      ['gen_ai.usage.input_tokens', counted(usage?.promptTokens)],
      ['gen_ai.usage.output_tokens', counted(usage?.completionTokens)],
      ['gen_ai.usage.cache_read.input_tokens', counted(usage?.cachedTokens)],
      // Name and unit (seconds) of vLLM's own spans.
      ['gen_ai.latency.time_to_first_token', firstTokenMs === undefined ? undefined : double(firstTokenMs / 1_000)],
      ['http.request.method', request.method],
      // A query may hold credentials.
      ['url.path', request.path?.split('?', 1)[0]],
      ['http.request.body.size', request.bodyBytes],
      ['http.response.status_code', status],
      ['error.type', errorOf(request)],
      ['pointsman.pool', poolName],
      ['pointsman.endpoint', request.endpoint],
      ['pointsman.endpoint.address', request.address],
      ['pointsman.fairness_id', request.fairnessId],
      ['pointsman.stream', request.understoodMs === undefined ? undefined : request.stream],
      ['pointsman.expected_cached_tokens', request.matchedTokens],
      ['pointsman.dropped_reason', rejection?.reason],
      ['pointsman.end', request.end],
    ]),
    error: errorOf(request),
  };
}

/**
 * Failure as a short name; undefined = there was none. A client that leaves is no failure, nor is a 4xx of the model
 * server.
 */
function errorOf({ end, rejection, status }: TracedRequest): string | undefined {
  if (rejection !== undefined) return rejection.code;
  if (end === 'evicted' || end === 'failed') return end;
  return status !== undefined && status >= 500 ? String(status) : undefined;
}

function counted(tokens: number | undefined): number | undefined {
  return tokens === undefined || tokens < 0 ? undefined : tokens;
}

/**
 * Spans of the decisions of one call: one for each profile. Below it are those of its filters, scorers and picker, as
 * far as they are still in the decision log. The core makes all decisions of a request in one call, so they share its
 * times.
 */
export function decisionSpans(
  traced: TracedDecision,
  decisions: readonly ShownDecision[],
  nextId: () => string,
): Span[] {
  return decisions.flatMap((decision) => {
    const profileId = nextId();
    const { traceId, startMs, endMs } = traced;
    const common = { traceId, startMs, endMs, kind: SpanKind.internal, hasRemoteParent: false, error: undefined };
    const failed = decision.status === 'decided' || decision.status === 'waiting' ? undefined : decision.status;
    const profile: Span = {
      ...common,
      spanId: profileId,
      parentId: traced.parentId,
      name: 'run_scheduler_profile',
      attributes: attributes([['llm_d.epp.scheduling.profile.name', decision.profile]]),
      error: failed,
    };
    const below: AddSpan = (name, draft, parentId = profileId) => {
      return { ...common, spanId: nextId(), parentId, name, attributes: attributes(draft) };
    };
    return [profile, ...stageSpans(traced, decision, below)];
  });
}

type AddSpan = (name: string, draft: Draft, parentId?: string) => Span;

function stageSpans({ requestId, model }: TracedDecision, decision: ShownDecision, span: AddSpan): Span[] {
  const request: Draft = [
    ['gen_ai.request.id', requestId],
    ['gen_ai.request.model', model],
  ];
  const { endpoints, candidates } = decision;
  const all = endpoints === null ? undefined : endpoints.length + decision.omittedEndpoints;
  const filtering = span('filter_endpoints', [
    ['llm_d.epp.filter.candidate_endpoints', all],
    ['llm_d.epp.filter.filtered_endpoints', candidates],
    ...request,
  ]);
  const kept = (endpoints ?? []).filter(({ removedBy }) => removedBy === null);
  const picking = span('pick_endpoints', [
    ['llm_d.epp.picker.candidate_endpoints', candidates],
    ...topEndpoints(kept),
    ['pointsman.endpoint', decision.endpoint ?? undefined],
    ['pointsman.tie_break', decision.tieBreak?.by],
    ...request,
  ]);
  return [filtering, ...scoringSpans(kept, request, span), picking];
}

function scoringSpans(kept: readonly ShownEndpoint[], request: Draft, span: AddSpan): Span[] {
  const scorers = kept[0]?.scores ?? [];
  if (scorers.length === 0) return [];
  const scoring = span('llm_d.epp.scoring', [
    ['llm_d.epp.scorer.count', scorers.length],
    ['llm_d.epp.scoring.candidate_endpoints', kept.length],
    ...request,
  ]);
  const each = scorers.map(({ scorer, weight }, i) => {
    const scores = kept.map((endpoint) => endpoint.scores[i]?.score ?? null).filter((score) => score !== null);
    const sum = scores.reduce((total, score) => total + score, 0);
    return span(
      `llm_d.epp.scorer.${scorer}`,
      [
        ['llm_d.epp.scorer.name', scorer],
        ['llm_d.epp.scorer.weight', double(weight)],
        ['llm_d.epp.scorer.candidate_endpoints', kept.length],
        ['llm_d.epp.scorer.score.max', scores.length === 0 ? undefined : double(Math.max(...scores))],
        ['llm_d.epp.scorer.score.avg', scores.length === 0 ? undefined : double(sum / scores.length)],
      ],
      scoring.spanId,
    );
  });
  return [scoring, ...each];
}

function topEndpoints(kept: readonly ShownEndpoint[]): Draft {
  const top = [...kept].sort((a, b) => (b.score ?? 0) - (a.score ?? 0)).slice(0, TOP_ENDPOINTS);
  if (top.length === 0) return [];
  return [
    ['llm_d.epp.picker.top_endpoints', top.map(({ endpoint }) => endpoint)],
    ['llm_d.epp.picker.top_scores', top.map(({ score }) => score ?? 0)],
  ];
}
