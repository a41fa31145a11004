// Every metric that is counted in shared memory, with name, labels, buckets and cells. Names, labels and buckets are
// those of llm-d-router, so that its dashboards and alerts keep working.
import {
  counter,
  type Draft,
  gauge,
  histogram,
  keep,
  kind,
  latest,
  older,
  type SeriesKind,
  schedulingTimes,
} from './metric-kind.js';
import { enqueueKind, queueEndKind, queueKind, queueTotalKind, refusalKind } from './queue-kinds.js';

// Upper bounds of the histograms' buckets; llm-d-router's, where the metric is. 32778 is its slip for 32768: it stays,
// because dashboards select buckets by their text.

const durations = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60, 120, 180, 240,
  300, 360, 480, 600, 900, 1200, 1800, 2700, 3600,
];
const tokenCounts = [
  1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32778, 65536, 131072, 262144, 524288, 1048576,
];
const timesPerToken = [
  0.0005, 0.00205, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.125, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 2,
];
const predictedTimesPerToken = [
  0.0005, 0.00205, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.125, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.5, 2, 3,
  4.5, 6, 12, 18, 24, 30, 36, 48, 60, 90, 120, 180, 270, 360,
];
const predictionTimes = [0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];
/** Observed by predicted, 1 = right. Even steps of the logarithm, finer around 1. */
const accuracies = [0.1, 0.25, 0.5, 0.67, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.25, 1.5, 2, 4, 10];
const normalisedTimes = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];
const interTokenTimes = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2];
const requestSizes = Array.from({ length: 25 }, (_, power) => 64 * 2 ** power);
const responseSizes = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32778, 65536];
const requestProcessingTimes = [
  0.0005, 0.001, 0.002, 0.005, 0.01, 0.015, 0.025, 0.04, 0.06, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
const responseProcessingTimes = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
];
const streamTimes = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600];
const ratios = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];
const hitSizes = [0, ...Array.from({ length: 13 }, (_, power) => 16 * 2 ** power)];

const byModel = keep('model_name', 'target_model_name');

const FIRST_TOKEN_HELP =
  'Seconds from the arrival of a request to the first byte of its answer; the whole duration when it is not streamed.';
const firstTokenBuckets = durations.slice(0, 24);

export const requestKind = kind(1, ['fairness_id', 'model_name', 'priority', 'target_model_name'], {
  total: counter(
    'llm_d_epp_request_total',
    'Requests that were given a destination.',
    older('inference_objective_request_total', keep('model_name', 'priority', 'target_model_name')),
  ),
  running: gauge(
    'llm_d_epp_request_running',
    'Requests that were given a destination and whose answer has not ended.',
    older('inference_objective_running_requests', keep('model_name')),
  ),
  requestBytes: histogram(
    'llm_d_epp_request_size_bytes',
    'Bytes of request bodies as they are sent on.',
    requestSizes,
    older('inference_objective_request_sizes', byModel),
  ),
  responseBytes: histogram(
    'llm_d_epp_response_size_bytes',
    'Bytes of response bodies.',
    responseSizes,
    older('inference_objective_response_sizes', byModel),
  ),
  duration: histogram(
    'llm_d_epp_request_duration_seconds',
    'Seconds from the arrival of a request to the end of its answer.',
    durations,
    older('inference_objective_request_duration_seconds', byModel),
  ),
  inputTokens: histogram(
    'llm_d_epp_request_input_tokens',
    'Prompt tokens per request, as the model server reported them.',
    tokenCounts,
    older('inference_objective_input_tokens', byModel),
  ),
  outputTokens: histogram(
    'llm_d_epp_request_output_tokens',
    'Output tokens per request, as the model server reported them.',
    tokenCounts.slice(0, 12),
    older('inference_objective_output_tokens', byModel),
  ),
  cachedTokens: histogram(
    'llm_d_epp_request_cached_tokens',
    'Prompt tokens per request that the model server took from its cache, as it reported them.',
    tokenCounts,
    older('inference_objective_prompt_cached_tokens', byModel),
  ),
  estimatedTokens: counter(
    'pointsman_request_estimated_output_tokens_total',
    'Output tokens of streams that ended without usage, counted from their chunks; no part of the reported ones.',
  ),
  normalisedTime: histogram(
    'llm_d_epp_request_ntpot_seconds',
    'Duration of a request divided by its output tokens.',
    normalisedTimes,
    older('inference_objective_normalized_time_per_output_token_seconds', byModel),
  ),
  firstTokenWhole: histogram('llm_d_epp_request_ttft_seconds', FIRST_TOKEN_HELP, firstTokenBuckets, undefined, [
    'streaming',
    'false',
  ]),
  firstTokenStreamed: histogram('llm_d_epp_request_ttft_seconds', FIRST_TOKEN_HELP, firstTokenBuckets, undefined, [
    'streaming',
    'true',
  ]),
  timePerToken: histogram(
    'llm_d_epp_request_streaming_tpot_seconds',
    'Seconds per output token after the first one, of streamed answers.',
    timesPerToken,
  ),
  interTokenTime: histogram(
    'llm_d_epp_request_streaming_itl_seconds',
    'Seconds between two chunks of a streamed answer.',
    interTokenTimes,
  ),
});

export const errorKind = kind(2, ['error_code', ...requestKind.labels], {
  total: counter(
    'llm_d_epp_request_error_total',
    'Requests that ended in an error.',
    older('inference_objective_request_error_total', keep('error_code', 'model_name', 'target_model_name')),
  ),
});

export const attemptKind = kind(3, ['endpoint_name', 'namespace', 'port', 'status', 'target_model_name'], {
  total: counter(
    'llm_d_epp_scheduler_attempts_total',
    'Scheduling attempts.',
    older('inference_extension_scheduler_attempts_total', [
      ...keep('namespace'),
      ['endpoint_name', 'pod_name'],
      ...keep('port', 'status', 'target_model_name'),
    ]),
  ),
});

export const rewriteKind = kind(4, ['model_name', 'model_rewrite_name', 'target_model'], {
  total: counter(
    'llm_d_epp_model_rewrite_decisions_total',
    'Model names that a rewrite rule replaced.',
    older(
      'inference_extension_model_rewrite_decisions_total',
      keep('model_name', 'model_rewrite_name', 'target_model'),
    ),
  ),
});

/** Default labels of the metrics of the prefix index. */
export const PREFIX_PRODUCER = { name: 'approx-prefix-cache-producer', type: 'approx-prefix-cache-producer' } as const;

export const prefixKind = kind(5, ['plugin_name', 'plugin_type'], {
  ratio: histogram(
    'llm_d_epp_prefix_indexer_hit_ratio',
    'Share of the prompt, in blocks, that the best endpoint held.',
    ratios,
    older('inference_extension_prefix_indexer_hit_ratio', []),
  ),
  bytes: histogram(
    'llm_d_epp_prefix_indexer_hit_bytes',
    'Bytes of the prompt that the best endpoint held.',
    hitSizes,
    older('inference_extension_prefix_indexer_hit_bytes', []),
  ),
});

export const threadKind = kind(6, [], {
  decision: histogram(
    'llm_d_epp_scheduler_e2e_duration_seconds',
    'Seconds that one scheduling decision took.',
    schedulingTimes,
    older('inference_extension_scheduler_e2e_duration_seconds', []),
  ),
  requestPhase: histogram(
    'llm_d_epp_request_processing_duration_seconds',
    'Seconds that the picker itself spent on the request phase.',
    requestProcessingTimes,
  ),
  responsePhase: histogram(
    'llm_d_epp_response_processing_duration_seconds',
    'Seconds that the picker itself spent on the response phase.',
    responseProcessingTimes,
  ),
  overloaded: counter(
    'pointsman_overload_rejections_total',
    'Streams turned away because the picker itself had too much to do.',
  ),
  unreadAnswers: counter(
    'pointsman_unread_answers_total',
    'Answers whose bodies the proxy sent although no decision depends on them.',
  ),
  retentionsLeftOut: counter(
    'pointsman_retention_hints_left_out_total',
    'Turns without a retention hint: their clients have written that member of the body (priority, nvext) themselves.',
  ),
});

export const streamKind = kind(7, [], {
  inflight: gauge('llm_d_epp_extproc_streams_inflight', 'ext_proc streams that are open.'),
  duration: histogram(
    'llm_d_epp_extproc_stream_duration_seconds',
    'Seconds that ext_proc streams were open.',
    streamTimes,
  ),
});

export const streamEndKind = kind(8, ['code'], {
  total: counter('llm_d_epp_extproc_streams_total', 'ext_proc streams that ended, by gRPC status.'),
});

export const pluginKind = kind(9, ['plugin'], {
  failures: counter('pointsman_plugin_failures_total', 'Calls of hook plugins that threw or took too long.'),
});

export const cacheLossKind = kind(22, ['cause'], {
  requests: counter(
    'pointsman_cache_loss_requests_total',
    'Answered requests of whose prompts at least a block was computed anew, by the main cause.',
  ),
  tokens: counter('pointsman_cache_loss_tokens_total', 'Prompt tokens that were computed anew, by cause.'),
});

/** Label of requests without an objective of the pool. */
export const NO_OBJECTIVE = 'none';

const shadowCost = (configuration: string) =>
  counter(
    'pointsman_shadow_cost_targets_total',
    'Predicted cost of the picks of both configurations where both had one, in targets of the request.',
    undefined,
    ['configuration', configuration],
  );

export const shadowKind = kind(23, ['objective'], {
  decisions: counter('pointsman_shadow_decisions_total', 'Decisions that the candidate configuration made too.'),
  different: counter('pointsman_shadow_different_total', 'Those in which it picked another endpoint, or none.'),
  none: counter('pointsman_shadow_unplaced_total', 'Those for which it had no endpoint.'),
  runningCost: shadowCost('running'),
  candidateCost: shadowCost('candidate'),
});

export const predictionServerKind = kind(21, ['outcome'], {
  requests: counter(
    'pointsman_prediction_server_requests_total',
    'Requests sent to prediction servers, by outcome; all but `predicted` and `partial` were decided without them.',
  ),
});

const stageLabels = ['decision_type', 'model_name', 'plugin_name', 'plugin_type'];
const olderStageLabels = keep('decision_type', 'model_name');

export const stagesKind = kind(64, stageLabels, {
  total: counter(
    'llm_d_epp_disagg_decision_total',
    'Requests by the stages that disagg-profile-handler sent them through.',
    older('llm_d_inference_scheduler_disagg_decision_total', olderStageLabels),
  ),
});

export const prefillDecodeKind = kind(65, stageLabels, {
  total: counter(
    'llm_d_epp_pd_decision_total',
    'Requests by the stages that pd-profile-handler sent them through.',
    older('llm_d_inference_scheduler_pd_decision_total', olderStageLabels),
  ),
});

const LATENCY_NOW_HELP =
  'The last value of what its label says: seconds, or 1 where a request took longer than it wanted.';

function latestLatency(type: string): Draft {
  return latest(
    'llm_d_epp_inference_request_metric',
    LATENCY_NOW_HELP,
    older('inference_objective_inference_request_metric', byModel),
    ['type', type],
  );
}

const MISSED_HELP = 'Requests that took longer than they wanted.';
const missed = (type: string) =>
  counter(
    'llm_d_epp_request_slo_violation_total',
    MISSED_HELP,
    older('inference_objective_request_slo_violation_total', byModel),
    ['type', type],
  );
const ACCURACY_HELP = 'What was observed by what had been predicted: 1 is right, above 1 took longer.';
const accuracy = (time: string) =>
  histogram('pointsman_prediction_accuracy_ratio', ACCURACY_HELP, accuracies, undefined, ['time', time]);

/** Predicted latency; counted only when something predicts. */
export const predictionKind = kind(20, ['model_name', 'plugin_name', 'plugin_type', 'target_model_name'], {
  predictedTtft: histogram(
    'llm_d_epp_request_predicted_ttft_seconds',
    'Seconds to the first token as predicted for the endpoint that was picked.',
    durations,
    older('inference_objective_request_predicted_ttft_seconds', byModel),
  ),
  predictedTpot: histogram(
    'llm_d_epp_request_predicted_tpot_seconds',
    'Seconds per output token as predicted for the endpoint that was picked.',
    predictedTimesPerToken,
    older('inference_objective_request_predicted_tpot_seconds', byModel),
  ),
  ttftTook: histogram(
    'llm_d_epp_request_ttft_prediction_duration_seconds',
    'Seconds until prediction servers had answered for a request.',
    predictionTimes,
    older('inference_objective_request_ttft_prediction_duration_seconds', byModel),
  ),
  tpotTook: histogram(
    'llm_d_epp_request_tpot_prediction_duration_seconds',
    'Seconds until prediction servers had answered for a request.',
    predictionTimes,
    older('inference_objective_request_tpot_prediction_duration_seconds', byModel),
  ),
  ttftMissed: missed('ttft'),
  tpotMissed: missed('tpot'),
  ttftAccuracy: accuracy('ttft'),
  tpotAccuracy: accuracy('tpot'),
  lastTtft: latestLatency('ttft'),
  lastPredictedTtft: latestLatency('predicted_ttft'),
  lastTtftTook: latestLatency('ttft_prediction_duration'),
  lastTtftMissed: latestLatency('ttft_slo_violation'),
  lastTpot: latestLatency('tpot'),
  lastPredictedTpot: latestLatency('predicted_tpot'),
  lastTpotTook: latestLatency('tpot_prediction_duration'),
  lastTpotMissed: latestLatency('tpot_slo_violation'),
});

export const tokenKind = kind(40, ['outcome'], {
  prompts: counter(
    'pointsman_token_requests_total',
    'Prompts sent to a token source, by outcome; all but `tokenised` were estimated.',
  ),
});

export const tokenCountKind = kind(41, ['agreement'], {
  prompts: counter(
    'pointsman_token_counts_total',
    "Prompts with tokens, by whether the engine's usage counts as many: `same` or `differs`.",
  ),
});

const ESTIMATE_ERROR = [
  'pointsman_token_estimate_error_tokens_total',
  "Difference between estimated prompts and the engine's usage: `plain` = four bytes a token, `learned` = as used.",
] as const;

/** Prompts of text whose tokens were estimated, where the engine told them. */
export const tokenEstimateKind = kind(43, ['target_model_name'], {
  plain: counter(...ESTIMATE_ERROR, undefined, ['estimate', 'plain']),
  learned: counter(...ESTIMATE_ERROR, undefined, ['estimate', 'learned']),
  told: counter(
    'pointsman_token_estimate_told_tokens_total',
    "Prompt tokens of the engine's usage of prompts whose tokens were estimated.",
  ),
  estimated: counter(
    'pointsman_token_estimate_plain_tokens_total',
    'The same prompts by the estimate of four bytes a token.',
  ),
});

const DIFFERING = ['pointsman_token_count_differing', 'Tokens of the last prompt whose counts differ.'] as const;

export const differingCountKind = kind(42, [], {
  own: latest(...DIFFERING, undefined, ['counted_by', 'picker']),
  engine: latest(...DIFFERING, undefined, ['counted_by', 'engine']),
});
/**
 * Counters of hook plugins by name. The labels `plugin`, `plugin_name` and `plugin_type` are the plugin's own; the
 * plugin sets the others.
 */
export const pluginCounterKinds = {
  event: kind(72, ['event', 'plugin'], {
    total: counter('pointsman_plugin_events_total', 'What hook plugins count about themselves.'),
  }),
  disaggregatedset_strict_header_no_match: kind(73, ['plugin_name', 'plugin_type', 'selector'], {
    total: counter(
      'llm_d_epp_disaggregatedset_strict_header_no_match_total',
      'Requests whose strict header matched no endpoint.',
    ),
  }),
  disaggregatedset_strict_revision_no_match: kind(80, ['plugin_name', 'plugin_type'], {
    total: counter(
      'llm_d_epp_disaggregatedset_strict_revision_no_match_total',
      'Requests whose revision header matched no endpoint.',
    ),
  }),
  encoder_cache_queries: kind(74, ['modality', 'plugin_name', 'plugin_type'], {
    total: counter('llm_d_epp_encoder_cache_queries_total', 'Images, videos and sounds that were looked up.'),
  }),
  encoder_cache_hits: kind(75, ['modality', 'plugin_name', 'plugin_type', 'pod'], {
    total: counter(
      'llm_d_epp_encoder_cache_hits_total',
      'Images, videos and sounds that an endpoint was believed to have encoded, by endpoint.',
    ),
  }),
} as const;

export const affinityKind = kind(77, ['outcome', 'plugin_name'], {
  total: counter(
    'llm_d_epp_prefix_cache_affinity_filter_decisions_total',
    'Decisions of prefix-cache-affinity-filter, by outcome.',
  ),
});

export const servedModelKind = kind(78, ['outcome', 'plugin_name'], {
  total: counter(
    'llm_d_epp_served_model_filter_decisions_total',
    'Decisions of served-model-filter, by outcome: `listed`, `unlisted`, `fallback`, `empty` or `not_applicable`.',
  ),
});

export const servedCandidatesKind = kind(79, ['plugin_name'], {
  all: counter('llm_d_epp_served_model_filter_candidates_total', 'Endpoints that served-model-filter looked at.'),
  unlisted: counter(
    'llm_d_epp_served_model_filter_unlisted_candidates_total',
    'Endpoints that served-model-filter looked at and that have no list of models.',
  ),
});

/** Histograms of hook plugins by name. */
export const pluginHistogramKinds = {
  encoder_cache_hit_ratio: kind(76, ['plugin_name', 'plugin_type'], {
    ratio: histogram(
      'llm_d_epp_encoder_cache_hit_ratio',
      'Share of the media of a request that an endpoint is believed to have encoded, for every endpoint.',
      ratios,
      older('inference_extension_encoder_cache_hit_ratio', []),
    ),
  }),
} as const;

export const seriesKinds: readonly SeriesKind[] = [
  requestKind,
  errorKind,
  attemptKind,
  rewriteKind,
  prefixKind,
  threadKind,
  streamKind,
  streamEndKind,
  pluginKind,
  cacheLossKind,
  shadowKind,
  queueKind,
  queueEndKind,
  queueTotalKind,
  enqueueKind,
  refusalKind,
  stagesKind,
  prefillDecodeKind,
  predictionKind,
  predictionServerKind,
  tokenKind,
  tokenCountKind,
  differingCountKind,
  affinityKind,
  servedModelKind,
  servedCandidatesKind,
  tokenEstimateKind,
  ...Object.values(pluginCounterKinds),
  ...Object.values(pluginHistogramKinds),
];
