import type { ShownAdaptation } from '../../adaptation/shown-adaptation.js';
import { CACHE_SOURCES } from '../../contract/engine-figures.js';
import { CORE } from '../../core/core-names.js';
import { DecisionLog, type DecisionRecord } from '../../core/decision-log.js';
import type { EndpointReading, EndpointTable, HeldBack } from '../../core/endpoint-table.js';
import type { CoreInstance } from '../../core/memory.js';
import { wallClockMs } from '../../operations/debug-pages.js';
import { candidateShown } from '../../operations/page/candidate.js';
import { type ObjectiveNames, objectiveNames } from '../../operations/page/objective-names.js';
import type {
  DecisionShown,
  EndpointShown,
  EndpointState,
  EngineShown,
  HeldBackShown,
  Point,
  Snapshot,
} from '../../operations/page/snapshot.js';
import { type EndpointTraffic, matchedOf, Traffic } from '../../operations/page/traffic.js';
import { poolClockMs } from '../../runtime/pool-clock.js';
import type { AdaptationControl } from './adaptation-control.js';
import type { EngineRefusals } from './engine-refusals.js';
import type { FlowControl } from './flow-control.js';
import { FLOWS_SHOWN } from './flow-report.js';
import type { PoolController } from './pool-controller.js';
import { sessionsShown } from './session-page.js';
import type { ShadowControl } from './shadow-control.js';

/** Window of the figures of traffic and cache. */
const WINDOW_SECONDS = 60;
/** Bound on the decisions that a snapshot reads. */
const RECORDS_MAX = 1500;
/** Decisions that the page lists. */
const DECISIONS_SHOWN = 20;
/** Points of the charts before the first snapshot of a viewer. */
const POINTS_BEFORE = 90;

/** State of a part of the picker for the page. */
export interface PartState {
  readonly name: string;
  readonly ok: boolean;
  readonly text: string;
}

/** What the polls of an endpoint's metrics page say of it. */
interface PolledState {
  readonly isScraped: boolean;
  readonly isFrozen: boolean;
  readonly ageMs: number;
}

/** Sources of the page's snapshots. */
export interface PageSources {
  readonly core: CoreInstance;
  readonly table: EndpointTable;
  readonly pool: PoolController;
  readonly flow: FlowControl | undefined;
  readonly poolName: string;
  /** Names of all pools of the process; undefined = there is one only. */
  readonly pools: (() => readonly string[]) | undefined;
  readonly version: string;
  readonly adaptation: () => ShownAdaptation;
  readonly decided: Pick<AdaptationControl, 'times' | 'armOf'>;
  /** Undefined = nothing decides in shadow. */
  readonly shadow: ShadowControl | undefined;
  readonly unready: () => readonly string[];
  readonly parts: () => readonly PartState[];
  /** Polls of a slot's metrics page; undefined = metrics are not fetched. */
  readonly polled: (slot: number) => PolledState | undefined;
}

/** Makes the snapshots of the page from shared memory. Decisions of a waiting request count once. */
export class PageSnapshots {
  readonly #sources: PageSources;
  readonly #log: DecisionLog;

  constructor(sources: PageSources) {
    this.#sources = sources;
    this.#log = new DecisionLog(sources.core);
  }

  /** @param first whether the points before it are added, for a new viewer */
  read(first: boolean): Snapshot {
    const { pool, poolName, version, shadow, unready, parts } = this.#sources;
    const nowMs = poolClockMs();
    const since = nowMs - Math.max(WINDOW_SECONDS, first ? POINTS_BEFORE : 0) * 1000;
    const records = this.#log.recent(RECORDS_MAX).filter(({ timeMs }) => timeMs >= since);
    const recent = records.filter(({ timeMs }) => timeMs >= nowMs - WINDOW_SECONDS * 1000);
    const traffic = new Traffic(recent);
    const objectives = objectiveNames(pool.rules.objectives);
    const byEndpoint = traffic.endpoints();
    const endpoints = pool.assignments.map(({ slot, endpoint }) =>
      this.#endpoint(slot, endpoint.id, nowMs, byEndpoint),
    );
    return {
      time: Date.now() / 1000,
      pool: poolName,
      pools: this.#sources.pools?.() ?? null,
      version,
      unready: unready(),
      windowSeconds: Math.round(windowOf(recent, nowMs)),
      inflight: endpoints.reduce((sum, { inflight }) => sum + inflight, 0),
      endpoints,
      priorities: traffic.priorities(objectives),
      cache: traffic.cache(),
      queues: this.#queues(objectives),
      sessions: this.#sessions(),
      adaptation: this.#adaptation(traffic),
      candidate: shadow === undefined ? null : candidateShown(shadow.state, shadow.totals.read(), nowMs),
      decisions: this.#log.recent(DECISIONS_SHOWN).map((record) => this.#decision(record)),
      parts: parts(),
      points: pointsOf(new Traffic(records), nowMs, first ? POINTS_BEFORE : 1),
    };
  }

  #endpoint(slot: number, id: string, nowMs: number, traffic: ReadonlyMap<number, EndpointTraffic>): EndpointShown {
    const reading = this.#sources.table.read(slot);
    const { waiting, running, kvUsage, inflight, inflightTokens: tokens, signalTimeMs } = reading;
    const polled = this.#sources.polled(slot);
    const { share = 0, hitRate = null, ttftMs = null } = traffic.get(slot) ?? {};
    return {
      id,
      state: stateOf(reading, polled),
      inflight,
      tokens,
      waiting: waiting ?? null,
      running: running ?? null,
      kvUsage: kvUsage ?? null,
      ageMs: signalTimeMs === 0 ? null : Math.round(polled?.ageMs ?? nowMs - signalTimeMs),
      share,
      hitRate,
      ttftMs,
      engine: engineShown(this.#sources.pool.refusals, slot),
      heldBack: heldBackShown(this.#sources.table.heldBack(slot, nowMs)),
    };
  }

  #decision(record: DecisionRecord): DecisionShown {
    const { slot, generation } = record;
    return {
      id: `${record.thread}.${record.number}`,
      requestId: record.requestId ?? null,
      time: wallClockMs(record.timeMs) / 1000,
      endpoint: slot === undefined ? null : this.#sources.pool.nameOf(slot, generation),
      status: record.status,
      end: record.end ?? null,
      httpStatus: record.httpStatus,
      promptTokens: record.promptTokens,
      matchedTokens: matchedOf(record),
      ttftMs: record.firstOutputMs ?? null,
      waitedMs: record.waitedMs,
      columns: this.#log.columns(record) !== undefined,
    };
  }

  #queues(objectives: ObjectiveNames): Snapshot['queues'] {
    const { flow } = this.#sources;
    if (flow === undefined) return null;
    const { waiting, bands } = flow.snapshot(FLOWS_SHOWN);
    return {
      waiting,
      why: null,
      bands: bands.map((band) => ({
        priority: band.priority,
        objectives: objectives.get(band.priority) ?? [],
        waiting: band.waiting,
        running: band.running,
        used: Math.max(band.requestsUsed, band.bytesUsed, band.tokensUsed),
        flows: band.flows.map(({ flow: name, waiting: inFlow, running, headAgeMs }) => ({
          flow: name,
          waiting: inFlow,
          running,
          headAgeMs: headAgeMs ?? null,
        })),
      })),
    };
  }

  #sessions(): Snapshot['sessions'] {
    const { flow, pool } = this.#sources;
    const figures = flow?.sessionFigures();
    return figures === undefined ? null : sessionsShown(figures, (slot) => pool.endpointOf(slot)?.id);
  }

  #adaptation(traffic: Traffic): Snapshot['adaptation'] {
    const { mode, arm, inWords, shares } = this.#sources.adaptation();
    const { decided } = this.#sources;
    return {
      mode,
      arm,
      inWords,
      shares: shares === undefined ? null : { ...shares },
      deciders: traffic.deciders((tag) => decided.armOf(tag)),
      times: decided.times.map(({ timeMs, predictedMs, observedMs }) => ({
        time: Math.round(wallClockMs(timeMs) / 1000),
        predictedMs: Math.round(predictedMs * 10) / 10,
        observedMs: Math.round(observedMs * 10) / 10,
      })),
    };
  }
}

/** @param polled undefined = metrics are not fetched */
function stateOf({ state, ejection, death, silent }: EndpointReading, polled: PolledState | undefined): EndpointState {
  if (state === 2) return 'draining';
  if (death === CORE.DEATH_DEAD) return 'dead';
  if (silent) return 'silent';
  if (ejection === 0 && polled?.isScraped === false) return 'never reached';
  if (ejection === 0) return polled?.isFrozen === true ? 'frozen page' : 'live';
  return ejection === 1 ? 'ejected' : 'probed';
}

function heldBackShown({ veto, warming }: HeldBack): HeldBackShown | null {
  return veto === undefined && warming === undefined ? null : { veto: veto ?? null, warming: warming ?? null };
}

function engineShown(refusals: EngineRefusals, slot: number): EngineShown | null {
  const figures = refusals.figures(slot);
  if (figures === undefined) return null;
  const { deferred, externalQueries = 0, externalHits = 0, cachedBySource } = figures;
  const cached = cachedBySource.reduce<number>((sum, tokens) => sum + (tokens ?? 0), 0);
  const shares = CACHE_SOURCES.flatMap((source, i) => {
    const tokens = cachedBySource[i] ?? 0;
    return tokens === 0 ? [] : [[source, tokens / cached] as const];
  });
  return {
    deferred: deferred ?? null,
    refusedPerSecond: refusals.perSecond(slot),
    externalHitRate: externalQueries === 0 ? null : externalHits / externalQueries,
    cachedBySource: Object.fromEntries(shares),
  };
}

/** Seconds that the decisions cover: fewer than the window under heavy traffic. */
function windowOf(records: readonly DecisionRecord[], nowMs: number): number {
  if (records.length < RECORDS_MAX) return WINDOW_SECONDS;
  return Math.max(1, (nowMs - records.at(-1)!.timeMs) / 1000);
}

/** A point for each of the last seconds, the oldest first. */
function pointsOf(traffic: Traffic, nowMs: number, count: number): Point[] {
  return Array.from({ length: count }, (_, i) => {
    const atMs = nowMs - (count - 1 - i) * 1000;
    return traffic.point(atMs, wallClockMs(atMs));
  });
}
