import type { ShownAdaptation } from '../../../src/adaptation/shown-adaptation.js';
import { type AdaptationMode, defaultAdaptation } from '../../../src/config/adaptation.js';
import { engineOf } from '../../simulator/server/engine.js';
import { type DemoStack, MODEL, startDemoStack } from '../demo-stack.js';
import { OWN_PICKER } from '../picker-process.js';
import { type Figures, figuresOf } from './figures.js';
import { type RequestOutcome, runPlan } from './run.js';
import { PHASES, type PlannedRequest } from './traffic.js';

/** One of the pools that get the same traffic. Ports: 0 = a free one. */
export interface ShiftPool {
  readonly name: string;
  readonly mode: AdaptationMode;
  readonly port: number;
  readonly grpcPort: number;
  readonly metricsPort: number;
}

export interface ShiftOptions {
  readonly pools: readonly ShiftPool[];
  readonly plan: readonly PlannedRequest[];
  /** Of the servers and the pickers. */
  readonly seed: number;
  readonly servers: number;
  readonly speedup: number;
  /** Path of an Envoy; undefined = embedded gateways ask the pickers. */
  readonly envoy: string | undefined;
  /** Interval in milliseconds at which `show` is called with what happened in it. */
  readonly windowMs: number;
  /** Ends the run before its time: nothing more is sent. */
  readonly signal: AbortSignal;
  /** Called with all pools when all are up. */
  readonly started: (stacks: readonly DemoStack[]) => void;
  readonly show: (window: ShiftWindow) => void;
}

/** Figures of one window of time, by pool. */
export interface ShiftWindow {
  readonly second: number;
  readonly phase: number;
  readonly pools: readonly { readonly figures: Figures; readonly learned: ShownAdaptation }[];
}

/** Results of one pool. */
export interface ShiftRun {
  readonly name: string;
  readonly phases: readonly Figures[];
  readonly whole: Figures;
  /** The picker's page of learned costs before the first and after the last request. */
  readonly before: ShownAdaptation;
  readonly after: ShownAdaptation;
  readonly outcomes: readonly RequestOutcome[];
}

/**
 * Sends the plan to several pools at the same time, each with servers, a picker and a proxy of its own. Other load on
 * the machine then affects all pools alike.
 */
export async function runShift(options: ShiftOptions): Promise<ShiftRun[]> {
  const observed: ObservedPool[] = [];
  try {
    for (const pool of options.pools) observed.push(await ObservedPool.start(pool, options));
    options.started(observed.map(({ stack }) => stack));
    await sendAll(options, observed);
    return await Promise.all(observed.map((pool) => pool.result()));
  } finally {
    await Promise.all(observed.map(({ stack }) => stack.stop()));
  }
}

async function sendAll({ plan, windowMs, show, signal }: ShiftOptions, pools: readonly ObservedPool[]): Promise<void> {
  const start = performance.now();
  const windows = everyWindow(windowMs, async () => {
    const second = (performance.now() - start) / 1_000;
    const { phase } = pools[0]!;
    show({ second, phase, pools: await Promise.all(pools.map((pool) => pool.window())) });
  });
  const died = pools.map(({ stack }) => stack.picker.ended.then((line) => Promise.reject(new Error(line))));
  try {
    await Promise.race([Promise.all(pools.map((pool) => pool.send(plan, signal))), ...died]);
  } finally {
    await windows.stop();
  }
}

/** A pool with what was seen of it. */
class ObservedPool {
  readonly stack: DemoStack;
  phase = 0;
  readonly #name: string;
  readonly #before: ShownAdaptation;
  readonly #outcomes: RequestOutcome[] = [];
  #shown = 0;

  constructor(name: string, stack: DemoStack, before: ShownAdaptation) {
    this.#name = name;
    this.stack = stack;
    this.#before = before;
  }

  static async start(pool: ShiftPool, { seed, servers, speedup, envoy }: ShiftOptions): Promise<ObservedPool> {
    const { name, mode, port, grpcPort, metricsPort } = pool;
    const stack = await startDemoStack({
      servers,
      engine: { ...engineOf('llama-8b-l40s'), speedup, seed },
      port,
      grpcPort,
      metricsPort,
      envoy,
      picker: [...OWN_PICKER, '--seed', String(seed)],
      settings: `adaptation: {mode: ${mode}}\n`,
    });
    return new ObservedPool(name, stack, await learnedCosts(stack.picker.metricsUrl));
  }

  send(plan: readonly PlannedRequest[], signal: AbortSignal): Promise<void> {
    return runPlan({
      url: this.stack.url,
      model: MODEL,
      plan,
      signal,
      enter: (phase) => {
        this.phase = phase;
        this.stack.fleet.servers[0]!.slowDown(PHASES[phase]!.slowdown);
      },
      hear: (outcome) => this.#outcomes.push(outcome),
    });
  }

  /** Requests that ended since the last call. */
  async window(): Promise<ShiftWindow['pools'][number]> {
    const figures = this.#figures(this.#outcomes.slice(this.#shown));
    this.#shown = this.#outcomes.length;
    return { figures, learned: await learnedCosts(this.stack.picker.metricsUrl) };
  }

  async result(): Promise<ShiftRun> {
    const phases = PHASES.map((_, index) =>
      this.#figures(this.#outcomes.filter(({ planned }) => planned.phase === index)),
    );
    return {
      name: this.#name,
      phases,
      whole: this.#figures(this.#outcomes),
      before: this.#before,
      after: await learnedCosts(this.stack.picker.metricsUrl),
      outcomes: this.#outcomes,
    };
  }

  #figures(outcomes: readonly RequestOutcome[]): Figures {
    const servers = this.stack.fleet.servers.map(({ name }) => name);
    return figuresOf(outcomes, servers, defaultAdaptation().model);
  }
}

/**
 * Calls `act` once per window, one call at a time. `stop` waits for the last call, and throws the error of a failed
 * one.
 */
function everyWindow(windowMs: number, act: () => Promise<void>): { stop(): Promise<void> } {
  let running = Promise.resolve();
  const timer = setInterval(() => {
    running = running.then(act);
    // Reported by stop; an unhandled rejection would end the process before.
    running.catch(() => clearInterval(timer));
  }, windowMs);
  return {
    stop: () => {
      clearInterval(timer);
      return running;
    },
  };
}

/**
 * Reads the picker's page of learned costs.
 * @throws {Error} naming the status, when there is no such page.
 */
async function learnedCosts(metricsUrl: string): Promise<ShownAdaptation> {
  const url = new URL('/debug/adaptation', metricsUrl);
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answers with status ${response.status}`);
  return (await response.json()) as ShownAdaptation;
}
