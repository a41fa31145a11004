import { Adapter, type AdapterOptions, type AdapterReport, type Drive } from '../../../src/adaptation/adapter.js';
import type { LiveEndpoint } from '../../../src/adaptation/endpoint-speeds.js';
import type { AdaptationSettings } from '../../../src/config/adaptation.js';
import { type Coefficients, CostTable, type HardwareCoefficients } from '../../../src/core/coefficients.js';
import { DecisionLog } from '../../../src/core/decision-log.js';
import type { CoreInstance } from '../../../src/core/memory.js';
import { SampleReader } from '../../../src/core/sample-reader.js';
import type { TrainingSample } from '../../../src/core/training-sample.js';
import type { Ablation, Alteration } from './ablation.js';
import type { RandomStream } from './random-stream.js';

export interface LearnerOptions {
  /** The instance that writes signals: what the control thread is in the picker. */
  readonly core: CoreInstance;
  readonly settings: AdaptationSettings;
  readonly random: RandomStream;
  /** Configured weights of the scorers that a projection moves. */
  readonly projected: readonly number[];
  /** Names of the rules that may be chosen from. */
  readonly rules: readonly string[];
  readonly ablation: Ablation | undefined;
  readonly drive: (drive: Drive) => void;
  readonly overloaded: () => boolean;
}

/** The state of the learning at a time, for reports. */
export interface LearnerSample {
  readonly timeMs: number;
  readonly state: AdapterReport['state'];
  readonly arm: AdapterReport['arm'];
  readonly coefficients: AdapterReport['coefficients'];
  readonly shares: AdapterReport['shares'];
  /** Slowness of every endpoint, by its number: 2 = twice the times of the pool. */
  readonly speeds: readonly number[];
  readonly samples: number;
  readonly correlation: number | undefined;
}

/** Interval between two ticks, that of the picker's control thread. */
export const LEARNER_TICK_MS = 250;
const SAMPLE_MS = 5_000;

/** The picker's own adapter in simulated time, and what it went through. */
export class Learner {
  readonly samples: LearnerSample[] = [];
  /** Changes of the guard's state. */
  readonly transitions: { readonly timeMs: number; readonly to: string; readonly reason: string }[] = [];
  readonly #adapter: Adapter;
  #nowMs = 0;

  constructor({ core, settings, random, ablation, ...options }: LearnerOptions) {
    const reader = new SampleReader(core);
    const alteration = ablation?.alter?.(random);
    const decisions = new DecisionLog(core);
    this.#adapter = new Adapter({
      ...options,
      settings,
      samples: alteration === undefined ? reader : this.#overheard(reader, alteration),
      computed: () => decisions.computedTokens,
      coefficients: alteredTable(new CostTable(core), ablation?.ignoresSpeed === true, alteration),
      changed: ({ to, reason }) => this.transitions.push({ timeMs: this.#nowMs, to, reason }),
      random: () => random.uniform(),
    });
    this.#adapter.start(0);
  }

  #overheard(reader: SampleReader, alteration: Alteration): AdapterOptions['samples'] {
    return {
      drain: (take, limit, every) => {
        const altered = (sample: TrainingSample): void => {
          alteration.note(sample, this.#adapter.model.speedOf(sample.slot));
          take(sample);
        };
        return reader.drain(altered, limit, every);
      },
      get lost() {
        return reader.lost;
      },
    };
  }

  /** Sets the live endpoints, as the control thread tells the adapter. */
  meet(live: readonly LiveEndpoint[]): void {
    this.#adapter.model.meet(live);
  }

  tick(nowMs: number): void {
    this.#nowMs = nowMs;
    this.#adapter.tick(nowMs);
    if (nowMs >= this.samples.length * SAMPLE_MS) this.samples.push(this.#sample(nowMs));
  }

  #sample(timeMs: number): LearnerSample {
    const { state, arm, coefficients, shares, endpoints, samples, fit } = this.#adapter.report();
    return {
      timeMs,
      state,
      arm,
      coefficients: { ...coefficients },
      shares: shares === undefined ? undefined : { ...shares },
      speeds: [...endpoints].sort((a, b) => a.slot - b.slot).map(({ speed }) => speed),
      samples: samples.learned,
      correlation: fit.correlation,
    };
  }
}

/** The coefficient table, whose writes go through `alter`. */
function alteredTable(
  table: CostTable,
  ignoresSpeed: boolean,
  alteration: Alteration | undefined,
): AdapterOptions['coefficients'] {
  let pool: Coefficients | undefined;
  const altered = (learned: Coefficients) => (alteration === undefined ? learned : alteration.adjust(learned));
  const alteredClass = (own: HardwareCoefficients | undefined) =>
    own === undefined || pool === undefined ? own : altered({ ...pool, ...own });
  return {
    write: (learned) => {
      pool = learned;
      return table.write(altered(learned));
    },
    writeEndpoint: (slot, generation, speed, reliability, own) =>
      ignoresSpeed
        ? table.writeEndpoint(slot, generation, 1, reliability, undefined)
        : table.writeEndpoint(slot, generation, speed, reliability, alteredClass(own)),
    shares: () => table.shares(),
    projection: () => table.projection(),
  };
}
