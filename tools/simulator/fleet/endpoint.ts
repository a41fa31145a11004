import { Engine, type EngineListener, type EngineRequest, type Sequence } from './engine.js';
import type { EventQueue } from './events.js';
import type { EndpointSettings, FleetSettings } from './fleet-settings.js';
import type { RandomStream } from './random-stream.js';

/** Load signals of an engine. */
export interface LoadSample {
  readonly timeMs: number;
  readonly waiting: number;
  readonly running: number;
  readonly kvUsage: number;
}

const idle: LoadSample = { timeMs: 0, waiting: 0, running: 0, kvUsage: 0 };

/** One model server in simulated time: an engine that steps whenever it has work, and its metrics. */
export class SimulatedEndpoint<Request extends EngineRequest> {
  readonly engine: Engine<Request>;
  readonly settings: EndpointSettings;
  /** Milliseconds in which it computed. */
  busyMs = 0;
  up = true;
  readonly #events: EventQueue;
  readonly #fleet: FleetSettings;
  readonly #listener: EngineListener<Request>;
  readonly #random: RandomStream;
  readonly #stepped: () => void;
  /** Signals so far, oldest first; without a lag only the last ones are kept. */
  readonly #samples: LoadSample[] = [idle];
  #stepping = false;
  /** Steps of an engine that has crashed meanwhile are void. */
  #life = 0;

  constructor(
    settings: EndpointSettings,
    fleet: FleetSettings,
    contents: number,
    events: EventQueue,
    random: RandomStream,
    listener: EngineListener<Request>,
    stepped: () => void,
  ) {
    this.settings = settings;
    this.engine = new Engine(settings.limits, settings.stepTime, contents);
    this.engine.speed = settings.speed;
    this.#fleet = fleet;
    this.#events = events;
    this.#random = random;
    this.#listener = listener;
    this.#stepped = stepped;
  }

  submit(request: Request): Sequence<Request> | undefined {
    const sequence = this.engine.submit(request);
    if (sequence !== undefined) this.#step();
    return sequence;
  }

  #step(): void {
    if (this.#stepping || !this.up) return;
    const ms = this.engine.beginStep();
    if (ms === 0) return;
    this.#stepping = true;
    const { stepNoise, pauseShare, pauseMs } = this.#fleet;
    let took = stepNoise > 0 ? this.#random.lognormal(ms, stepNoise) : ms;
    if (pauseShare > 0 && this.#random.uniform() < (pauseShare * took) / pauseMs) took += pauseMs;
    const life = this.#life;
    this.#events.after(took, () => {
      if (life !== this.#life) return;
      this.#stepping = false;
      this.busyMs += took;
      this.engine.endStep(this.#listener);
      this.#sample();
      this.#stepped();
      this.#step();
    });
  }

  #sample(): void {
    const { waiting, running, kv } = this.engine;
    const sample = { timeMs: this.#events.nowMs, waiting, running, kvUsage: kv.usage };
    if (this.#fleet.metrics.lagMs === 0) this.#samples[0] = sample;
    else this.#samples.push(sample);
  }

  /** Signals that a scrape reads now. */
  shown(): LoadSample {
    const until = this.#events.nowMs - this.#fleet.metrics.lagMs;
    while (this.#samples.length > 1 && this.#samples[1]!.timeMs <= until) this.#samples.shift();
    return this.#samples[0]!;
  }

  /** Lose everything. @returns what was lost */
  crash(): readonly Sequence<Request>[] {
    this.up = false;
    this.#life++;
    this.#stepping = false;
    const lost = this.engine.crash();
    this.#samples.length = 0;
    this.#samples.push({ ...idle, timeMs: this.#events.nowMs });
    return lost;
  }

  restart(): void {
    this.up = true;
    this.#step();
  }
}
