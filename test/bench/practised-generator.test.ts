import { expect, test } from 'vitest';
import { BOTH_CORES, ownCommand, PinnedPicker, PractisedGenerator } from '../../bench/load/pinned-picker.ts';

const start = () => PinnedPicker.start(ownCommand(), BOTH_CORES, { endpoints: 2 });

test('a practised generator sends its load to one picker, and measures it on another one', async () => {
  const practice = await start();
  const load = { connections: 1, concurrency: 4, boundMs: 10_000, seconds: 0.5 };
  const generator = await PractisedGenerator.start(practice, 0.5, load);
  practice.stop();
  const picker = await start();
  try {
    const { sent, failed, goodput, lostConnections } = await generator.load(picker);
    expect({ failed, lostConnections }).toEqual({ failed: 0, lostConnections: 0 });
    expect(Math.min(sent, goodput)).toBeGreaterThan(4);
  } finally {
    generator.stop();
    picker.stop();
  }
}, 60_000);

test('a generator whose practice ends before its time is told, and waited for no longer', async () => {
  const practice = await start();
  // An array of connections that is too long ends the process.
  const load = { connections: 2 ** 40, concurrency: 4, boundMs: 10_000, seconds: 0.5 };
  const started = PractisedGenerator.start(practice, 0.5, load);
  await expect(started.finally(() => practice.stop())).rejects.toThrow('ended in its practice');
}, 60_000);
