import type { MetricsExposition, Sample } from '../telemetry/exposition.js';

/** By file that a picker writes again and again: whether its last write has failed; undefined = it is not kept. */
export type UnsavedFiles = Readonly<Record<'learned' | 'prefix-index' | 'usage', boolean | undefined>>;

/** By file that a picker reads at the start: whether it was there and could not be used; undefined = it is not kept. */
export type UnusedFiles = Readonly<Record<'learned' | 'prefix-index', boolean | undefined>>;

/** Registers whether each kept file could be read at the start and written since. */
export function addKeptFileMetrics(
  exposition: MetricsExposition,
  { unsaved, unused }: { readonly unsaved: () => UnsavedFiles; readonly unused: () => UnusedFiles },
): void {
  exposition.addGauge({
    name: 'pointsman_kept_file_unsaved',
    help:
      'Whether the last write of a kept file has failed (learned: what was learned, prefix-index, usage: that of ' +
      'tenants). The file of before is whole.',
    labels: ['file'],
    read: () => samplesOf(unsaved()),
  });
  exposition.addGauge({
    name: 'pointsman_kept_file_unused',
    help:
      'Whether the kept file of an earlier run (learned: what was learned, prefix-index) was there at the start and ' +
      'could not be used: damaged, too old, of another version or of other settings. The log has the reason.',
    labels: ['file'],
    read: () => samplesOf(unused()),
  });
}

function samplesOf(files: Readonly<Record<string, boolean | undefined>>): Sample[] {
  return Object.entries(files).flatMap(([file, is]) =>
    is === undefined ? [] : [{ labels: { file }, value: is ? 1 : 0 }],
  );
}
