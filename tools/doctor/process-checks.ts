import type { BoundUse, HealthReport } from '../../src/operations/health-report.js';
import { bytesText, type Condition, condition, type PickerReading } from './condition.js';
import { sumOf } from './exposition.js';

/** Share in use from which on a bound is reported. */
const BOUND_WARNING = 0.8;
/** Difference of clocks that certificates, tokens and logs tolerate. */
const SKEW_MS_MAX = 2_000;
const MEMORY_WARNING = 0.9;

/** Process: readiness, bounds, memory, clock, configuration. */
export function processConditions(reading: PickerReading): readonly Condition[] {
  const { health } = reading;
  return [
    ...poolsFile(reading),
    ...keptFiles(reading),
    ...(health === undefined
      ? [unreadable(reading)]
      : [...readiness(health), ...memory(health), ...configuration(health)]),
    ...boundsOf(reading).flatMap(boundCondition),
    ...clock(reading),
    ...reading.otherPools.map(({ name, unready }) =>
      condition('warning', 'pools', `${name} is not ready: ${unready.join('; ')}`, `pointsman doctor --pool ${name}`),
    ),
  ];
}

/** The bounds of the health report, and those of the metrics page. */
export function boundsOf({ health, samples }: PickerReading): readonly BoundUse[] {
  const files = samples.get('process_max_fds')?.[0]?.value;
  const open = samples.get('process_open_fds')?.[0]?.value ?? 0;
  const own =
    files === undefined ? [] : [{ name: 'open files', used: open, limit: files, setting: 'ulimit -n', fills: false }];
  return [...(health?.bounds ?? []), ...own];
}

/** The first line of all: pools that are added or changed in the file do not exist, or not as it has them. */
function poolsFile({ poolsProblem }: PickerReading): readonly Condition[] {
  if (poolsProblem === undefined) return [];
  const text = `the file of --pools is not in effect as it is: ${poolsProblem}`;
  return [condition('error', 'pools file', text, 'correct it; pointsman lint --pools FILE checks it')];
}

/** What a kept file holds, by its label, and the setting that names its folder. */
const KEPT_FILES: Readonly<Record<string, string>> = {
  usage: 'the usage of tenants (--usage-dir)',
  'prefix-index': 'the prefix index (--state-dir)',
  learned: 'what was learned (--state-dir, adaptation.stateFile)',
};

function keptFiles({ samples }: PickerReading): readonly Condition[] {
  const failed = (samples.get('pointsman_kept_file_unsaved') ?? []).filter(({ value }) => value > 0);
  if (failed.length === 0) return [];
  const names = failed.map(({ labels: { file = '' } }) => KEPT_FILES[file] ?? file).join(', ');
  const text = `cannot be written: ${names}; it is lost when the picker ends`;
  const severity = failed.some(({ labels: { file } }) => file === 'usage') ? 'error' : 'warning';
  return [
    condition(severity, 'files', text, 'the log names file and reason; make room on the disk, or correct the rights'),
  ];
}

function unreadable({ unreadable: why }: PickerReading): Condition {
  const remedy = 'ask on its own machine (kubectl port-forward), or with --token-file';
  return condition('note', 'debug pages', `not readable, so only the metrics are judged: ${why}`, remedy);
}

function readiness({ unready }: HealthReport): readonly Condition[] {
  if (unready.length === 0) return [];
  const remedy = 'proxies leave it out until that is over; see its log';
  return [condition('error', 'readiness', `not ready: ${unready.join('; ')}`, remedy)];
}

function boundCondition({ name, used, limit, setting, fills, remedy }: BoundUse): readonly Condition[] {
  const share = limit === 0 ? 0 : used / limit;
  if (share < BOUND_WARNING) return [];
  const text = `${name} ${Math.round(share * 100)} % full (${used} of ${limit})`;
  if (fills) {
    if (share < 1) return [];
    return [
      condition(
        'note',
        'bounds',
        `${text}: the oldest entries give way`,
        `raise ${setting} if prefixes are lost too early`,
      ),
    ];
  }
  return [condition(share >= 1 ? 'error' : 'warning', 'bounds', text, remedy ?? `raise ${setting}, or add replicas`)];
}

function memory({ memory: { resident, limit, needs } }: HealthReport): readonly Condition[] {
  if (limit === null) return [];
  const need = needs.reduce((sum, { bytes }) => sum + bytes, 0);
  if (resident > limit * MEMORY_WARNING) {
    const used = `${bytesText(resident)} of the limit of ${bytesText(limit)}`;
    const text = `${used} are in use: the process is about to be killed`;
    return [condition('error', 'memory', text, `raise the limit to ${bytesText(need)}`)];
  }
  if (need <= limit) return [];
  const parts = needs.map(({ what, bytes }) => `${bytesText(bytes)} for ${what}`).join(', ');
  const text = `the limit of ${bytesText(limit)} is below what its flags allow, ${bytesText(need)}: ${parts}`;
  return [condition('warning', 'memory', text, 'raise the limit, or lower those flags')];
}

function configuration({ configuration: { lastReload, warnings } }: HealthReport): readonly Condition[] {
  const found = warnings.map((warning) => condition('note', 'configuration', warning, 'pointsman lint says more'));
  if (lastReload === 'invalid') {
    const text = 'the file has a mistake: an older version is in effect';
    return [condition('error', 'configuration', text, 'pointsman lint names line and field'), ...found];
  }
  if (lastReload === 'restart_required') {
    const text = 'the file has changed in a part that is read at the start: an older version is in effect';
    return [condition('warning', 'configuration', text, 'restart the picker'), ...found];
  }
  return found;
}

function clock({ clock: read }: PickerReading): readonly Condition[] {
  if (read === undefined || Math.abs(read.skewMs) - read.uncertainMs <= SKEW_MS_MAX) return [];
  const side = read.skewMs > 0 ? 'ahead of' : 'behind';
  const text = `the picker's is ${(Math.abs(read.skewMs) / 1000).toFixed(1)} s ${side} the clock here`;
  return [
    condition('warning', 'clock', text, 'synchronise both machines: certificates, leases and traces depend on it'),
  ];
}

/** Requests that were given a destination since the start. */
export function requestsOf({ samples }: PickerReading): number {
  return sumOf(samples, 'llm_d_epp_request_total');
}
