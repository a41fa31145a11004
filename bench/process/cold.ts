// Figures of a picker that has had no request yet, on all cores: its start, its first bursts, its first seconds.
import { setTimeout as pause } from 'node:timers/promises';
import { BOTH_CORES, PinnedPicker, PractisedGenerator } from '../load/pinned-picker.ts';
import type { ProcessFigure } from './figure.ts';
import { measureBursts, measureStart } from './load.ts';

const BURST = 1_000;
const BURSTS = 3;
const CONNECTIONS = 4;
const BOUND_MS = 60_000;
const RATE = 1_000;
const ENDPOINTS = 64;
/** Load on other pickers before, until the client's own code is hot. */
const PRACTICE_SECONDS = 8;
const PRACTICE_BURSTS = 12;
/** Time between readiness and the first requests: none, and one in which a gateway learns that a picker is ready. */
const READY = [
  [0, ''],
  [4_000, ', ready for 4 s'],
] as const;
/** Metrics pages are read as seldom as in the other scenarios. */
const FLAGS = ['--refresh-metrics-interval=1s'];

type Note = (scenario: string, value: number, unit: ProcessFigure['unit']) => void;

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

/** @param starts of each scenario; of the first seconds a third of them */
export async function coldFigures(command: readonly string[], starts: number, note: Note): Promise<void> {
  const small = await series(starts, () => measureStart(command));
  note('start until the first answer', median(small.map(({ readyMs }) => readyMs)), 'ms');
  note('the same: CPU time', median(small.map(({ cpuMs }) => cpuMs)), 'ms');
  note('memory when idle, one endpoint', median(small.map(({ idleBytes }) => idleBytes)) / 1e6, 'MB');
  const large = await series(starts, () => measureStart(command, { endpoints: ENDPOINTS }));
  note(`memory when idle, ${ENDPOINTS} endpoints`, median(large.map(({ idleBytes }) => idleBytes)) / 1e6, 'MB');
  await measureBursts(command, 8, BURST, PRACTICE_BURSTS);
  for (const [readyMs, since] of READY) {
    const bursts = await series(starts, () => measureBursts(command, 8, BURST, BURSTS, readyMs));
    for (let i = 0; i < BURSTS; i++) {
      const name = ['first', 'second', 'third'][i]!;
      note(`${name} burst of 1,000 on 8 endpoints${since}: all picked`, median(bursts.map((times) => times[i]!)), 'ms');
    }
  }
  for (const [readyMs, since] of READY) {
    const early = await series(Math.ceil(starts / 3), () => firstSeconds(command, readyMs));
    const title = `${RATE.toLocaleString('en-US')} chats a second, ${ENDPOINTS} endpoints${since}`;
    for (const [at, part] of ['the first second', 'the five after it'].entries()) {
      note(`${title}, ${part}: pick p50`, median(early.map((parts) => parts[at]!.p50)), 'ms');
      note(`${title}, ${part}: pick p99`, median(early.map((parts) => parts[at]!.p99)), 'ms');
    }
  }
}

async function series<Result>(count: number, measure: () => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  for (let i = 0; i < count; i++) results.push(await measure());
  return results;
}

/** An open loop from the first request of a picker on: its first second, and the five after it. */
async function firstSeconds(command: readonly string[], readyMs: number) {
  const start = () => PinnedPicker.start(command, BOTH_CORES, { endpoints: ENDPOINTS, flags: FLAGS });
  const load = { connections: CONNECTIONS, boundMs: BOUND_MS, agesFromSent: true, rate: RATE };
  const practice = await start();
  const generator = await PractisedGenerator.start(practice, PRACTICE_SECONDS, {
    ...load,
    seconds: 6,
    coldSeconds: 1,
  }).finally(() => practice.stop());
  try {
    const picker = await start();
    await pause(readyMs);
    const { coldMs, placedMs } = await generator.load(picker).finally(() => picker.stop());
    return [coldMs, placedMs];
  } finally {
    generator.stop();
  }
}
