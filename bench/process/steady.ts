// Figures of a picker that has one core: in its first seconds, and in its steady state, behind 60,000 exchanges.
import { PinnedPicker, type Usage } from '../load/pinned-picker.ts';
import { WARM_UP_EXCHANGES, warmUp } from '../load/warm-up.ts';
import type { ProcessFigure } from './figure.ts';
import { sendBurst } from './load.ts';

const CONNECTIONS = 4;
const CONCURRENCY = 128;
/** Every exchange counts that is answered to its end. */
const BOUND_MS = 60_000;
const CLOSED = { connections: CONNECTIONS, concurrency: CONCURRENCY, boundMs: BOUND_MS };
/** Metrics pages are read as seldom as in the other scenarios. */
const FLAGS = ['--refresh-metrics-interval=1s'];
const BURST = 1_000;
const BURSTS = 5;
const AFTER = `after ${WARM_UP_EXCHANGES.toLocaleString('en-US')} exchanges`;

type Note = (scenario: string, value: number, unit: ProcessFigure['unit']) => void;

/** Runs every scenario on one picker. @param seconds of each of them */
export async function steadyFigures(command: readonly string[], seconds: number, note: Note): Promise<void> {
  await withPicker(command, 8, async (picker) => {
    const first = await warmUp(picker, CLOSED);
    note('4 KB chat, 128 at a time, first 2 s', first, '/s');
    await saturated(picker, seconds, note);
    await openLoop(picker, 1_000, `1,000 chats a second, ${AFTER}`, seconds, note);
    await bursts(picker, `burst of 1,000 on 8 endpoints, ${AFTER}: all picked`, note);
  });
  await withPicker(command, 64, async (picker) => {
    await warmUp(picker, CLOSED);
    await openLoop(picker, 500, `500 chats a second, 64 endpoints, ${AFTER}`, seconds, note);
    await bursts(picker, `burst of 1,000 on 64 endpoints, ${AFTER}: all picked`, note);
  });
}

async function withPicker(
  command: readonly string[],
  endpoints: number,
  use: (picker: PinnedPicker) => Promise<void>,
): Promise<void> {
  const picker = await PinnedPicker.start(command, undefined, { endpoints, flags: FLAGS });
  try {
    await use(picker);
  } finally {
    picker.stop();
  }
}

async function saturated(picker: PinnedPicker, seconds: number, note: Note): Promise<void> {
  const before = usageOf(picker);
  const { goodput, generatorCores } = await picker.load({ ...CLOSED, seconds });
  const cpuSeconds = usageOf(picker).cpuSeconds - before.cpuSeconds;
  // A generator that is as busy as the picker measures itself.
  if (generatorCores > 0.9) throw new Error(`the generator uses ${generatorCores} cores: it is the bound`);
  note(`4 KB chat, 128 at a time, ${AFTER}`, goodput, '/s');
  note('the same: CPU per exchange', (cpuSeconds / (goodput * seconds)) * 1e6, 'µs');
}

async function openLoop(
  picker: PinnedPicker,
  rate: number,
  scenario: string,
  seconds: number,
  note: Note,
): Promise<void> {
  const { placedMs } = await picker.load({
    ...{ connections: CONNECTIONS, boundMs: BOUND_MS, agesFromSent: true },
    ...{ rate, seconds },
  });
  note(`${scenario}: pick p50`, placedMs.p50, 'ms');
  note(`${scenario}: pick p99`, placedMs.p99, 'ms');
}

async function bursts(picker: PinnedPicker, scenario: string, note: Note): Promise<void> {
  const times: number[] = [];
  for (let i = 0; i < BURSTS; i++) times.push(await sendBurst(picker.port, BURST));
  times.sort((a, b) => a - b);
  note(scenario, times[BURSTS >> 1]!, 'ms');
}

function usageOf(picker: PinnedPicker): Usage {
  const { usage } = picker;
  if (usage === undefined) throw new Error('CPU time of a process is read from /proc: run it on Linux');
  return usage;
}
