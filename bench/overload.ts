/**
 * Pickers under more than they can serve: closed loop for their capacity, then open loop at multiples of it. The picker
 * has one core and the generator another one. LLM_D_ROUTER=path adds llm-d-router's picker in the same run.
 */
import type { Report } from './bench.ts';
import { ownCommand, PinnedPicker, pins, routerCommand, type Usage } from './load/pinned-picker.ts';

/** Offered load as multiples of the capacity. */
const MULTIPLES = [0.7, 1.45, 2, 3];
/** Load right after the largest of them, as a multiple of the capacity, and its seconds. */
const EASED = { multiple: 0.5, seconds: 2 };
const CONNECTIONS = 4;
const CONCURRENCY = 128;
const WARM_UP_SECONDS = 6;
/** Largest age of an answer that still counts: the picker's own bound. */
const BOUND_MS = 1_000;

async function* curve(picker: string, command: readonly string[], seconds: number): AsyncGenerator<object> {
  const process = await PinnedPicker.start(command);
  const common = { connections: CONNECTIONS, boundMs: BOUND_MS };
  try {
    await process.load({ ...common, concurrency: CONCURRENCY, seconds: WARM_UP_SECONDS });
    const idle = process.usage;
    const closed = await process.load({ ...common, concurrency: CONCURRENCY, seconds });
    const capacity = closed.goodput;
    yield {
      name: 'overload',
      picker,
      load: 'closed',
      capacity,
      placedMs: closed.placedMs,
      generatorCores: closed.generatorCores,
      ...spent(idle, process.usage),
    };
    for (const multiple of MULTIPLES) {
      const before = process.usage;
      const rate = (times: number) => Math.round(capacity * times);
      const isLast = multiple === MULTIPLES.at(-1);
      const eased = isLast ? { eased: { rate: rate(EASED.multiple), seconds: EASED.seconds } } : {};
      const result = await process.load({ ...common, rate: rate(multiple), seconds, ...eased });
      const share = Number((result.goodput / capacity).toFixed(3));
      const line = { name: 'overload', picker, load: multiple, share, ...result, ...spent(before, process.usage) };
      yield isLast ? { ...line, easedTo: EASED } : line;
    }
  } finally {
    process.stop();
  }
}

function spent(before: Usage | undefined, after: Usage | undefined): { cpuSeconds?: number; rssMb?: number } {
  if (before === undefined || after === undefined) return {};
  return { cpuSeconds: Number((after.cpuSeconds - before.cpuSeconds).toFixed(2)), rssMb: after.rssMb };
}

export const reports: readonly Report[] = [
  {
    name: 'overload',
    timeMs: 10_000,
    async *run(timeMs) {
      if (!pins) console.error('taskset is not here: picker and generator share the cores');
      yield* curve('pointsman', ownCommand(), timeMs / 1_000);
      const router = routerCommand();
      if (router === undefined) console.error('llm-d-router is skipped: LLM_D_ROUTER names no program');
      else yield* curve('llm-d-router', router, timeMs / 1_000);
    },
  },
];
