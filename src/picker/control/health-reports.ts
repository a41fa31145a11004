import { setImmediate as nextTurn } from 'node:timers/promises';
import { proxyNeeds, readsAnswerBodies } from '../../config/proxy-needs.js';
import { CORE } from '../../core/core-names.js';
import type { DecisionLog } from '../../core/decision-log.js';
import type { CoreInstance } from '../../core/memory.js';
import type { BoundUse, HealthReport, MemoryUse, ScorerUse } from '../../operations/health-report.js';
import type { LastMinute } from '../../operations/telemetry/last-minute.js';
import { recentTraffic } from '../../operations/why/recent-traffic.js';
import type { RequestStories } from '../../operations/why/request-story.js';
import { ScorerUses } from '../../operations/why/scorer-use.js';
import type { RecentTraffic } from '../../operations/why/traffic-figures.js';
import { counted } from '../../runtime/counted.js';
import { poolClockMs } from '../../runtime/pool-clock.js';
import { memoryLimit, programBytes } from '../memory-limit.js';
import type { PickerOptions } from '../picker-options.js';
import type { AdaptationControl } from './adaptation-control.js';
import type { ConfigurationReload } from './configuration-reload.js';
import type { FlowControl } from './flow-control.js';
import type { PoolController } from './pool-controller.js';

/** Decisions that are looked through for columns, and those that are taken. */
const RECORDS_MAX = 5_000;
const DECISIONS_MAX = 100;
/**
 * Work on decisions in one turn of the event loop: the control thread has health checks and scrapes to serve as well.
 */
const SLICE_MS = 1;
/** Age up to which the use of the scorers is told again: who asks often costs no more. */
const SCORERS_AGE_MS = 1_000;
/** Window of the figures of traffic, and bound on its decisions: as many as the page reads each second. */
const WINDOW_SECONDS = 60;
const TRAFFIC_MAX = 1_500;

/** Sources of the report. */
export interface HealthSources {
  readonly options: PickerOptions;
  readonly core: CoreInstance;
  readonly pool: Pick<PoolController, 'assignments' | 'leftOut'>;
  readonly flow: FlowControl | undefined;
  readonly reload: ConfigurationReload | undefined;
  readonly adaptation: Pick<AdaptationControl, 'use'>;
  readonly unready: () => readonly string[];
  /** Warnings about the running configuration. */
  readonly warnings: () => readonly string[];
  readonly log: DecisionLog;
  readonly stories: RequestStories;
  readonly configured: () => readonly { readonly name: string; readonly type: string }[];
  readonly lastMinute: LastMinute;
}

/** The state of the picker for `pointsman doctor`. Control thread only. */
export class HealthReports {
  readonly #sources: HealthSources;
  /** The use of the scorers, read or being read. */
  #scorers: Promise<readonly ScorerUse[]> | undefined;
  #scorersAtMs = Number.NEGATIVE_INFINITY;
  #traffic: RecentTraffic | undefined;
  #trafficAtMs = Number.NEGATIVE_INFINITY;

  constructor(sources: HealthSources) {
    this.#sources = sources;
  }

  /** Reads decisions in several turns of the event loop; everything else in one. */
  async read(): Promise<HealthReport> {
    const { options, core, reload, unready, warnings, configured, lastMinute, adaptation } = this.#sources;
    const scorers = await this.#scorerUses();
    const learning = adaptation.use;
    return {
      timeMs: Date.now(),
      pool: options.observe.poolName,
      version: options.version,
      uptimeSeconds: Math.round(process.uptime()),
      unready: unready(),
      ...scrapeTimes(options),
      bounds: boundsOf(this.#sources),
      memory: memoryOf(options, core),
      scorers,
      plugins: configured(),
      traffic: this.#recentTraffic(),
      lastMinute: lastMinute.rises,
      ...(learning === undefined ? {} : { learning }),
      readsAnswers: options.observe.asksUsage || readsAnswerBodies(proxyNeeds(options.configuration)),
      configuration: { lastReload: reload?.last ?? null, warnings: warnings() },
    };
  }

  /** Those who ask at the same time share one reading. */
  #scorerUses(): Promise<readonly ScorerUse[]> {
    if (this.#scorers !== undefined && performance.now() - this.#scorersAtMs <= SCORERS_AGE_MS) return this.#scorers;
    this.#scorersAtMs = Number.POSITIVE_INFINITY;
    this.#scorers = readScorers(this.#sources).finally(() => {
      this.#scorersAtMs = performance.now();
    });
    return this.#scorers;
  }

  #recentTraffic(): RecentTraffic {
    const now = performance.now();
    if (this.#traffic !== undefined && now - this.#trafficAtMs <= SCORERS_AGE_MS) return this.#traffic;
    this.#trafficAtMs = now;
    this.#traffic = trafficOf(this.#sources);
    return this.#traffic;
  }
}

/** Times of the informer of the engines' metrics, which may have an interval of its own. */
export function scrapeTimes({ decide, configuration }: PickerOptions): Pick<HealthReport, 'stalenessMs' | 'refreshMs'> {
  const { intervalMs } = configuration.metricsSource;
  return {
    stalenessMs: Math.max(decide.stalenessMs, 3 * (intervalMs ?? 0)),
    refreshMs: intervalMs ?? decide.refreshMetricsMs,
  };
}

/** Bounds with their use. Open streams are at least the charged and the waiting requests. */
function boundsOf({ options, core, pool, flow }: HealthSources): readonly BoundUse[] {
  const { call, sizes } = core;
  const charged = call.ledgerUsed() >>> 0;
  const queues = flow?.snapshot(0);
  const bound = (name: string, used: number, limit: number, setting: string, fills = false): BoundUse => ({
    ...{ name, used, limit, setting, fills },
  });
  const index = call.prefixCounter(CORE.PREFIX_COUNTER_BLOCKS) >>> 0;
  return [
    bound('endpoints', pool.assignments.length + pool.leftOut, sizes.endpoints, '--max-endpoints'),
    bound('streams', charged + (queues?.waiting ?? 0), options.bounds.maxStreams, '--max-streams'),
    bound('charged requests', charged, sizes.requests, '--max-streams'),
    bound('prefix index', index, sizes.indexBlocks, '--index-blocks', true),
    ...(queues?.bands ?? []).map(({ priority, requestsUsed, bytesUsed, tokensUsed }) => {
      const used = Math.max(requestsUsed, bytesUsed, tokensUsed);
      const queue = bound(`queue of priority ${priority}`, Math.round(used * 100), 100, 'flowControl.priorityBands');
      return {
        ...queue,
        remedy: 'add model servers, or have clients send less: a higher bound makes more requests wait longer',
      };
    }),
  ];
}

function memoryOf({ bounds: { shards, maxBufferedBytes } }: PickerOptions, { memory }: CoreInstance): MemoryUse {
  return {
    resident: process.memoryUsage.rss(),
    limit: memoryLimit() ?? null,
    needs: [
      {
        what: `the program with ${counted(shards, 'shard')}`,
        bytes: programBytes(shards),
      },
      { what: 'the pool with a full index (--index-blocks, --max-endpoints)', bytes: memory.buffer.byteLength },
      { what: 'request bodies (--max-buffered-bytes)', bytes: maxBufferedBytes },
    ],
  };
}

/**
 * Use of the scorers in the decisions of the last minute whose columns are kept, the last ones of them, a slice in each
 * turn of the event loop.
 */
export async function readScorers(
  { log, stories }: Pick<HealthSources, 'log' | 'stories'>,
  nowMs = poolClockMs(),
): Promise<readonly ScorerUse[]> {
  const uses = new ScorerUses();
  let since = performance.now();
  for (const record of log.recentWithColumns(DECISIONS_MAX, RECORDS_MAX)) {
    if (record.timeMs < nowMs - WINDOW_SECONDS * 1000) break;
    const scores = stories.scores(record);
    if (scores !== undefined) uses.add(scores);
    if (performance.now() - since < SLICE_MS) continue;
    await nextTurn();
    since = performance.now();
  }
  return uses.uses;
}

/** Where the requests of the last minute went, as far as the last TRAFFIC_MAX decisions tell. */
function trafficOf({ log, pool, stories }: HealthSources): RecentTraffic {
  const nowMs = poolClockMs();
  const records = log.recent(TRAFFIC_MAX).filter(({ timeMs }) => timeMs >= nowMs - WINDOW_SECONDS * 1000);
  const isCut = records.length === TRAFFIC_MAX;
  return recentTraffic({
    records,
    windowSeconds: isCut ? Math.max(1, Math.round((nowMs - records.at(-1)!.timeMs) / 1000)) : WINDOW_SECONDS,
    endpoints: new Map(pool.assignments.map(({ slot, endpoint }) => [slot, endpoint.id])),
    explain: ({ thread, number }) => stories.decisions(thread, number, 1)[0],
  });
}
