import type { WantedTimes } from '../../../src/scheduling/wanted-times.js';
import type { EngineLimits } from './engine.js';
import type { StepTime } from './step-time.js';

/** One simulated model server. */
export interface EndpointSettings {
  readonly limits: EngineLimits;
  readonly stepTime: StepTime;
  /** Factor on its speed for the whole run. */
  readonly speed: number;
  readonly labels: Readonly<Record<string, string>>;
  /** Times at which it joins and leaves the pool, in ms. An endpoint that has left finishes its requests. */
  readonly joinMs: number;
  readonly leaveMs: number;
  /** Whether its signals always show an idle endpoint. */
  readonly lies: boolean;
}

/** Event of an endpoint at a time. */
export type Incident =
  | {
      readonly kind: 'slow';
      readonly endpoint: number;
      readonly atMs: number;
      readonly forMs: number;
      readonly factor: number;
    }
  | { readonly kind: 'crash'; readonly endpoint: number; readonly atMs: number; readonly forMs: number };

/** Settings of scrapes. */
export interface MetricsSettings {
  /** Milliseconds between two scrapes of an endpoint by a picker, and how much they vary (share). */
  readonly scrapeMs: number;
  readonly jitter: number;
  /** Age of the signals that an engine shows. */
  readonly lagMs: number;
  /** Share of the scrapes that fail. */
  readonly failures: number;
}

/** The prefix index is fed by the engines' events instead of by what was sent. */
export interface KvEventSettings {
  readonly delayMs: number;
  /** Share of the events that are lost. */
  readonly loss: number;
}

/** Pickers in front of the fleet; requests go to them in turn. */
export interface PickerSettings {
  readonly replicas: number;
  /** Messages between replicas: nothing, requests in flight, or those and the blocks that were sent. */
  readonly sharing: 'none' | 'load' | 'all';
  readonly sharingDelayMs: number;
  /** Milliseconds by which the clock of the last replica is ahead of that of the first; the others lie between them. */
  readonly clockSkewMs: number;
}

export interface ClientSettings {
  /** Milliseconds after which a client hangs up; 0 = never. */
  readonly timeoutMs: number;
  /** Number of retries of a failed request, and the pause before the first one (doubled each time). */
  readonly retries: number;
  readonly backoffMs: number;
  /** Latency targets that every request names in its headers; absent = none. */
  readonly targets?: WantedTimes | undefined;
}

/** Faults of training samples on their way to the learner. */
export interface SampleFaults {
  /**
   * Share that is lost, share whose times are off by a factor from 0.1 to 10, and share with the times of another
   * request.
   */
  readonly lost: number;
  readonly distorted: number;
  readonly shuffled: number;
}

/** A fleet and what happens to it. */
export interface FleetSettings {
  readonly endpoints: readonly EndpointSettings[];
  readonly incidents: readonly Incident[];
  readonly metrics: MetricsSettings;
  readonly kvEvents: KvEventSettings | undefined;
  readonly pickers: PickerSettings;
  readonly client: ClientSettings;
  readonly samples: SampleFaults;
  /** Milliseconds between the client's request and the engine, decision included. */
  readonly pathMs: number;
  /** Standard deviation of the logarithm of a step's time. */
  readonly stepNoise: number;
  /** Pauses of a garbage collector: their share of the time, and the length of one. */
  readonly pauseShare: number;
  readonly pauseMs: number;
}

/** Default settings: scrapes every 50 ms, no lag, steps that vary by 3 %, one picker, no hang-ups. */
export const usualFleet: Omit<FleetSettings, 'endpoints'> = {
  incidents: [],
  metrics: { scrapeMs: 50, jitter: 0.1, lagMs: 0, failures: 0 },
  kvEvents: undefined,
  pickers: { replicas: 1, sharing: 'none', sharingDelayMs: 0, clockSkewMs: 0 },
  client: { timeoutMs: 0, retries: 2, backoffMs: 100 },
  samples: { lost: 0, distorted: 0, shuffled: 0 },
  pathMs: 1,
  stepNoise: 0.03,
  pauseShare: 0,
  pauseMs: 200,
};
