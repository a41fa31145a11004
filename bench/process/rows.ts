// What exchanges of several shapes cost a whole picker.
import type { ProcessFigure } from './figure.ts';
import { type LoadShape, type LoadTimes, measureLoad } from './load.ts';

const CHAT: LoadShape = { promptBytes: 4096, chunks: 1, endpoints: 8, concurrency: 32 };
const LOADS: readonly (readonly [string, LoadShape])[] = [
  ['4 KB chat, 32 at a time, 8 endpoints', CHAT],
  ['the same, 64 endpoints', { ...CHAT, endpoints: 64 }],
  ['4 KB chat with 20 streamed chunks', { ...CHAT, chunks: 20 }],
  ['400 KB prompts, 8 at a time', { ...CHAT, promptBytes: 400_000, concurrency: 8 }],
];

/** Runs every load on one picker, a process for each. */
export async function loadFigures(
  command: readonly string[],
  times: LoadTimes,
  note: (scenario: string, value: number, unit: ProcessFigure['unit']) => void,
): Promise<void> {
  for (const [name, shape] of LOADS) note(name, (await measureLoad(command, shape, times)).cpuUs, 'µs');
}
