import type { MetricsExposition } from '../telemetry/exposition.js';

/**
 * Registers the metric of the file of `--pools`.
 * @param problem reason why it, or a pool of it, is not in effect; undefined = all of it is
 */
export function addPoolsMetrics(exposition: MetricsExposition, problem: () => string | undefined): void {
  exposition.addGauge({
    name: 'pointsman_pools_file_rejected',
    help:
      '1 = the last version of the file of --pools, or a pool of it, could not be used: it is not served, or as in ' +
      'the version before.',
    read: () => [{ labels: {}, value: problem() === undefined ? 0 : 1 }],
  });
}
