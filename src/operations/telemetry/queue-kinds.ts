// What flow control counts: waiting requests, ends of waits, refusals.
import { counter, gauge, histogram, keep, kind, older, schedulingTimes } from './metric-kind.js';

const queueTimes = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

const queueLabels = ['fairness_id', 'priority', 'inference_pool', 'model_name', 'target_model_name'] as const;
const olderQueue = (name: string, ...labels: string[]) =>
  older(`inference_extension_flow_control_${name}`, keep(...labels));

/** Waiting requests, while flow control is on. */
export const queueKind = kind(88, queueLabels, {
  // The first metric of the kind: once it has counted, the gauges are also shown at 0 and do not vanish with the queue.
  left: counter('pointsman_flow_control_flow_requests_total', 'Requests that flow control is done with, by flow.'),
  size: gauge('llm_d_epp_flow_control_queue_size', 'Requests that wait.', olderQueue('queue_size', ...queueLabels)),
  bytes: gauge(
    'llm_d_epp_flow_control_queue_bytes',
    'Bytes of the bodies of requests that wait.',
    olderQueue('queue_bytes', ...queueLabels),
  ),
});

/** Ends of waits. */
export const queueEndKind = kind(89, ['outcome', ...queueLabels], {
  duration: histogram(
    'llm_d_epp_flow_control_request_queue_duration_seconds',
    'Seconds that requests waited, by how the wait ended.',
    queueTimes,
    olderQueue('request_queue_duration_seconds', 'outcome', ...queueLabels),
  ),
});

export const queueTotalKind = kind(90, ['outcome', 'priority', 'inference_pool'], {
  total: counter('llm_d_epp_flow_control_requests_total', 'Requests by what flow control did with them.'),
});

/**
 * Time from a decision to the queues. Counted by the control thread; by shards, at 0, for requests that did not wait.
 */
export const enqueueKind = kind(91, ['fairness_id', 'outcome', 'priority'], {
  duration: histogram(
    'llm_d_epp_flow_control_request_enqueue_duration_seconds',
    'Seconds from the decision that a request waits until it stands in a queue, or was refused there.',
    schedulingTimes,
    olderQueue('request_enqueue_duration_seconds', 'fairness_id', 'outcome', 'priority'),
  ),
});

export const refusalKind = kind(92, ['cause', 'priority'], {
  total: counter(
    'pointsman_flow_control_refusals_total',
    'Requests that were not let into a queue, by the bound they met.',
  ),
});
