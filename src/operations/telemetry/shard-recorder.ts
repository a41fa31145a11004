import type { Endpoint } from '../../contract/endpoint.js';
import type { CoreInstance } from '../../core/memory.js';
import type { Usage } from '../../core/types.js';
import type { QueueOutcome } from '../../flow-control/queue-contract.js';
import type { ObservedLatency, RequestRecorder, RequestSamples, ResponseSummary } from '../../response/recorder.js';
import type { LatencyPrediction } from '../../scheduling/latency-outlook.js';
import { DecisionCounts } from './decision-counts.js';
import { enqueueOutcome } from './enqueue-recorder.js';
import { boundsOf, observe } from './histogram-cells.js';
import { ValueCap } from './label-values.js';
import type { Metric } from './metric-kind.js';
import {
  attemptKind,
  enqueueKind,
  errorKind,
  PREFIX_PRODUCER,
  pluginCounterKinds,
  pluginHistogramKinds,
  pluginKind,
  predictionKind,
  predictionServerKind,
  prefillDecodeKind,
  prefixKind,
  queueEndKind,
  queueKind,
  queueTotalKind,
  refusalKind,
  requestKind,
  rewriteKind,
  seriesKinds,
  stagesKind,
  streamEndKind,
  streamKind,
  threadKind,
  tokenKind,
} from './metric-table.js';
import { SeriesTable } from './series-table.js';
import { ShownNames, UNVOUCHED_MAX, type VouchedNames } from './shown-names.js';

export interface ShardRecorderOptions {
  /** Endpoint of a slot; undefined when the slot is free. */
  readonly endpointOf: (slot: number) => Endpoint | undefined;
  /** Value of `inference_pool`. */
  readonly poolName?: string | undefined;
  /** The plugin whose prefix matches are counted. */
  readonly prefixProducer?: { readonly name: string; readonly type: string } | undefined;
  /** The plugin that predicts latency; undefined = none. */
  readonly prediction?: { readonly name: string; readonly type: string; readonly streaming: boolean } | undefined;
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
const predicted = predictionKind.at;

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
  predictedTtft: boundsOf(predicted.predictedTtft),
  predictedTpot: boundsOf(predicted.predictedTpot),
  predictionTook: boundsOf(predicted.ttftTook),
  accuracy: boundsOf(predicted.ttftAccuracy),
  ratio: boundsOf(prefixKind.at.ratio),
  bytes: boundsOf(prefixKind.at.bytes),
  queued: boundsOf(queueEndKind.at.duration),
  entered: boundsOf(enqueueKind.at.duration),
};

/** Cells of the two times of a prediction. */
const ttftCells = {
  limit: limits.predictedTtft,
  predicted: predicted.predictedTtft,
  accuracy: predicted.ttftAccuracy,
  missed: predicted.ttftMissed,
  took: predicted.ttftTook,
  last: predicted.lastTtft,
  lastPredicted: predicted.lastPredictedTtft,
  lastMissed: predicted.lastTtftMissed,
  lastTook: predicted.lastTtftTook,
};
const tpotCells: typeof ttftCells = {
  limit: limits.predictedTpot,
  predicted: predicted.predictedTpot,
  accuracy: predicted.tpotAccuracy,
  missed: predicted.tpotMissed,
  took: predicted.tpotTook,
  last: predicted.lastTpot,
  lastPredicted: predicted.lastPredictedTpot,
  lastMissed: predicted.lastTpotMissed,
  lastTook: predicted.lastTpotTook,
};

/** First cells of the waits of one series' requests. */
interface QueueCells {
  /** Values of the labels of `queueKind`. */
  readonly values: readonly string[];
  readonly waiting: number;
  /** Of requests that never waited. */
  readonly entered: Map<QueueOutcome, number>;
  readonly ends: Map<QueueOutcome, { readonly duration: number; readonly total: number }>;
}

/** Cells of the scheduling attempts for one target model: of failures, then by slot. */
type Attempts = { endpoint: Endpoint | undefined; base: number }[];

/** Counters of a shard, in its thread's cells in shared memory. See RequestRecorder for each call. */
export class ShardRecorder implements RequestRecorder {
  readonly decisions: DecisionCounts;
  readonly #cells: Float64Array;
  readonly #series: SeriesTable;
  readonly #options: ShardRecorderOptions;
  readonly #queues = new Map<number, QueueCells>();
  readonly #errors = new Map<number, Map<string, number>>();
  readonly #predictions = new Map<number, number>();
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
    const { waiting } = this.#queueOf(series);
    this.#cells[waiting + queueKind.at.size.offset]! += by;
    this.#cells[waiting + queueKind.at.bytes.offset]! += by * bodyBytes;
  }

  queueLeft(series: number, outcome: QueueOutcome, seconds: number): void {
    const queue = this.#queueOf(series);
    let end = queue.ends.get(outcome);
    if (end === undefined) {
      const [, priority, pool] = queue.values;
      end = {
        duration: this.#series.resolve(queueEndKind, [outcome, ...queue.values]),
        total: this.#series.resolve(queueTotalKind, [outcome, priority!, pool!]),
      };
      queue.ends.set(outcome, end);
    }
    this.#cells[queue.waiting + queueKind.at.left.offset]! += 1;
    observe(this.#cells, end.duration + queueEndKind.at.duration.offset, limits.queued, seconds);
    this.#cells[end.total]! += 1;
  }

  passedQueue(series: number, outcome: QueueOutcome): void {
    const queue = this.#queueOf(series);
    let entered = queue.entered.get(outcome);
    if (entered === undefined) {
      const [fairness, priority] = queue.values;
      entered = this.#series.resolve(enqueueKind, [fairness!, enqueueOutcome(outcome), priority!]);
      queue.entered.set(outcome, entered);
    }
    observe(this.#cells, entered + enqueueKind.at.duration.offset, limits.entered, 0);
    this.queueLeft(series, outcome, 0);
  }

  leftWaiting(series: number): void {
    const [, , priority] = this.#series.valuesOf(series);
    this.#cells[this.#series.resolve(refusalKind, ['no-parking-slot', priority!])]! += 1;
  }

  /** Cells of the waits of a series' requests. */
  #queueOf(series: number): QueueCells {
    let queue = this.#queues.get(series);
    if (queue === undefined) {
      const [fairness, model, priority, target] = this.#series.valuesOf(series);
      const values = [fairness!, priority!, this.#options.poolName ?? '', model!, target!];
      queue = { values, waiting: this.#series.resolve(queueKind, values), entered: new Map(), ends: new Map() };
      this.#queues.set(series, queue);
    }
    return queue;
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
    if (summary.streaming && tokens > 1 && firstTokenSeconds !== undefined) {
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
      const values = [endpoint?.name ?? '', endpoint?.namespace ?? '', endpoint ? String(endpoint.port) : ''];
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

  predicted(series: number, prediction: LatencyPrediction, observed: ObservedLatency): void {
    const { prediction: plugin } = this.#options;
    if (plugin === undefined) return;
    const base = this.#predictionSeries(series, plugin);
    const ttft = plugin.streaming ? observed.firstTokenSeconds : observed.durationSeconds;
    this.#compare(base, ttftCells, prediction.ttftMs, ttft, prediction.wantedTtftMs);
    if (plugin.streaming) {
      this.#compare(base, tpotCells, prediction.tpotMs, observed.perTokenSeconds, prediction.wantedTpotMs);
    }
  }

  predictionAsked(outcome: string, labels: RequestSamples, seconds: number): void {
    const { prediction: plugin } = this.#options;
    if (plugin === undefined) return;
    this.#cells[this.#series.resolve(predictionServerKind, [outcome])]! += 1;
    if (outcome !== 'predicted' && outcome !== 'partial') return;
    const base = this.#predictionSeries(this.series(labels), plugin);
    for (const { took, lastTook } of [ttftCells, tpotCells]) {
      observe(this.#cells, base + took.offset, limits.predictionTook, seconds);
      this.#set(base, lastTook, seconds);
    }
  }

  #predictionSeries(series: number, { name, type }: { readonly name: string; readonly type: string }): number {
    let base = this.#predictions.get(series);
    if (base === undefined) {
      const [, model, , target] = this.#series.valuesOf(series);
      base = this.#series.resolve(predictionKind, [model!, name, type, target!]);
      this.#predictions.set(series, base);
    }
    return base;
  }

  /** Records one time of one request: predicted, observed and wanted (0 = no objective). */
  #compare(
    base: number,
    cells: typeof ttftCells,
    predictedMs: number | undefined,
    seconds: number | undefined,
    wantedMs: number,
  ): void {
    if (seconds === undefined) return;
    this.#set(base, cells.last, seconds);
    if (predictedMs !== undefined) {
      observe(this.#cells, base + cells.predicted.offset, cells.limit, predictedMs / 1000);
      this.#set(base, cells.lastPredicted, predictedMs / 1000);
      if (predictedMs > 0) {
        observe(this.#cells, base + cells.accuracy.offset, limits.accuracy, (seconds * 1000) / predictedMs);
      }
    }
    if (wantedMs <= 0) return;
    const missed = seconds * 1000 > wantedMs;
    if (missed) this.#cells[base + cells.missed.offset]! += 1;
    this.#set(base, cells.lastMissed, missed ? 1 : 0);
  }

  #set(base: number, metric: Metric, value: number): void {
    this.#cells[base + metric.offset] = value;
    // All threads share this clock, so that the page can find the last value.
    this.#cells[base + metric.offset + 1] = performance.timeOrigin + performance.now();
  }

  tokenised(outcome: string): void {
    this.#cells[this.#series.resolve(tokenKind, [outcome])]! += 1;
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
