import { errorMessage } from '../../src/runtime/error-message.js';
import { envoyConfiguration } from '../envoy/configuration.js';
import type { EnvoyFinding, PickerNeeds } from '../envoy/finding.js';
import { envoyFindings } from '../envoy/findings.js';

/** Counters of Envoy that grow at a limit, each with the limit's setting. */
const SIGNS: readonly (readonly [RegExp, string])[] = [
  [/^cluster\..*\.upstream_rq_pending_overflow$/, 'max_requests'],
  [/^cluster\..*\.upstream_rq_pending_overflow$/, 'max_pending_requests'],
  [/^cluster\..*\.upstream_cx_overflow$/, 'max_connections'],
  [/^cluster\..*\.upstream_rq_timeout$/, 'timeout'],
  [/^cluster\..*\.upstream_rq_per_try_timeout$/, 'per_try_timeout'],
  [/^cluster\..*\.upstream_rq_per_try_idle_timeout$/, 'per_try_idle_timeout'],
  [/^cluster\..*\.upstream_rq_max_duration_reached$/, 'max_stream_duration'],
  [/^cluster\..*\.upstream_rq_retry$/, 'retry_policy'],
  [/^http\..*\.downstream_rq_max_duration_reached$/, 'max_stream_duration'],
  [/^http\..*\.downstream_rq_too_large$/, 'per_connection_buffer_limit_bytes'],
  [/^http\..*\.rs_too_large$/, 'per_connection_buffer_limit_bytes'],
  [/^http\..*\.downstream_rq_timeout$/, 'request_timeout'],
  [/^http\..*\.downstream_rq_idle_timeout$/, 'idle_timeout'],
  [/^http\..*\.downstream_rq_idle_timeout$/, 'stream_idle_timeout'],
  [/^http\..*\.ext_proc\..*message_timeouts$/, 'message_timeout'],
  [/^http\..*\.ext_proc\..*failure_mode_allowed$/, 'failure_mode_allow'],
];
const FILTER =
  'overflow|_timeouts?$|_duration_reached|upstream_rq_retry$|too_large|downstream_rq_timeout|' +
  'failure_mode_allowed|per_try';
const ANSWER_TIMEOUT_MS = 10_000;

/** Values of counters by name. */
export type Counters = ReadonlyMap<string, number>;

/** The admin port of an Envoy. */
export class EnvoyAdmin {
  readonly #url: URL;

  constructor(url: URL) {
    this.#url = url;
  }

  /**
   * Findings of its configuration dump.
   * @param needs properties of the picker that the rules look at
   * @param pickerClusters as for envoyFindings
   * @throws {Error} one line
   */
  async findings(needs: PickerNeeds, pickerClusters: readonly string[]): Promise<readonly EnvoyFinding[]> {
    const configuration = envoyConfiguration(await this.#json('/config_dump'));
    try {
      return envoyFindings(configuration, needs, pickerClusters);
    } catch (error) {
      throw new Error(`--admin: ${this.#url.origin}/config_dump: ${errorMessage(error)}`);
    }
  }

  /** Counters of its limits. @throws {Error} one line */
  async counters(): Promise<Counters> {
    const { stats } = (await this.#json(
      `/stats?format=json&usedonly&filter=${encodeURIComponent(FILTER)}`,
    )) as StatsPage;
    return new Map(
      stats.flatMap(({ name, value }) => (name === undefined || value === undefined ? [] : [[name, value]])),
    );
  }

  async #json(path: string): Promise<unknown> {
    try {
      const answer = await fetch(new URL(path, this.#url), { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
      if (!answer.ok) throw new Error(`${answer.status}`);
      return await answer.json();
    } catch (error) {
      const cause = (error as { cause?: unknown }).cause ?? error;
      throw new Error(`--admin: ${this.#url.origin}${path.split('?', 1)[0]}: ${errorMessage(cause)}`);
    }
  }
}

interface StatsPage {
  readonly stats: readonly { readonly name?: string; readonly value?: number }[];
}

/** Settings whose counters have moved between two readings. */
export function movedSettings(before: Counters, after: Counters): readonly string[] {
  const moved = [...after].filter(([name, value]) => value > (before.get(name) ?? 0)).map(([name]) => name);
  return [...new Set(SIGNS.filter(([sign]) => moved.some((name) => sign.test(name))).map(([, setting]) => setting))];
}
