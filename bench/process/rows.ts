// Figures of whole processes: this picker and, where its program is named, llm-d-router under the same load.
import type { ProcessFigure } from './figure.ts';
import { type LoadShape, type LoadTimes, measureBurst, measureLoad, measureStart, OWN_COMMAND } from './load.ts';
import { steadyFigures } from './steady.ts';

export interface ProcessPlan {
  /** Program of llm-d-router's picker; undefined = it does not take part. */
  readonly router: string | undefined;
  readonly times: LoadTimes;
  /** Every scenario is run so often on each picker, in turn; the best run counts. */
  readonly rounds: number;
}

const CHAT: LoadShape = { promptBytes: 4096, chunks: 1, endpoints: 8, concurrency: 32 };
const LOADS: readonly (readonly [string, LoadShape])[] = [
  ['4 KB chat, 32 at a time, 8 endpoints', CHAT],
  ['the same, 64 endpoints', { ...CHAT, endpoints: 64 }],
  ['4 KB chat with 20 streamed chunks', { ...CHAT, chunks: 20 }],
  ['400 KB prompts, 8 at a time', { ...CHAT, promptBytes: 400_000, concurrency: 8 }],
];
const BURST = 1000;

function isBetter(figure: ProcessFigure, than: ProcessFigure): boolean {
  return figure.unit === '/s' ? figure.value > than.value : figure.value < than.value;
}

/** Runs every scenario on every picker, one after the other. */
export async function processFigures(plan: ProcessPlan, tell: (line: string) => void): Promise<ProcessFigure[]> {
  const pickers: (readonly [string, readonly string[]])[] = [['pointsman', OWN_COMMAND]];
  if (plan.router !== undefined) pickers.push(['llm-d-router', [plan.router]]);
  const best = new Map<string, ProcessFigure>();
  const note = (figure: ProcessFigure) => {
    const key = `${figure.picker} ${figure.scenario}`;
    const before = best.get(key);
    // Whatever else runs on the machine only makes a figure worse.
    if (before === undefined || isBetter(figure, before)) best.set(key, figure);
    tell(`${figure.picker}: ${figure.scenario}: ${figure.value.toPrecision(3)} ${figure.unit}`);
  };
  for (let round = 0; round < plan.rounds; round++) {
    for (const [picker, command] of pickers) {
      const { readyMs, idleBytes } = await measureStart(command);
      note({ picker, scenario: 'start until the first answer', value: readyMs, unit: 'ms' });
      note({ picker, scenario: 'memory when idle', value: idleBytes / 1e6, unit: 'MB' });
    }
    for (const [name, shape] of LOADS) {
      for (const [picker, command] of pickers) {
        const result = await measureLoad(command, shape, plan.times);
        note({ picker, scenario: `${name}: CPU per exchange`, value: result.cpuUs, unit: 'µs' });
      }
    }
    for (const [picker, command] of pickers) {
      await steadyFigures(command, plan.times.measuredMs / 1_000, (scenario, value, unit) =>
        note({ picker, scenario, value, unit }),
      );
    }
    for (const [picker, command] of pickers) {
      const allMs = await measureBurst(command, CHAT.endpoints, BURST);
      note({ picker, scenario: 'burst of 1,000 after the start: all picked', value: allMs, unit: 'ms' });
    }
  }
  return [...best.values()];
}
