import { proxyNeeds, readsAnswerBodies } from '../../config/proxy-needs.js';
import { CORE } from '../../core/core-names.js';
import type { DecisionLog } from '../../core/decision-log.js';
import type { CoreInstance } from '../../core/memory.js';
import type { BoundUse, HealthReport, MemoryUse } from '../../operations/health-report.js';
import type { ConfigurationShown } from '../../operations/page/snapshot.js';
import type { RequestStories } from '../../operations/why/request-story.js';
import { scorerUse } from '../../operations/why/scorer-use.js';
import type { PickerOptions } from '../picker-options.js';
import type { ConfigurationReload } from './configuration-reload.js';
import type { FlowControl } from './flow-control.js';
import type { PoolController } from './pool-controller.js';

/** Decisions that are looked through for columns, and those that are taken. */
const RECORDS_MAX = 5_000;
const DECISIONS_MAX = 100;
/** Memory of an idle picker with one shard and of a further shard (docs/performance.md, docs/sizing.md). */
const IDLE_BYTES = 130_000_000;
const SHARD_BYTES = 40_000_000;

/** Sources of the report. */
export interface HealthSources {
  readonly options: PickerOptions;
  readonly core: CoreInstance;
  readonly pool: Pick<PoolController, 'assignments' | 'leftOut'>;
  readonly flow: FlowControl | undefined;
  readonly reload: ConfigurationReload | undefined;
  readonly unready: () => readonly string[];
  readonly configuration: () => ConfigurationShown;
  readonly log: DecisionLog;
  readonly stories: RequestStories;
}

/** The state of the picker for `pointsman doctor`. */
export function healthReport(sources: HealthSources): HealthReport {
  const { options, reload, unready, configuration } = sources;
  return {
    timeMs: Date.now(),
    pool: options.poolName,
    version: options.version,
    uptimeSeconds: Math.round(process.uptime()),
    unready: unready(),
    stalenessMs: options.stalenessMs,
    bounds: boundsOf(sources),
    memory: memoryOf(options, sources.core),
    scorers: scorersOf(sources),
    readsAnswers: readsAnswerBodies(proxyNeeds(options.configuration)),
    configuration: { lastReload: reload?.last ?? null, warnings: configuration().warnings },
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
    bound('endpoints', pool.assignments.length + pool.leftOut, options.maxEndpoints, '--max-endpoints'),
    bound('streams', charged + (queues?.waiting ?? 0), options.maxStreams, '--max-streams'),
    bound('charged requests', charged, sizes.requests, '--max-streams'),
    bound('prefix index', index, sizes.indexBlocks, '--index-blocks', true),
    ...(queues?.bands ?? []).map(({ priority, requestsUsed, bytesUsed, tokensUsed }) => {
      const used = Math.max(requestsUsed, bytesUsed, tokensUsed);
      return bound(`queue of priority ${priority}`, Math.round(used * 100), 100, 'flowControl.priorityBands');
    }),
  ];
}

function memoryOf({ shards, maxBufferedBytes }: PickerOptions, { memory }: CoreInstance): MemoryUse {
  const limit = process.constrainedMemory();
  return {
    resident: process.memoryUsage.rss(),
    // 0 and figures beyond any machine say that there is no limit.
    limit: limit > 0 && limit < Number.MAX_SAFE_INTEGER ? limit : null,
    needs: [
      {
        what: `the program with ${shards} shard${shards === 1 ? '' : 's'}`,
        bytes: IDLE_BYTES + (shards - 1) * SHARD_BYTES,
      },
      { what: 'the pool with a full index (--index-blocks, --max-endpoints)', bytes: memory.buffer.byteLength },
      { what: 'request bodies (--max-buffered-bytes)', bytes: maxBufferedBytes },
    ],
  };
}

function scorersOf({ log, stories }: HealthSources): HealthReport['scorers'] {
  const kept = log.recent(RECORDS_MAX).filter((record) => log.columns(record) !== undefined);
  const decisions = kept.slice(0, DECISIONS_MAX).flatMap(({ thread, number }) => {
    const id = `${thread}.${number}`;
    return stories.tell(id)?.decisions.filter((decision) => decision.id === id) ?? [];
  });
  return scorerUse(decisions);
}
