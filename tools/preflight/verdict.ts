import { columns } from '../command-line/text-columns.js';
import type { EnvoyFinding } from '../envoy/finding.js';
import { pathText } from '../envoy/setting.js';
import type { ProbeResult } from './test-run.js';

/** A probe with the settings that limit it. */
export interface Verdict extends ProbeResult {
  /** Names of the settings; several = one of them. */
  readonly settings: readonly string[];
  /** Findings of the configuration dump about these. */
  readonly findings: readonly EnvoyFinding[];
}

/**
 * Names the settings behind a failed probe: those with a counter that moved, else those that the dump finds too small,
 * else all that fit the symptom.
 * @param moved settings whose counters in Envoy have moved during the probe
 * @param found findings of the configuration dump
 */
export function verdictOf(result: ProbeResult, moved: readonly string[], found: readonly EnvoyFinding[]): Verdict {
  if (result.ok) return { ...result, settings: [], findings: [] };
  const limiting = found.filter(({ severity }) => severity !== 'note');
  const about = (names: readonly string[]) => limiting.filter(({ setting }) => names.includes(setting));
  const counted = about(moved);
  const suspected = counted.length > 0 ? counted : about(result.suspects);
  if (suspected.length > 0) {
    const worst = suspected.some(({ severity }) => severity === 'error');
    const findings = worst ? suspected.filter(({ severity }) => severity === 'error') : suspected;
    return { ...result, settings: [...new Set(findings.map(({ setting }) => setting))], findings };
  }
  return { ...result, settings: moved.length > 0 ? moved : result.suspects, findings: [] };
}

/**
 * The verdicts as lines, then what only the configuration dump shows.
 * @param found undefined = no dump was given
 */
export function verdictText(verdicts: readonly Verdict[], found: readonly EnvoyFinding[] | undefined): string {
  const rows = verdicts.map(({ ok, probe, text }) => [ok ? 'ok' : 'failed', probe, text]);
  const lines = columns(rows).flatMap((line, index) => [line, ...causes(verdicts[index]!, found !== undefined)]);
  const told = new Set(verdicts.flatMap(({ findings }) => findings));
  const rest = (found ?? []).filter((one) => one.severity !== 'note' && !told.has(one));
  const failures = verdicts.filter(({ ok }) => !ok).length;
  return `${[
    ...lines,
    ...(rest.length === 0
      ? []
      : ['', 'found by reading the configuration:', ...rest.map((one) => `  ${one.severity}: ${findingLine(one)}`)]),
    '',
    failures === 0 ? 'every probe passed' : `${failures} of ${verdicts.length} probes failed`,
  ].join('\n')}\n`;
}

function causes({ ok, settings, findings }: Verdict, isRead: boolean): readonly string[] {
  if (ok) return [];
  if (findings.length > 0) return findings.map((one) => `  limited by ${findingLine(one)}`);
  if (settings.length === 0) return [];
  const names = settings.length === 1 ? settings[0] : `one of ${settings.join(', ')}`;
  const ownFlag = settings.every((setting) => setting.startsWith('--'));
  return [`  limited by ${names}${isRead || ownFlag ? '' : '; --admin shows its value'}`];
}

function findingLine({ setting, limits, remedy, path }: EnvoyFinding): string {
  return `${setting}: ${limits}; ${remedy} (${pathText(path)})`;
}

/** Exit code: 0 = every probe passed and the dump has no error. */
export function exitCodeOf(verdicts: readonly Verdict[], found: readonly EnvoyFinding[]): number {
  return verdicts.every(({ ok }) => ok) && found.every(({ severity }) => severity !== 'error') ? 0 : 1;
}
