import { DEFAULT_SATURATION } from '../../admission/detectors/utilization.js';
import { endpointSaturation } from '../../admission/shedding.js';
import type { LoadedConfiguration } from '../../config/load.js';
import type { DecisionLog } from '../../core/decision-log.js';
import type { CoreInstance } from '../../core/memory.js';
import { wallClockMs } from '../../operations/debug-pages.js';
import { RequestStories } from '../../operations/why/request-story.js';
import type { RoomJudge } from '../../operations/why/room-text.js';
import { SeriesLabels } from '../../operations/why/series-labels.js';
import type { CompiledProfile } from '../../scheduling/program.js';
import type { FlowControl } from './flow-control.js';
import type { PoolController } from './pool-controller.js';

/** Sources of the records of past requests. */
export interface StorySources {
  readonly core: CoreInstance;
  readonly pool: PoolController;
  /** The running profiles, by number. */
  readonly profiles: () => readonly CompiledProfile[];
  /** The running configuration. */
  readonly current: () => Pick<LoadedConfiguration, 'saturationDetector'>;
  readonly flow: FlowControl | undefined;
}

/** Records of past requests of a picker. */
export function requestStories(sources: StorySources, log: DecisionLog): RequestStories {
  const { core, pool, profiles, current, flow } = sources;
  return new RequestStories({
    log,
    labels: new SeriesLabels(core),
    endpointOf: (slot, generation) => pool.nameOf(slot, generation),
    profiles,
    room: () => roomJudge(current(), flow !== undefined),
    wallMs: wallClockMs,
  });
}

/**
 * The detector of a configuration. Without one the queues learn what endpoints hold; without queues the default one
 * judges.
 */
function roomJudge(
  { saturationDetector }: Pick<LoadedConfiguration, 'saturationDetector'>,
  queues: boolean,
): RoomJudge {
  const learns = queues && saturationDetector === undefined;
  const settings = saturationDetector ?? DEFAULT_SATURATION;
  return {
    detector: learns ? 'learned-limit-detector' : settings.type,
    learns,
    saturation: ({ signalAgeMs, ...load }) =>
      endpointSaturation({ ...load, ageMs: signalAgeMs ?? Number.POSITIVE_INFINITY }, settings),
  };
}
