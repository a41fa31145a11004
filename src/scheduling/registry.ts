import { latencySloAdmitter } from './admitters/latency-slo-admitter.js';
import { probabilisticAdmitter } from './admitters/probabilistic-admitter.js';
import { contextLengthAware } from './context-length-aware.js';
import { alwaysDisaggMultimodalDecider } from './deciders/always-disagg-multimodal-decider.js';
import { alwaysDisaggPdDecider } from './deciders/always-disagg-pd-decider.js';
import { prefixBasedPdDecider } from './deciders/prefix-based-pd-decider.js';
import { byLabel } from './filters/by-label.js';
import { byLabelSelector } from './filters/by-label-selector.js';
import { decodeFilter } from './filters/decode-filter.js';
import { encodeFilter } from './filters/encode-filter.js';
import { endpointAttributeFilter } from './filters/endpoint-attribute-filter.js';
import { headerBasedTestingFilter } from './filters/header-based-testing-filter.js';
import { labelSelectorFilter } from './filters/label-selector-filter.js';
import { multiclusterSessionAffinityFilter } from './filters/multicluster-session-affinity-filter.js';
import { overloadFilter } from './filters/overload-filter.js';
import { prefillFilter } from './filters/prefill-filter.js';
import { prefixCacheAffinityFilter } from './filters/prefix-cache-affinity-filter.js';
import { servedModelFilter } from './filters/served-model-filter.js';
import { sessionAffinityFilter } from './filters/session-affinity-filter.js';
import { sloHeadroomTierFilter } from './filters/slo-headroom-tier-filter.js';
import { stickyUntilSaturatedFilter } from './filters/sticky-until-saturated-filter.js';
import { topologyAffinityFilter } from './filters/topology-affinity-filter.js';
import { utilizationFilter } from './filters/utilization-filter.js';
import { warmUpFilter } from './filters/warm-up-filter.js';
import { agentIdentity } from './header-processors/agent-identity.js';
import { outlenBucket } from './header-processors/outlen-bucket.js';
import { reserveEndpoint } from './header-processors/reserve-endpoint.js';
import { leastRequestPicker } from './pickers/least-request-picker.js';
import { maxScorePicker } from './pickers/max-score-picker.js';
import { powerOfTwoPicker } from './pickers/power-of-two-picker.js';
import { randomPicker } from './pickers/random-picker.js';
import { roundRobinPicker } from './pickers/round-robin-picker.js';
import { weightedRandomPicker } from './pickers/weighted-random-picker.js';
import type { PluginDefinition } from './plugin.js';
import { approxPrefixCacheProducer } from './producers/approx-prefix-cache-producer.js';
import { burstPrefixCacheProducer } from './producers/burst-prefix-cache-producer.js';
import { inflightLoadProducer } from './producers/inflight-load-producer.js';
import { mmEmbeddingsCacheProducer } from './producers/mm-embeddings-cache-producer.js';
import { multiclusterApproxPrefixCacheProducer } from './producers/multicluster-approx-prefix-cache-producer.js';

import { p2pSourceProducer } from './producers/p2p-source-producer.js';
import { precisePrefixCacheProducer } from './producers/precise-prefix-cache-producer.js';

import { predictedLatencyProducer } from './producers/predicted-latency-producer.js';

import { sessionIdProducer } from './producers/session-id-producer.js';
import { sessionStateProducer } from './producers/session-state-producer.js';
import { tokenProducer } from './producers/token-producer.js';
import { tokenizer } from './producers/tokenizer.js';
import { dataParallelProfileHandler } from './profile-handlers/data-parallel-profile-handler.js';
import { disaggHeadersHandler, prefillHeaderHandler } from './profile-handlers/disagg-headers-handler.js';
import { disaggProfileHandler } from './profile-handlers/disagg-profile-handler.js';
import { headerProfileHandler } from './profile-handlers/header-profile-handler.js';
import { pdProfileHandler } from './profile-handlers/pd-profile-handler.js';
import { singleProfileHandler } from './profile-handlers/single-profile-handler.js';
import { destinationEndpointServedVerifier } from './reporters/destination-endpoint-served-verifier.js';
import { requestAttributeReporter } from './reporters/request-attribute-reporter.js';
import { modelsResponder } from './responders/models-responder.js';
import { activeBlocksScorer } from './scorers/active-blocks-scorer.js';
import { activeRequestScorer } from './scorers/active-request-scorer.js';
import { cacheAwareScorer } from './scorers/cache-aware-scorer.js';
import { consistentHashScorer } from './scorers/consistent-hash-scorer.js';
import { endpointAttributeScorer } from './scorers/endpoint-attribute-scorer.js';
import { exploitExploreScorer } from './scorers/exploit-explore-scorer.js';
import { headerLabelAffinityScorer } from './scorers/header-label-affinity-scorer.js';
import { kvCacheUtilizationScorer } from './scorers/kv-cache-utilization-scorer.js';
import { latencyScorer } from './scorers/latency-scorer.js';
import { lmetricScorer } from './scorers/lmetric-scorer.js';
import { loadAwareScorer } from './scorers/load-aware-scorer.js';
import { loraAffinityScorer } from './scorers/lora-affinity-scorer.js';
import { loraLoadStateScorer } from './scorers/lora-load-state-scorer.js';
import { marginalCostScorer } from './scorers/marginal-cost-scorer.js';
import { mmEmbeddingsCacheScorer } from './scorers/mm-embeddings-cache-scorer.js';
import { multiclusterKvCacheUtilizationScorer } from './scorers/multicluster-kv-cache-utilization-scorer.js';
import { multiclusterPrefixCacheScorer } from './scorers/multicluster-prefix-cache-scorer.js';
import { multiclusterQueueScorer } from './scorers/multicluster-queue-scorer.js';
import { noHitLruScorer } from './scorers/no-hit-lru-scorer.js';
import { precisePrefixCacheScorer } from './scorers/precise-prefix-cache-scorer.js';
import { prefixBalanceScorer } from './scorers/prefix-balance-scorer.js';
import { prefixCacheScorer } from './scorers/prefix-cache-scorer.js';
import { queueScorer } from './scorers/queue-scorer.js';
import { rendezvousHashScorer } from './scorers/rendezvous-hash-scorer.js';
import { runningRequestsSizeScorer } from './scorers/running-requests-size-scorer.js';
import { sessionAffinityScorer } from './scorers/session-affinity-scorer.js';
import { softSessionAffinityScorer } from './scorers/soft-session-affinity-scorer.js';
import { tokenLoadScorer } from './scorers/token-load-scorer.js';
import { topologyAffinityScorer } from './scorers/topology-affinity-scorer.js';
import { disaggregatedsetRolloutScreener } from './screeners/disaggregatedset-rollout-screener.js';
import { endpointPinScreener } from './screeners/endpoint-pin-screener.js';
import { topologyExtractor } from './topology/topology-extractor.js';

/** All plugins of scheduling. */
export const schedulingPlugins: readonly PluginDefinition[] = [
  decodeFilter,
  prefillFilter,
  encodeFilter,
  endpointAttributeFilter,
  utilizationFilter,
  prefixCacheAffinityFilter,
  stickyUntilSaturatedFilter,
  overloadFilter,
  warmUpFilter,
  labelSelectorFilter,
  byLabelSelector,
  byLabel,
  queueScorer,
  runningRequestsSizeScorer,
  kvCacheUtilizationScorer,
  prefixCacheScorer,
  precisePrefixCacheScorer,
  activeRequestScorer,
  tokenLoadScorer,
  activeBlocksScorer,
  loadAwareScorer,
  loraAffinityScorer,
  contextLengthAware,
  headerLabelAffinityScorer,
  endpointAttributeScorer,
  noHitLruScorer,
  rendezvousHashScorer,
  consistentHashScorer,
  lmetricScorer,
  cacheAwareScorer,
  marginalCostScorer,
  prefixBalanceScorer,
  exploitExploreScorer,
  maxScorePicker,
  randomPicker,
  weightedRandomPicker,
  powerOfTwoPicker,
  leastRequestPicker,
  roundRobinPicker,
  approxPrefixCacheProducer,
  precisePrefixCacheProducer,
  inflightLoadProducer,
  tokenProducer,
  tokenizer,
  singleProfileHandler,
  disaggProfileHandler,
  pdProfileHandler,
  disaggHeadersHandler,
  prefillHeaderHandler,
  headerProfileHandler,
  dataParallelProfileHandler,
  alwaysDisaggPdDecider,
  alwaysDisaggMultimodalDecider,
  prefixBasedPdDecider,
  topologyExtractor,
  topologyAffinityFilter,
  topologyAffinityScorer,
  sessionAffinityFilter,
  sessionAffinityScorer,
  softSessionAffinityScorer,
  sessionIdProducer,
  sessionStateProducer,
  servedModelFilter,
  modelsResponder,
  loraLoadStateScorer,
  agentIdentity,
  outlenBucket,
  reserveEndpoint,
  endpointPinScreener,
  probabilisticAdmitter,
  multiclusterSessionAffinityFilter,
  multiclusterQueueScorer,
  multiclusterKvCacheUtilizationScorer,
  multiclusterPrefixCacheScorer,
  multiclusterApproxPrefixCacheProducer,
  burstPrefixCacheProducer,
  p2pSourceProducer,
  mmEmbeddingsCacheProducer,
  mmEmbeddingsCacheScorer,
  predictedLatencyProducer,
  sloHeadroomTierFilter,
  latencyScorer,
  latencySloAdmitter,
  headerBasedTestingFilter,
  requestAttributeReporter,
  destinationEndpointServedVerifier,
  disaggregatedsetRolloutScreener,
];
