import type { MetricsExposition } from '../telemetry/exposition.js';

/** By file that a picker writes again and again: whether its last write has failed; undefined = it is not kept. */
export type UnsavedFiles = Readonly<Record<'learned' | 'prefix-index' | 'usage', boolean | undefined>>;

/** Registers whether each kept file could be written. */
export function addKeptFileMetrics(exposition: MetricsExposition, unsaved: () => UnsavedFiles): void {
  exposition.addGauge({
    name: 'pointsman_kept_file_unsaved',
    help:
      'Whether the last write of a kept file has failed (learned: what was learned, prefix-index, usage: that of ' +
      'tenants). The file of before is whole.',
    labels: ['file'],
    read: () =>
      Object.entries(unsaved()).flatMap(([file, failed]) =>
        failed === undefined ? [] : [{ labels: { file }, value: failed ? 1 : 0 }],
      ),
  });
}
