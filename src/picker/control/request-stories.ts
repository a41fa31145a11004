import type { DecisionLog } from '../../core/decision-log.js';
import type { CoreInstance } from '../../core/memory.js';
import { wallClockMs } from '../../operations/debug-pages.js';
import { RequestStories } from '../../operations/why/request-story.js';
import { SeriesLabels } from '../../operations/why/series-labels.js';
import type { CompiledProfile } from '../../scheduling/program.js';
import type { PoolController } from './pool-controller.js';

/** Sources of the records of past requests. */
export interface StorySources {
  readonly core: CoreInstance;
  readonly pool: PoolController;
  /** The running profiles, by number. */
  readonly profiles: () => readonly CompiledProfile[];
}

/** Records of past requests of a picker. */
export function requestStories({ core, pool, profiles }: StorySources, log: DecisionLog): RequestStories {
  return new RequestStories({
    log,
    labels: new SeriesLabels(core),
    endpointOf: (slot, generation) => pool.nameOf(slot, generation),
    profiles,
    wallMs: wallClockMs,
  });
}
