/** A good connection beside a hostile one: ages of its answers, and memory of the picker. Loopback only, bounded in time. */
import type { Report } from './bench.ts';
import { ATTACKS, type Attack } from './load/attacker.ts';
import type { LoadResult } from './load/generator.ts';
import { ownCommand, PinnedPicker } from './load/pinned-picker.ts';

/** Requests a second of the good connection. */
const RATE = 300;
const WARM_UP_SECONDS = 5;
const BOUND_MS = 1_000;
const GOOD = { connections: 1, boundMs: BOUND_MS };

function figure({ placedMs, refused, failed, unanswered }: LoadResult) {
  return { placedMs, refused, failed, unanswered };
}

async function underAttack(picker: PinnedPicker, attack: Attack | undefined, seconds: number): Promise<object> {
  const before = picker.usage?.rssMb;
  const [good] = await Promise.all([
    picker.load({ ...GOOD, rate: RATE, seconds }),
    attack === undefined ? undefined : picker.attack(attack, seconds),
  ]);
  return {
    name: 'attacks',
    attack: attack ?? 'none',
    ...figure(good),
    rssBeforeMb: before,
    rssAfterMb: picker.usage?.rssMb,
  };
}

export const reports: readonly Report[] = [
  {
    name: 'attacks',
    timeMs: 5_000,
    async *run(timeMs) {
      for (const attack of [undefined, ...ATTACKS]) {
        const picker = await PinnedPicker.start(ownCommand());
        try {
          await picker.load({ ...GOOD, concurrency: 64, seconds: WARM_UP_SECONDS });
          yield await underAttack(picker, attack, timeMs / 1_000);
        } finally {
          picker.stop();
        }
      }
    },
  },
];
