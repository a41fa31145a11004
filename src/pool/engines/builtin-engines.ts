/**
 * Metric that shows each signal on an engine's page. The field names are those of the configuration (`engineConfigs` of
 * core-metrics-extractor). A spec is `name` or `name{label=value,…}`; absent or empty = the engine does not tell.
 */
export interface EngineConfig {
  readonly name: string;
  readonly queuedRequestsSpec?: string | undefined;
  readonly runningRequestsSpec?: string | undefined;
  readonly kvUsageSpec?: string | undefined;
  /** The same value under the name of earlier versions; read where kvUsageSpec is not on the page. */
  readonly earlierKvUsageSpec?: string | undefined;
  /** 1 while the engine is awake, 0 while it sleeps. */
  readonly awakeSpec?: string | undefined;
  /** Of the waiting requests, those that room alone does not help. */
  readonly deferredRequestsSpec?: string | undefined;
  /** Counter of the requests that a limit of the queue refused. */
  readonly refusedRequestsSpec?: string | undefined;
  /** Counters of the tokens that an external cache was asked for, and had. */
  readonly externalQueriesSpec?: string | undefined;
  readonly externalHitsSpec?: string | undefined;
  /** Counter of cached prompt tokens, with the tier in the label `source`. */
  readonly cachedBySourceSpec?: string | undefined;
  readonly loraSpec?: string | undefined;
  /** One series for each loaded adapter, with its name and level in labels. */
  readonly loraLoadedSpec?: string | undefined;
  readonly loraGPULoadedSpec?: string | undefined;
  readonly loraGPUSlotsSpec?: string | undefined;
  /** An info metric whose labels hold block size and block count. */
  readonly cacheInfoSpec?: string | undefined;
  /** Default `block_size`. */
  readonly cacheBlockSizeLabelName?: string | undefined;
  /** Default `num_gpu_blocks`. */
  readonly cacheNumBlocksLabelName?: string | undefined;
  /** Block size and count as values of gauges; used where cacheInfoSpec is absent or not on the page. */
  readonly cacheBlockSizeSpec?: string | undefined;
  readonly cacheNumBlocksSpec?: string | undefined;
  /** Further metrics that plugins may read by name. */
  readonly customMetrics?: readonly { readonly attributeKey: string; readonly metricSpec: string }[] | undefined;
}

/** The engines known without configuration. */
export const BUILTIN_ENGINES: readonly EngineConfig[] = [
  {
    name: 'vllm',
    queuedRequestsSpec: 'vllm:num_requests_waiting',
    runningRequestsSpec: 'vllm:num_requests_running',
    kvUsageSpec: 'vllm:kv_cache_usage_perc',
    earlierKvUsageSpec: 'vllm:gpu_cache_usage_perc',
    awakeSpec: 'vllm:engine_sleep_state{sleep_state=awake}',
    deferredRequestsSpec: 'vllm:num_requests_waiting_by_reason{reason=deferred}',
    refusedRequestsSpec: 'vllm:admission_rejections_total',
    externalQueriesSpec: 'vllm:external_prefix_cache_queries_total',
    externalHitsSpec: 'vllm:external_prefix_cache_hits_total',
    cachedBySourceSpec: 'vllm:prompt_tokens_cached_by_source_total',
    loraSpec: 'vllm:lora_requests_info',
    loraLoadedSpec: 'vllm:lora_adapter_loaded',
    loraGPULoadedSpec: 'vllm:num_gpu_loaded_lora_adapters',
    loraGPUSlotsSpec: 'vllm:max_gpu_lora_adapters',
    cacheInfoSpec: 'vllm:cache_config_info',
  },
  {
    name: 'sglang',
    queuedRequestsSpec: 'sglang:num_queue_reqs',
    runningRequestsSpec: 'sglang:num_running_reqs',
    kvUsageSpec: 'sglang:token_usage',
    cacheInfoSpec: 'sglang:cache_config_info',
    cacheBlockSizeLabelName: 'page_size',
    cacheNumBlocksLabelName: 'num_pages',
  },
  {
    name: 'trtllm-serve',
    queuedRequestsSpec: 'trtllm_num_requests_waiting',
    runningRequestsSpec: 'trtllm_num_requests_running',
    kvUsageSpec: 'trtllm_kv_cache_utilization',
    cacheBlockSizeSpec: 'trtllm_kv_cache_tokens_per_block',
    cacheNumBlocksSpec: 'trtllm_kv_cache_max_blocks',
  },
  {
    name: 'triton-tensorrt-llm',
    queuedRequestsSpec: 'nv_trt_llm_request_metrics{request_type=waiting}',
    runningRequestsSpec: 'nv_trt_llm_request_metrics{request_type=scheduled}',
    kvUsageSpec: 'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=fraction}',
    cacheBlockSizeSpec: 'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=tokens_per}',
    cacheNumBlocksSpec: 'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=max}',
  },
  {
    name: 'atom',
    queuedRequestsSpec: 'atom:num_requests_waiting',
    runningRequestsSpec: 'atom:num_requests_running',
    kvUsageSpec: 'atom:kv_cache_usage_perc',
    cacheInfoSpec: 'atom:cache_config_info',
  },
  {
    // Diffusion has no KV cache, and so no use of one.
    name: 'vllm-omni',
    queuedRequestsSpec: 'vllm_omni:num_requests_waiting',
    runningRequestsSpec: 'vllm_omni:num_requests_running',
  },
  {
    // Running requests stay unknown: `nv_inference_exec_count`, which others read here, counts batches since the start.
    name: 'triton',
    queuedRequestsSpec: 'nv_inference_pending_request_count',
  },
];
