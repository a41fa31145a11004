import type { Endpoint } from '../../contract/endpoint.js';
import type { PredictionSettings } from '../../contract/prediction-settings.js';
import type { CoreInstance } from '../../core/memory.js';
import { LatencyTrainer } from '../../prediction/latency-trainer.js';
import type { TrainingClient } from '../../prediction/servers/training-client.js';
import type { Part } from '../part.js';

/** Interval between two training rounds of the latency model. */
const LEARN_INTERVAL_MS = 250;

export interface LatencyLearningOptions {
  readonly core: CoreInstance;
  readonly settings: PredictionSettings;
  readonly endpointOf: (slot: number) => Endpoint | undefined;
  readonly report: (problem: string) => void;
}

/**
 * Trains the latency model and sends samples to the training server when one is configured. It is made before the first
 * endpoint opens, so that predictions start with the endpoint's first request.
 */
export class LatencyLearning implements Part {
  readonly trainer: LatencyTrainer;
  readonly #options: LatencyLearningOptions;
  #client: TrainingClient | undefined;
  #rounds: NodeJS.Timeout | undefined;

  constructor(options: LatencyLearningOptions) {
    this.#options = options;
    this.trainer = new LatencyTrainer(options);
  }

  /** Samples that the training server did not accept; undefined = there is no server. */
  get samplesLost(): number | undefined {
    return this.#client?.lost;
  }

  async start(): Promise<void> {
    this.#rounds = setInterval(() => this.trainer.learn(), LEARN_INTERVAL_MS).unref();
    this.#client = await this.#createClient();
  }

  async #createClient(): Promise<TrainingClient | undefined> {
    const { core, settings, endpointOf, report } = this.#options;
    const { servers, streaming, roleLabel } = settings;
    if (servers?.training === undefined) return undefined;
    const { TrainingClient: Client } = await import('../../prediction/servers/training-client.js');
    return new Client({
      core,
      servers: { ...servers, training: servers.training },
      streaming,
      roleLabel,
      endpointOf,
      random: Math.random,
      report,
    });
  }

  async stop(): Promise<void> {
    clearInterval(this.#rounds);
    await this.#client?.stop();
  }
}
