import type { Endpoint } from '../../contract/endpoint.js';
import type { PredictionServers } from '../../contract/prediction-settings.js';
import type { CoreInstance } from '../../core/memory.js';
import { SampleReader } from '../../core/sample-reader.js';
import type { TrainingSample } from '../../core/training-sample.js';
import { JsonServers } from '../../remote/json-server.js';
import { errorMessage } from '../../runtime/error-message.js';
import type { PredictionRow } from './prediction-wire.js';

/** A receipt, not more. */
const ANSWER_BYTES_MAX = 1024 * 1024;

/** One measured time in the form of llm-d-router's training server: one of the two times is 0. */
interface TrainingEntry extends PredictionRow {
  readonly actual_ttft_ms: number;
  readonly actual_tpot_ms: number;
  readonly timestamp: string;
}

export interface TrainingClientOptions {
  /** The control thread's instance. */
  readonly core: CoreInstance;
  readonly servers: PredictionServers & { readonly training: string };
  readonly streaming: boolean;
  readonly roleLabel: string;
  readonly endpointOf: (slot: number) => Endpoint | undefined;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Samples could not be delivered; one line. Once until they can be again. */
  readonly report: (problem: string) => void;
}

/** Sends what finished requests have shown to the training server, in one call each flush. */
export class TrainingClient {
  readonly #options: TrainingClientOptions;
  readonly #reader: SampleReader;
  readonly #connections = new JsonServers({ connections: 1, answerBytesMax: ANSWER_BYTES_MAX });
  readonly #timer: NodeJS.Timeout;
  #sending: Promise<void> | undefined;
  #failing = false;
  #lost = 0;

  constructor(options: TrainingClientOptions) {
    this.#options = options;
    this.#reader = new SampleReader(options.core);
    this.#timer = setInterval(() => this.flush(), options.servers.flushMs);
    this.#timer.unref();
  }

  /** Samples that the server did not accept. */
  get lost(): number {
    return this.#lost;
  }

  /** Sends the samples since the last flush, unless that one is still under way. */
  flush(): Promise<void> {
    this.#sending ??= this.#send(this.#samples()).finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  /** Of more samples than a flush takes, a fair draw: each has the same chance (reservoir sampling). */
  #samples(): readonly TrainingEntry[] {
    const { servers, random } = this.#options;
    const kept: TrainingEntry[] = [];
    let seen = 0;
    this.#reader.drain((sample) => {
      for (const entry of this.#entries(sample)) {
        seen++;
        if (kept.length < servers.samplesMax) kept.push(entry);
        else {
          const place = Math.floor(random() * seen);
          if (place < servers.samplesMax) kept[place] = entry;
        }
      }
    });
    return kept;
  }

  #entries(sample: TrainingSample): readonly TrainingEntry[] {
    if (sample.outcome !== 'completed') return [];
    const { streaming } = this.#options;
    const ttftMs = streaming ? sample.firstOutputMs : sample.durationMs;
    const tpotMs = streaming ? sample.perTokenMs : undefined;
    const row = this.#row(sample);
    return [
      ...(ttftMs === undefined || ttftMs <= 0 ? [] : [{ ...row, actual_ttft_ms: ttftMs, actual_tpot_ms: 0 }]),
      ...(tpotMs === undefined || tpotMs <= 0
        ? []
        : [{ ...row, prefix_cache_score: 0, actual_ttft_ms: 0, actual_tpot_ms: tpotMs }]),
    ];
  }

  #row(sample: TrainingSample): PredictionRow & { readonly timestamp: string } {
    const { roleLabel, endpointOf } = this.#options;
    const role = roleLabel === '' ? undefined : endpointOf(sample.slot)?.labels[roleLabel];
    const { promptTokens, uncachedTokens } = sample;
    return {
      kv_cache_percentage: Math.min(Math.max(sample.kvUsage ?? 0, 0), 1),
      input_token_length: promptTokens,
      num_request_waiting: Math.max(0, Math.round(sample.waiting ?? 0)),
      num_request_running: sample.inflight,
      num_tokens_generated: 0,
      prefix_cache_score: promptTokens === 0 ? 0 : Math.max(0, 1 - uncachedTokens / promptTokens),
      encoder_input_size: 0,
      encoder_matched_size: 0,
      ...(role === undefined || role === '' ? {} : { pod_type: role }),
      prefill_tokens_in_flight: sample.prefillTokens,
      decode_tokens_in_flight: 0,
      timestamp: new Date(sample.timeMs + sample.durationMs).toISOString(),
    };
  }

  async #send(entries: readonly TrainingEntry[]): Promise<void> {
    if (entries.length === 0) return;
    const { training, timeoutMs } = this.#options.servers;
    try {
      const payload = JSON.stringify({ entries });
      await this.#connections.post(`${training}/add_training_data_bulk`, payload, AbortSignal.timeout(timeoutMs));
      this.#failing = false;
    } catch (error) {
      this.#lost += entries.length;
      if (!this.#failing) this.#options.report(`${training} takes no samples: ${errorMessage(error)}`);
      this.#failing = true;
    }
  }

  /** Sends no more; a flush that is under way is given up. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#connections.close();
    await this.#sending;
  }
}
