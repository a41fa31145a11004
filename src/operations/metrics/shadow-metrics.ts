import type { MetricsExposition } from '../telemetry/exposition.js';

/** Registers the metrics of the candidate configuration that the control thread knows. */
export function addShadowMetrics(
  exposition: MetricsExposition,
  read: () => { readonly every: number; readonly counts: Readonly<Record<string, number>> },
): void {
  exposition.addGauge({
    name: 'pointsman_shadow_every',
    help: 'Requests from one decision of the candidate configuration to the next; 1 = it decides each.',
    read: () => [{ labels: {}, value: read().every }],
  });
  exposition.addCounter({
    name: 'pointsman_shadow_config_reloads_total',
    help: 'Versions of the candidate configuration file, by outcome.',
    labels: ['outcome'],
    read: () => Object.entries(read().counts).map(([outcome, value]) => ({ labels: { outcome }, value })),
  });
}
