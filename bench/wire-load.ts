/**
 * Whole pickers behind 60,000 exchanges, beside llm-d-router where LLM_D_ROUTER names its program, and under the loads
 * that one core is not enough for: one shard and two, and the load that llm-d publishes for 100k-token prompts. The
 * generator of bench/load sends from templates, in a process of its own.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Report } from './bench.ts';
import { BOTH_CORES, ownCommand, PinnedPicker, pins, routerCommand, type Usage } from './load/pinned-picker.ts';
import { WARM_UP_EXCHANGES, warmUp } from './load/warm-up.ts';
import { steadyFigures } from './process/steady.ts';

/** Enough connections for each shard to have some: the kernel deals them out by lot. */
const CONNECTIONS = 16;
/** Below what a shard refuses as an overload. */
const CONCURRENCY = 128;

/**
 * 100k tokens of four bytes, answered with 1k tokens: 98.7 a second took llm-d-router 35 cores, or 46 with a longer
 * match (llm-d-router#1616).
 */
const LONG = { rate: 98.7, promptBytes: 400_000, tokens: 1_000, tokenMs: 10 };
/** Until as many answers are under way as ever will be. */
const FILL_MS = (LONG.tokens + 100) * LONG.tokenMs;
/** Of a proxy with eight threads, and of one whose chunks seldom leave together. */
const LONG_CONNECTIONS = [8, 64];
const BOUND_MS = 60_000;

function usage(picker: PinnedPicker): Usage {
  const { usage } = picker;
  if (usage === undefined) throw new Error('CPU time of a process is read from /proc: run it on Linux');
  return usage;
}

const short = (value: number): number => Number(value.toPrecision(3));

/** Exchanges a second that end, and what they cost, with as many under way as shards want. */
async function saturated(shards: number, seconds: number) {
  const picker = await PinnedPicker.start(ownCommand(`--shards=${shards}`), shards === 1 ? undefined : BOTH_CORES);
  try {
    const load = { connections: CONNECTIONS, concurrency: CONCURRENCY, boundMs: BOUND_MS };
    await warmUp(picker, load, shards * WARM_UP_EXCHANGES);
    const before = usage(picker);
    const { goodput, refused, failed, generatorCores } = await picker.load({ ...load, seconds });
    const cpuSeconds = usage(picker).cpuSeconds - before.cpuSeconds;
    return {
      ...{ name: 'wire/shards', shards, goodput, refused, failed, generatorCores },
      pickerCores: short(cpuSeconds / seconds),
      cpuUs: short((cpuSeconds / (goodput * seconds)) * 1e6),
    };
  } finally {
    picker.stop();
  }
}

async function* shards(seconds: number): AsyncGenerator<object> {
  const one = await saturated(1, seconds);
  yield one;
  const two = await saturated(2, seconds);
  yield two;
  // On a machine with two cores the generator takes a part of what the second shard could have.
  yield {
    name: 'wire/shards',
    goodputRatio: short(two.goodput / one.goodput),
    /** Rate of two shards on two whole cores ÷ that of one on one, by CPU time. */
    ratioByCpu: short((2 * one.cpuUs) / two.cpuUs),
  };
}

async function longPrompts(connections: number, milliseconds: number): Promise<object> {
  const picker = await PinnedPicker.start(ownCommand());
  try {
    const { rate, ...streamed } = LONG;
    const seconds = (FILL_MS + milliseconds + 1_000) / 1_000;
    const load = picker.load({ connections, rate, seconds, boundMs: BOUND_MS, streamed });
    await pause(FILL_MS);
    const before = usage(picker);
    const begin = performance.now();
    await pause(milliseconds);
    const after = usage(picker);
    const cores = (after.cpuSeconds - before.cpuSeconds) / ((performance.now() - begin) / 1e3);
    const { offered, refused, failed, placedMs, generatorCores } = await load;
    return {
      ...{ name: 'wire/long-prompts', connections, offered, refused, failed, placedMs, generatorCores },
      ...{ pickerCores: short(cores), cpuMs: short((cores / rate) * 1e3), rssMb: after.rssMb },
    };
  } finally {
    picker.stop();
  }
}

/** What one picker does in its first seconds and in its steady state. */
async function* steady(picker: string, command: readonly string[], seconds: number): AsyncGenerator<object> {
  const figures: object[] = [];
  await steadyFigures(command, seconds, (scenario, value, unit) =>
    figures.push({ name: 'wire/steady', picker, scenario, value: short(value), unit }),
  );
  yield* figures;
}

export const reports: readonly Report[] = [
  {
    name: 'wire/steady',
    timeMs: 5_000,
    async *run(timeMs) {
      yield* steady('pointsman', ownCommand(), timeMs / 1_000);
      const router = routerCommand();
      if (router === undefined) console.error('llm-d-router is skipped: LLM_D_ROUTER names no program');
      else yield* steady('llm-d-router', router, timeMs / 1_000);
    },
  },
  {
    name: 'wire/shards',
    timeMs: 5_000,
    run: (timeMs) => shards(timeMs / 1_000),
  },
  {
    name: 'wire/long-prompts',
    timeMs: 10_000,
    async *run(timeMs) {
      if (!pins) console.error('taskset is not here: picker and generator share the cores');
      for (const connections of LONG_CONNECTIONS) yield await longPrompts(connections, timeMs);
    },
  },
];
