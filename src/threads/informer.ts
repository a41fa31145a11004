import { readFileSync } from 'node:fs';
import { ExpositionScanner } from '../core/exposition-scanner.js';
import type { CoreInstance } from '../core/memory.js';
import { EngineTable } from '../pool/engines/engine-table.js';
import { MetricsInformer, type SignalSink } from '../pool/sources/metrics-informer.js';
import type { PickerOptions } from './picker-options.js';
import { poolClockMs } from './pool-clock.js';

/**
 * The metrics informer of a picker, as its configuration asks for it.
 * @returns undefined when no metrics are to be fetched (`dataLayer.injectDefaults: false`)
 */
export function createInformer(
  options: PickerOptions,
  core: CoreInstance,
  sink: SignalSink,
): MetricsInformer | undefined {
  const { metricsSource, extractor } = options.configuration;
  if (!metricsSource.enabled) return undefined;
  return new MetricsInformer({
    scanner: new ExpositionScanner(core),
    sink,
    engines: new EngineTable({
      engineConfigs: extractor.engineConfigs,
      attributes: options.configuration.scheduling.attributes,
      engineLabelKey: extractor.engineLabelKeys[0],
      defaultEngine: extractor.defaultEngine,
    }),
    log: options.log,
    intervalMs: metricsSource.intervalMs ?? options.refreshMetricsMs,
    stalenessMs: options.stalenessMs,
    scheme: metricsSource.scheme,
    path: metricsSource.path,
    port: metricsSource.port,
    tls: {
      insecureSkipVerify: metricsSource.insecureSkipVerify,
      ca: pem('caCertPath', metricsSource.caCertPath),
      cert: pem('clientCertPath', metricsSource.clientCertPath),
      key: pem('clientKeyPath', metricsSource.clientKeyPath),
    },
    now: poolClockMs,
  });
}

function pem(parameter: string, path: string | undefined): string | undefined {
  if (path === undefined || path === '') return undefined;
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`metrics-data-source: ${parameter}: ${path} cannot be read: ${(error as Error).message}`);
  }
}
