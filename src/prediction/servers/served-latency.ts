import type { PredictionServers, PredictionSettings } from '../../contract/prediction-settings.js';
import type { EndpointPredictions, RequestOutlook } from '../../scheduling/latency-outlook.js';
import { NotAsked, PredictionClient } from './prediction-client.js';
import { type PredictedTimes, predictionRow } from './prediction-wire.js';

/** Outcome of the prediction for one request; all but `predicted` and `partial` decide without servers. */
export type ServedOutcome = 'predicted' | 'partial' | 'late' | 'failed' | 'paused' | 'busy';

/** The answer for one request. */
export interface Served {
  readonly outcome: ServedOutcome;
  readonly predictions: EndpointPredictions | undefined;
}

/** Predictions of servers for the endpoints of a request, within the time that a request may wait. */
export class ServedLatency {
  readonly #settings: PredictionSettings;
  readonly #client: PredictionClient;

  /** @param now milliseconds of a monotonic clock */
  constructor(settings: PredictionSettings & { readonly servers: PredictionServers }, now: () => number) {
    this.#settings = settings;
    this.#client = new PredictionClient(settings.servers, now);
  }

  /** Never rejects. @param signal the request went away */
  async predict(outlook: RequestOutlook, signal: AbortSignal): Promise<Served> {
    const { waitMs, roleLabel } = this.#settings;
    const rows = outlook.endpoints.map((endpoint) => predictionRow(outlook, endpoint, roleLabel));
    let timer: NodeJS.Timeout | undefined;
    let gone: (() => void) | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(resolve, waitMs, 'late');
      gone = () => resolve('late');
      signal.addEventListener('abort', gone, { once: true });
    });
    try {
      const times = await Promise.race([this.#client.predict(rows), late]);
      return times === 'late' ? { outcome: 'late', predictions: undefined } : served(outlook, times);
    } catch (error) {
      return { outcome: error instanceof NotAsked ? error.outcome : 'failed', predictions: undefined };
    } finally {
      clearTimeout(timer);
      if (gone !== undefined) signal.removeEventListener('abort', gone);
    }
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}

function served({ endpoints }: RequestOutlook, times: readonly (PredictedTimes | undefined)[]): Served {
  return {
    outcome: times.every((time) => time !== undefined) ? 'predicted' : 'partial',
    predictions: {
      slots: endpoints.map(({ slot }) => slot),
      ttftMs: Float64Array.from(times, (time) => time?.ttftMs ?? Number.NaN),
      tpotMs: Float64Array.from(times, (time) => time?.tpotMs ?? Number.NaN),
    },
  };
}
