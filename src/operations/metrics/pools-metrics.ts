import type { MetricsExposition } from '../telemetry/exposition.js';

/** Registers the metric of the file of `--pools`. @param problem reason why it is not in effect; undefined = it is */
export function addPoolsMetrics(exposition: MetricsExposition, problem: () => string | undefined): void {
  exposition.addGauge({
    name: 'pointsman_pools_file_rejected',
    help:
      '1 = the last version of the file of --pools, or a file that it names, could not be used: the pools are those ' +
      'of the version before.',
    read: () => [{ labels: {}, value: problem() === undefined ? 0 : 1 }],
  });
}
