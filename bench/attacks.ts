/**
 * A good connection beside a hostile one: ages of its answers from when a request leaves, and memory of the picker. The
 * good load shares a core with the attack, which makes its timers late: that is not the picker's. Beside each attack
 * its control: the same hostile process sends to a program on the picker's core that throws everything away, so that
 * the difference is the picker's own part. Rounds with a new picker each, in which attack and control take turns to be
 * first. Loopback only, bounded in time.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Report } from './bench.ts';
import { ATTACKS, type Attack, COLD_SECONDS } from './load/attacker.ts';
import type { LoadResult } from './load/generator.ts';
import { ownCommand, PinnedPicker, PinnedSink } from './load/pinned-picker.ts';

/** Requests a second of the good connection: a p99 of each round is of 40 requests or more. */
const RATE = 1_000;
/** Pickers for each attack. */
const ROUNDS = 3;
/** For what an attack has left behind on a core that is attacked again. */
const CALM_MS = 500;
/** Time between readiness and the first request, in which a picker compiles code. */
const READY_MS = 4_000;
const WARM_UP_SECONDS = 5;
const BOUND_MS = 1_000;
const GOOD = { connections: 1, boundMs: BOUND_MS, agesFromSent: true };

/** Seconds for which idle connections are there before the good one comes. */
const EARLY_SECONDS = 1;

function figure({ placedMs, coldMs, sent, refusals, failed, unanswered, lostConnections }: LoadResult) {
  return { placedMs, coldMs, sent, refusals, failed, unanswered, lostConnections };
}

/** Attacks that ATTACK names, of the environment, with commas; absent = all. */
function chosen(): readonly Attack[] {
  const names = process.env.ATTACK?.split(',');
  return ATTACKS.filter((attack) => names?.includes(attack) ?? true);
}

type Attacked = 'picker' | 'sink' | 'none';

/** Load on the good connection of a picker, beside an attack on it or on the sink. */
async function underAttack(
  { picker, sink, round }: { readonly picker: PinnedPicker; readonly sink: PinnedSink; readonly round: number },
  attack: Attack | undefined,
  of: Attacked,
  seconds: number,
): Promise<object> {
  const before = picker.usage;
  const early = attack === 'idle-connections' ? EARLY_SECONDS : 0;
  const port = of === 'sink' ? sink.port : picker.port;
  const attacked = attack === undefined ? undefined : picker.attack(attack, seconds + early, port);
  await pause(early * 1_000);
  const good = await picker.load({ ...GOOD, rate: RATE, seconds, coldSeconds: COLD_SECONDS });
  await attacked;
  const after = picker.usage;
  return {
    name: 'attacks',
    attack: attack ?? 'none',
    of,
    round,
    ...figure(good),
    cpuSeconds: before && after && Number((after.cpuSeconds - before.cpuSeconds).toFixed(2)),
    rssBeforeMb: before?.rssMb,
    rssAfterMb: after?.rssMb,
  };
}

export const reports: readonly Report[] = [
  {
    name: 'attacks',
    timeMs: 8_000,
    async *run(timeMs) {
      const sink = await PinnedSink.start();
      try {
        for (const attack of [undefined, ...chosen()]) {
          for (let round = 1; round <= ROUNDS; round++) {
            const picker = await PinnedPicker.start(ownCommand());
            try {
              await pause(READY_MS);
              await picker.load({ ...GOOD, concurrency: 64, seconds: WARM_UP_SECONDS });
              const turns: Attacked[] = round % 2 === 1 ? ['sink', 'picker'] : ['picker', 'sink'];
              for (const of of attack === undefined ? (['none'] as const) : turns) {
                yield await underAttack({ picker, sink, round }, attack, of, timeMs / 1_000);
                await pause(CALM_MS);
              }
            } finally {
              picker.stop();
            }
          }
        }
      } finally {
        sink.stop();
      }
    },
  },
];
