import { endpointColumns } from '../../core/hook-columns.js';
import { predictedColumns } from '../../core/latency-predictions.js';
import type { CoreInstance } from '../../core/memory.js';
import type { LatencySource } from '../../ingress/exchange.js';
import type { ServedLatency } from '../../prediction/servers/served-latency.js';
import type { RequestRecorder } from '../../response/recorder.js';
import type { CompiledScheduling } from '../../scheduling/program.js';
import type { CoreScheduler, SchedulerOptions } from '../../scheduling/scheduler.js';
import { ServedPredictions } from '../../scheduling/served-predictions.js';

type Prediction = CompiledScheduling['prediction'];

/** Whether requests are held until prediction servers have answered. */
function asksServers(prediction: Prediction): boolean {
  return prediction?.predicts === true && (prediction.servers?.prediction.length ?? 0) > 0;
}

/** Prediction settings of the scheduler; undefined when no prediction servers are asked. */
export function servedBy(core: CoreInstance, prediction: Prediction): SchedulerOptions['served'] {
  if (!asksServers(prediction)) return undefined;
  return { predictions: new ServedPredictions(predictedColumns(core)), columns: endpointColumns(core) };
}

/** Client of the prediction servers for one shard; undefined when none are asked. */
export function createLatencySource(
  prediction: Prediction,
  scheduler: CoreScheduler,
  recorder: RequestRecorder,
): (LatencySource & { close(): Promise<void> }) | undefined {
  const servers = prediction?.servers;
  if (prediction === undefined || servers === undefined || !asksServers(prediction)) return undefined;
  const now = () => performance.now();
  // The client is loaded only where servers are named.
  const loading: Promise<ServedLatency> = import('../../prediction/servers/served-latency.js').then(
    (module) => new module.ServedLatency({ ...prediction, servers }, now),
  );
  return {
    close: async () => (await loading).close(),
    async predict(input, signal) {
      const outlook = scheduler.outlook(input);
      if (outlook === undefined || outlook.endpoints.length === 0)
        return { outcome: 'predicted', predictions: undefined };
      const startedAt = now();
      const answer = await (await loading).predict(outlook, signal);
      const { model, targetModel, fairnessId, priority } = input;
      const labels = { model, target: targetModel, fairness: fairnessId, priority };
      recorder.predictionAsked(answer.outcome, labels, (now() - startedAt) / 1_000);
      return answer;
    },
  };
}
