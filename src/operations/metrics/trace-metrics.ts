import type { MetricsExposition } from '../telemetry/exposition.js';
import type { SpanCounts } from '../tracing/span-queue.js';

/** Spans of the traces, by the counts of their exporter. */
export interface TraceReadings {
  readonly counts: SpanCounts;
  readonly waiting: number;
}

/** Registers the metrics of the traces. */
export function addTraceMetrics(exposition: MetricsExposition, read: () => TraceReadings): void {
  exposition.addCounter({
    name: 'pointsman_trace_spans_total',
    help: 'Spans by outcome: exported, failed (given up or refused by the receiver), dropped (a queue was full).',
    labels: ['outcome'],
    read: () => Object.entries(read().counts).map(([outcome, value]) => ({ labels: { outcome }, value })),
  });
  exposition.addGauge({
    name: 'pointsman_trace_spans_waiting',
    help: 'Spans that wait for their export.',
    read: () => [{ labels: {}, value: read().waiting }],
  });
}
