import type { Endpoint } from '../../contract/endpoint.js';
import type { FilterNote } from '../../core/decision-data.js';
import type { CoreInstance } from '../../core/memory.js';
import type { Usage } from '../../core/types.js';
import type { QueueOutcome } from '../../flow-control/queue-contract.js';
import type { ObservedLatency, RequestRecorder, RequestSamples, ResponseSummary } from '../../response/recorder.js';
import type { LatencyPrediction } from '../../scheduling/latency-outlook.js';
import type { ProfileFilter } from '../../scheduling/program.js';
import { TOKEN_BYTES } from '../../scheduling/prompt-sizes.js';
import { DecisionCounts } from './decision-counts.js';
import { boundsOf, observe } from './histogram-cells.js';
import { ValueCap } from './label-values.js';
import { setLatest } from './latest-cells.js';
import {
  affinityKind,
  attemptKind,
  differingCountKind,
  errorKind,
  PREFIX_PRODUCER,
  pluginCounterKinds,
  pluginHistogramKinds,
  pluginKind,
  prefillDecodeKind,
  prefixKind,
  requestKind,
  rewriteKind,
  seriesKinds,
  servedCandidatesKind,
  servedModelKind,
  stagesKind,
  streamEndKind,
  streamKind,
  threadKind,
  tokenCountKind,
  tokenEstimateKind,
  tokenKind,
} from './metric-table.js';
import { type PredictingPlugin, PredictionRecorder } from './prediction-recorder.js';
import { refusalKind } from './queue-kinds.js';
import { SeriesTable } from './series-table.js';
import { ShownNames, UNVOUCHED_MAX, type VouchedNames } from './shown-names.js';
import { WaitRecorder } from './wait-recorder.js';

export interface ShardRecorderOptions {
  /** Endpoint of a slot; undefined when the slot is free. */
  readonly endpointOf: (slot: number) => Endpoint | undefined;
  /** Value of `inference_pool`. */
  readonly poolName?: string | undefined;
  /** The plugin whose prefix matches are counted. */
  readonly prefixProducer?: { readonly name: string; readonly type: string } | undefined;
  /** The plugin that predicts latency; undefined = none. */
  readonly prediction?: PredictingPlugin | undefined;
  /** Shards of the picker, which share the places of names without a voucher. Default 1. */
  readonly shards?: number | undefined;
  /** Fairness ids that are shown in the whole picker; undefined = as many as names without a voucher have places. */
  readonly fairnessIds?: number | undefined;
  /** Milliseconds of a clock that does not go back; for tests. */
  readonly now?: (() => number) | undefined;
}

const request = requestKind.at;
const thread = threadKind.at;
const stream = streamKind.at;

const limits = {
  requestBytes: boundsOf(request.requestBytes),
  responseBytes: boundsOf(request.responseBytes),
  duration: boundsOf(request.duration),
  tokens: boundsOf(request.inputTokens),
  outputTokens: boundsOf(request.outputTokens),
  normalisedTime: boundsOf(request.normalisedTime),
  firstToken: boundsOf(request.firstTokenWhole),
  timePerToken: boundsOf(request.timePerToken),
  interTokenTime: boundsOf(request.interTokenTime),
  decision: boundsOf(thread.decision),
  requestPhase: boundsOf(thread.requestPhase),
  responsePhase: boundsOf(thread.responsePhase),
  stream: boundsOf(stream.duration),
  ratio: boundsOf(prefixKind.at.ratio),
  bytes: boundsOf(prefixKind.at.bytes),
};

/** Cells of the scheduling attempts for one target model: of failures, then by slot. */
type Attempts = { endpoint: Endpoint | undefined; base: number }[];

/** Counters of a shard, in its thread's cells in shared memory. See RequestRecorder for each call. */
export class ShardRecorder implements RequestRecorder {
  readonly decisions: DecisionCounts;
  readonly #waits: WaitRecorder;
  /** Undefined = nothing predicts latency. */
  readonly #predictions: PredictionRecorder | undefined;
  readonly #cells: Float64Array;
  readonly #series: SeriesTable;
  readonly #options: ShardRecorderOptions;
  readonly #errors = new Map<number, Map<string, number>>();
  readonly #attempts = new Map<string, Attempts>();
  readonly #names: ShownNames;
  /** By counter and label. */
  readonly #pluginLabels = new Map<string, ValueCap>();
  readonly #thread: number;
  readonly #streams: number;
  readonly #prefix: number;
  readonly #streamEnds = new Map<string, number>();
  // The labels of the last request, which often equal those of the next.
  #lastModel = '';
  #lastTarget = '';
  #lastFairness = '';
  #lastPriority = 0;
  #lastSeries = -1;
  /** Target of the last attempt, and its attempts by slot; undefined = the names that are shown may have changed. */
  #attemptedTarget = '';
  #attemptsOfTarget: Attempts | undefined;

  /** @throws RangeError when the thread's telemetry block cannot hold one series of each kind */
  constructor(core: CoreInstance, options: ShardRecorderOptions) {
    this.#cells = core.f64;
    this.#options = options;
    const share = (places: number) => Math.max(Math.min(1, places), Math.floor(places / (options.shards ?? 1)));
    const fairnessIds = options.fairnessIds === undefined ? undefined : share(options.fairnessIds);
    this.#names = new ShownNames(share(UNVOUCHED_MAX), options.now, fairnessIds);
    this.#series = new SeriesTable(core, seriesKinds);
    this.decisions = new DecisionCounts(core.f64, this.#series);
    this.#waits = new WaitRecorder(core.f64, this.#series, options.poolName ?? '');
    const { prediction } = options;
    this.#predictions = prediction && new PredictionRecorder(core.f64, this.#series, prediction);
    this.#adopt();
    const producer = options.prefixProducer ?? PREFIX_PRODUCER;
    this.#thread = this.#series.resolve(threadKind, []);
    this.#streams = this.#series.resolve(streamKind, []);
    this.#prefix = this.#series.resolve(prefixKind, [producer.name, producer.type]);
  }

  /** Continues the counts of an earlier thread with this number, but not its requests in flight. */
  #adopt(): void {
    for (const { kind, values, base } of this.#series.adopted) {
      for (const metric of kind.metrics)
        if (metric.type === 'gauge' && !metric.latest) this.#cells[base + metric.offset] = 0;
      if (kind === requestKind) this.#names.admit(values[0]!, values[1]!, values[3]!);
    }
  }

  /** Replaces the names that are always shown. */
  vouch(names: VouchedNames): void {
    this.#names.vouch(names);
    this.#lastSeries = -1;
    this.#attempts.clear();
    this.#attemptsOfTarget = undefined;
  }

  series(labels: RequestSamples): number {
    if (
      this.#lastSeries >= 0 &&
      this.#lastModel === labels.model &&
      this.#lastTarget === labels.target &&
      this.#lastFairness === labels.fairness &&
      this.#lastPriority === labels.priority
    ) {
      return this.#lastSeries;
    }
    this.#lastModel = labels.model;
    this.#lastTarget = labels.target;
    this.#lastFairness = labels.fairness;
    this.#lastPriority = labels.priority;
    this.#attemptsOfTarget = undefined;
    const [fairness, model, target] = this.#names.admit(labels.fairness, labels.model, labels.target);
    const found = this.#series.known(requestKind, `${fairness}\0${model}\0${labels.priority}\0${target}`);
    this.#lastSeries = found ?? this.#series.resolve(requestKind, [fairness, model, String(labels.priority), target]);
    return this.#lastSeries;
  }

  routed(series: number, requestBytes: number): void {
    this.#cells[series + request.total.offset]! += 1;
    observe(this.#cells, series + request.requestBytes.offset, limits.requestBytes, requestBytes);
  }

  failed(series: number, code: string): void {
    let byCode = this.#errors.get(series);
    if (!byCode) {
      byCode = new Map();
      this.#errors.set(series, byCode);
    }
    let base = byCode.get(code);
    if (base === undefined) {
      base = this.#series.resolve(errorKind, [code, ...this.#series.valuesOf(series)]);
      byCode.set(code, base);
    }
    this.#cells[base]! += 1;
  }

  queued(series: number, by: 1 | -1, bodyBytes: number): void {
    this.#waits.queued(series, by, bodyBytes);
  }

  queueLeft(series: number, outcome: QueueOutcome, seconds: number): void {
    this.#waits.queueLeft(series, outcome, seconds);
  }

  passedQueue(series: number, outcome: QueueOutcome): void {
    this.#waits.passedQueue(series, outcome);
  }

  leftWaiting(series: number): void {
    const [, , priority] = this.#series.valuesOf(series);
    this.#cells[this.#series.resolve(refusalKind, ['no-parking-slot', priority!])]! += 1;
  }

  running(series: number, by: number): void {
    this.#cells[series + request.running.offset]! += by;
  }

  tokens(series: number, usage: Usage): void {
    const cells = this.#cells;
    if (usage.promptTokens > 0) {
      observe(cells, series + request.inputTokens.offset, limits.tokens, usage.promptTokens);
    }
    if (usage.completionTokens > 0) {
      observe(cells, series + request.outputTokens.offset, limits.outputTokens, usage.completionTokens);
    }
    // 0 cached tokens are recorded; a missing report (-1) is not.
    if (usage.cachedTokens >= 0) {
      observe(cells, series + request.cachedTokens.offset, limits.tokens, usage.cachedTokens);
    }
  }

  estimatedTokens(series: number, outputTokens: number): void {
    this.#cells[series + request.estimatedTokens.offset]! += outputTokens;
  }

  firstToken(series: number, streaming: boolean, seconds: number): void {
    const metric = streaming ? request.firstTokenStreamed : request.firstTokenWhole;
    observe(this.#cells, series + metric.offset, limits.firstToken, seconds);
  }

  interTokenLatency(series: number, seconds: number): void {
    observe(this.#cells, series + request.interTokenTime.offset, limits.interTokenTime, seconds);
  }

  responseEnded(series: number, summary: ResponseSummary): void {
    const cells = this.#cells;
    const { durationSeconds, firstTokenSeconds, usage } = summary;
    observe(cells, series + request.duration.offset, limits.duration, durationSeconds);
    observe(cells, series + request.responseBytes.offset, limits.responseBytes, summary.responseBytes);
    const tokens = usage.completionTokens;
    if (tokens > 0) {
      observe(cells, series + request.normalisedTime.offset, limits.normalisedTime, durationSeconds / tokens);
    }
    // An answer in one piece shows no time between its tokens.
    if (summary.streaming && tokens > 1 && firstTokenSeconds !== undefined && durationSeconds > firstTokenSeconds) {
      const each = (durationSeconds - firstTokenSeconds) / (tokens - 1);
      observe(cells, series + request.timePerToken.offset, limits.timePerToken, each);
    }
  }

  scheduled(seconds: number, outcome: 'success' | 'failure', targetModel: string, slot: number): void {
    observe(this.#cells, this.#thread + thread.decision.offset, limits.decision, seconds);
    const bySlot = this.#attemptsOf(targetModel);
    const endpoint = slot >= 0 ? this.#options.endpointOf(slot) : undefined;
    const index = outcome === 'failure' ? 0 : slot + 1;
    let entry = bySlot[index];
    if (!entry || entry.endpoint !== endpoint) {
      // llm-d-router names the pod here, and tells its endpoints apart by the port.
      const name = endpoint?.podName ?? endpoint?.name ?? '';
      const values = [name, endpoint?.namespace ?? '', endpoint ? String(endpoint.port) : ''];
      const target = this.#names.model(targetModel);
      entry = { endpoint, base: this.#series.resolve(attemptKind, [...values, outcome, target]) };
      bySlot[index] = entry;
    }
    this.#cells[entry.base]! += 1;
  }

  #attemptsOf(targetModel: string): Attempts {
    if (this.#attemptsOfTarget !== undefined && targetModel === this.#attemptedTarget) return this.#attemptsOfTarget;
    const target = this.#names.model(targetModel);
    const bySlot = this.#attempts.get(target) ?? [];
    this.#attempts.set(target, bySlot);
    this.#attemptedTarget = targetModel;
    this.#attemptsOfTarget = bySlot;
    return bySlot;
  }

  prefix(matchedBlocks: number, totalBlocks: number, blockBytes: number): void {
    if (totalBlocks > 0) {
      observe(this.#cells, this.#prefix + prefixKind.at.ratio.offset, limits.ratio, matchedBlocks / totalBlocks);
    }
    observe(this.#cells, this.#prefix + prefixKind.at.bytes.offset, limits.bytes, matchedBlocks * blockBytes);
  }

  processing(phase: 'request' | 'response', seconds: number): void {
    if (phase === 'request') {
      observe(this.#cells, this.#thread + thread.requestPhase.offset, limits.requestPhase, seconds);
    } else {
      observe(this.#cells, this.#thread + thread.responsePhase.offset, limits.responsePhase, seconds);
    }
  }

  rewritten(rule: string, model: string, target: string): void {
    const base = this.#series.resolve(rewriteKind, [this.#names.model(model), rule, this.#names.model(target)]);
    this.#cells[base]! += 1;
  }

  /** Counts the stages of a request with a profile handler. */
  staged(handler: { readonly name: string; readonly type: string }, stages: string, targetModel: string): void {
    // pd-profile-handler has a metric of its own, as in llm-d-router.
    const kind = handler.type === 'pd-profile-handler' ? prefillDecodeKind : stagesKind;
    const model = targetModel === '' ? 'unknown' : this.#names.model(targetModel);
    this.#cells[this.#series.resolve(kind, [stages, model, handler.name, handler.type])]! += 1;
  }

  /** Counts what a filter has decided. */
  filtered({ name, counted }: ProfileFilter, { outcome, candidates, unknown }: FilterNote): void {
    const decisions = counted === 'served-model' ? servedModelKind : affinityKind;
    this.#cells[this.#series.resolve(decisions, [outcome, name])]! += 1;
    if (counted !== 'served-model' || outcome === 'not_applicable') return;
    const base = this.#series.resolve(servedCandidatesKind, [name]);
    this.#cells[base + servedCandidatesKind.at.all.offset]! += candidates;
    this.#cells[base + servedCandidatesKind.at.unlisted.offset]! += unknown;
  }

  streamOpened(): void {
    this.#cells[this.#streams + stream.inflight.offset]! += 1;
  }

  streamClosed(code: string, seconds: number): void {
    this.#cells[this.#streams + stream.inflight.offset]! -= 1;
    observe(this.#cells, this.#streams + stream.duration.offset, limits.stream, seconds);
    let ends = this.#streamEnds.get(code);
    if (ends === undefined) {
      ends = this.#series.resolve(streamEndKind, [code]);
      this.#streamEnds.set(code, ends);
    }
    this.#cells[ends]! += 1;
  }

  overloaded(): void {
    this.#cells[this.#thread + thread.overloaded.offset]! += 1;
  }

  unreadAnswer(): void {
    this.#cells[this.#thread + thread.unreadAnswers.offset]! += 1;
  }

  retentionLeftOut(): void {
    this.#cells[this.#thread + thread.retentionsLeftOut.offset]! += 1;
  }

  predicted(series: number, prediction: LatencyPrediction, observed: ObservedLatency): void {
    this.#predictions?.predicted(series, prediction, observed);
  }

  predictionAsked(outcome: string, labels: RequestSamples, seconds: number): void {
    const predictions = this.#predictions;
    if (predictions?.counts(outcome) === true) predictions.took(this.series(labels), seconds);
  }

  tokenised(outcome: string): void {
    this.#cells[this.#series.resolve(tokenKind, [outcome])]! += 1;
  }

  tokensCounted(own: number, engine: number): void {
    const isSame = own === engine;
    this.#cells[this.#series.resolve(tokenCountKind, [isSame ? 'same' : 'differs'])]! += 1;
    if (isSame) return;
    const base = this.#series.resolve(differingCountKind, []);
    setLatest(this.#cells, base, differingCountKind.at.own, own);
    setLatest(this.#cells, base, differingCountKind.at.engine, engine);
  }

  estimateCompared(series: number, { bytes, tokens }: { bytes: number; tokens: number }, told: number): void {
    const cells = this.#cells;
    const target = this.#series.valuesOf(series)[3]!;
    const base = this.#series.known(tokenEstimateKind, target) ?? this.#series.resolve(tokenEstimateKind, [target]);
    const { plain, learned, told: toldTokens, estimated } = tokenEstimateKind.at;
    const plainTokens = Math.ceil(bytes / TOKEN_BYTES);
    cells[base + plain.offset]! += Math.abs(plainTokens - told);
    cells[base + learned.offset]! += Math.abs(tokens - told);
    cells[base + toldTokens.offset]! += told;
    cells[base + estimated.offset]! += plainTokens;
  }

  /** Counts a failed call of a hook plugin. Not on the hot path, because failures are rare. */
  pluginFailed(plugin: string): void {
    this.#cells[this.#series.resolve(pluginKind, [plugin])]! += 1;
  }

  /** Adds to a counter of a hook plugin. Missing labels are empty. */
  pluginCounted(
    plugin: { readonly name: string; readonly type: string },
    counter: keyof typeof pluginCounterKinds,
    labels: Readonly<Record<string, string>>,
  ): void {
    const counterKind = pluginCounterKinds[counter];
    const values = counterKind.labels.map((label) => {
      if (label === 'plugin' || label === 'plugin_name') return plugin.name;
      return label === 'plugin_type' ? plugin.type : this.#pluginLabel(counter, label, labels[label] ?? '');
    });
    this.#cells[this.#series.resolve(counterKind, values)]! += 1;
  }

  /** Adds an observation to a histogram of a hook plugin. */
  pluginObserved(
    { name, type }: { readonly name: string; readonly type: string },
    histogram: keyof typeof pluginHistogramKinds,
    value: number,
  ): void {
    const histogramKind = pluginHistogramKinds[histogram];
    const metric = histogramKind.metrics[0]!;
    const base = this.#series.resolve(histogramKind, [name, type]);
    observe(this.#cells, base + metric.offset, boundsOf(metric), value);
  }

  #pluginLabel(counter: string, label: string, value: string): string {
    const key = `${counter} ${label}`;
    const cap = this.#pluginLabels.get(key) ?? new ValueCap();
    this.#pluginLabels.set(key, cap);
    return cap.admit(value);
  }
}
