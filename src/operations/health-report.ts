import type { ServerResponse } from 'node:http';
import type { GuardState } from '../adaptation/guard.js';
import type { Route } from './telemetry/metrics-server.js';
import type { RecentTraffic } from './why/traffic-figures.js';

/** Use of a bound. */
export interface BoundUse {
  readonly name: string;
  readonly used: number;
  readonly limit: number;
  /** Flag or setting that raises it. */
  readonly setting: string;
  /** Whether a full one is the usual state, as of a cache that drops its oldest entry. */
  readonly fills: boolean;
  /** Remedy where raising it would only put the problem off; absent = raise it. */
  readonly remedy?: string;
}

/** Part of a scorer in the last decisions whose columns are kept. */
export interface ScorerUse {
  readonly scorer: string;
  /** Decisions with several candidates in which it ran. */
  readonly decisions: number;
  /** Number of these in which its scores differed. */
  readonly apart: number;
  /** Number of these in which another endpoint scores as high as the pick, or higher, without it. */
  readonly decided: number;
}

/** Memory of the process in bytes. */
export interface MemoryUse {
  readonly resident: number;
  /** Limit of the control group; null = none. */
  readonly limit: number | null;
  /** Bound on the memory of the process with its flags, by part. */
  readonly needs: readonly { readonly what: string; readonly bytes: number }[];
}

/** What learned costs do now, and what an operator can do for them. */
export interface LearningUse {
  readonly mode: 'shadow' | 'auto' | 'always';
  readonly state: GuardState;
  /** Reason why the configured weights decide; null = learned costs do. */
  readonly why: string | null;
  /** Reason why the file of what an earlier run had learned was not used; null = it was, or there was none. */
  readonly fileUnused: string | null;
  /** Hardware classes that have coefficients of their own. */
  readonly classes: number;
  /** Label of endpoints by which they are of one class. */
  readonly hardwareLabel: string;
}

/** State of a picker for `pointsman doctor`. Nothing of a prompt is in it. */
export interface HealthReport {
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  readonly pool: string;
  readonly version: string;
  readonly uptimeSeconds: number;
  /** Reasons why it is not ready; empty = ready. */
  readonly unready: readonly string[];
  /** Age in milliseconds from which on signals count as unknown. */
  readonly stalenessMs: number;
  /** Milliseconds from one scrape of an endpoint to the next. */
  readonly refreshMs: number;
  readonly bounds: readonly BoundUse[];
  readonly memory: MemoryUse;
  readonly scorers: readonly ScorerUse[];
  /** Names and types of the plugins that run. */
  readonly plugins: readonly { readonly name: string; readonly type: string }[];
  readonly traffic: RecentTraffic;
  /** Rises in the last minute of counters that do not rise in a healthy picker, by the name of the metric. */
  readonly lastMinute: Readonly<Record<string, number>>;
  /** Absent = adaptation is off. */
  readonly learning?: LearningUse;
  /** Whether decisions read bodies of answers. */
  readonly readsAnswers: boolean;
  readonly configuration: {
    /** Outcome of the last version of its file; null = it has not changed since the start, or is not followed. */
    readonly lastReload: string | null;
    readonly warnings: readonly string[];
  };
}

/** Counters that the picker follows itself for the last minute, so that one look sees lasting errors. */
export const FOLLOWED_COUNTERS: readonly string[] = [
  'llm_d_epp_request_error_total',
  'pointsman_overload_rejections_total',
  'pointsman_plugin_failures_total',
  'pointsman_flow_control_refusals_total',
  'pointsman_replication_bad_messages_total',
  'pointsman_replication_forgotten_tenants_total',
  'pointsman_replication_forgotten_loads_total',
];

/** Name in `lastMinute` of the refusals by limits of tenants; they are among those of the queues, too. */
export const TENANT_REFUSALS = 'pointsman_flow_control_refusals_total{cause="tenant-limit"}';

/** Path of the report. */
export const HEALTH_PATH = '/debug/health';

/** `GET /debug/health`: the report as JSON. */
export function healthRoute(read: () => Promise<HealthReport>): Route {
  return async (_request, response: ServerResponse) => {
    const report = await read();
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });
    response.end(`${JSON.stringify(report, undefined, 2)}\n`);
  };
}

/** Intervals between scrapes that pass unseen, and the age that signals of shorter ones may have. */
const OLD_INTERVALS = 3;
const OLD_MS_MIN = 1_000;

/** Age from which on signals are old. @param refreshMs from one scrape of an endpoint to the next */
export function oldSignalsMs(refreshMs: number): number {
  return Math.max(OLD_MS_MIN, OLD_INTERVALS * refreshMs);
}

/** What the age of an endpoint's signals makes of them: unknown ones tell decisions nothing, old ones still do. */
export type SignalsState = 'fresh' | 'old' | 'unknown';

/**
 * State of an endpoint's signals by their age.
 * @param ageMs without the time by which the endpoint is scraped more rarely by design; undefined = never reached
 * @param times `stalenessMs`: age from which on they are unknown
 */
export function signalsState(
  ageMs: number | undefined,
  { stalenessMs, refreshMs }: { readonly stalenessMs: number; readonly refreshMs: number },
): SignalsState {
  if (ageMs === undefined || ageMs > stalenessMs) return 'unknown';
  return ageMs > oldSignalsMs(refreshMs) ? 'old' : 'fresh';
}
