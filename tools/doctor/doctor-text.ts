import { counted } from '../../src/runtime/counted.js';
import { columns } from '../command-line/text-columns.js';
import type { Condition, PickerReading } from './condition.js';
import { boundsOf, requestsOf } from './process-checks.js';

/** Conditions that are shown without --all. */
const SHOWN_MAX = 7;

/** The diagnosis in about ten lines: the picker, its conditions, its bounds. */
export function doctorText(reading: PickerReading, conditions: readonly Condition[], all: boolean): string {
  const shown = all ? conditions : conditions.slice(0, SHOWN_MAX);
  const rows = shown.map(({ severity, about, text, remedy }) => [severity, about, `${text}; ${remedy}`]);
  const more = conditions.length - shown.length;
  return `${[
    headText(reading),
    ...(conditions.length === 0 ? ['nothing is wrong or odd'] : columns(rows)),
    ...(more > 0 ? [`and ${more} more: --all`] : []),
    `bounds: ${boundsText(reading)}`,
  ].join('\n')}\n`;
}

function headText(reading: PickerReading): string {
  const { health, samples } = reading;
  const endpoints = samples.get('pointsman_endpoint_inflight_requests')?.length ?? 0;
  const running = samples.get('pointsman_ledger_entries')?.[0]?.value ?? 0;
  const name =
    health === undefined
      ? []
      : [`pool ${health.pool}`, `pointsman ${health.version}`, `up ${upText(health.uptimeSeconds)}`];
  return [
    ...name,
    counted(endpoints, 'endpoint'),
    counted(requestsOf(reading), 'request'),
    `${running} in flight`,
  ].join(', ');
}

function upText(seconds: number): string {
  const [days, hours, minutes] = [seconds / 86_400, (seconds % 86_400) / 3600, (seconds % 3600) / 60].map(Math.floor);
  if (days! > 0) return `${days} d ${hours} h`;
  return hours! > 0 ? `${hours} h ${minutes} min` : minutes! > 0 ? `${minutes} min` : `${seconds} s`;
}

function boundsText(reading: PickerReading): string {
  const bounds = boundsOf(reading).filter(({ limit }) => limit > 0);
  return bounds.map(({ name, used, limit }) => `${name} ${percent(used / limit)}`).join(', ');
}

function percent(share: number): string {
  return share > 0 && share < 0.01 ? '< 1 %' : `${Math.round(share * 100)} %`;
}
