// Tables of the lines of `npm run bench -- commit-lock`.

/** A line of a report. */
export type Line = Readonly<Record<string, unknown>> & { readonly name: string };

const MODELLED = [4, 16, 64];
/** Threads of a round lack a core when they have less than this share of one each. */
export const CORE_SHARE = 0.9;

function percent(share: unknown): string {
  return `${(100 * (share as number)).toFixed(0)} %`;
}

/** @param waitUs null = so many shards ask for more of the lock than its whole time */
function busyAndWait(busy: unknown, waitUs: unknown): string {
  return waitUs === null ? `${percent(busy)} asked for, waits grow` : `${percent(busy)}, ${waitUs} µs`;
}

/** A figure of the middle of sorted rounds, and their range. */
function range(rounds: readonly number[]): string {
  return `${rounds[rounds.length >> 1]} (${rounds[0]}–${rounds.at(-1)})`;
}

interface DecidingThreads {
  readonly threads: number;
  readonly cores: number;
  /** Time of a decision of one thread alone, in µs. */
  readonly oneUs: number;
  /** Time for which a decision and its release hold each lock, in µs. */
  readonly heldUs: readonly number[];
}

/**
 * Decisions of threads that only decide, in times of one thread, by the model of more shards: as many threads run as
 * there are cores, and each waits for the others at each lock as at one server (M/D/1). Where the others would ask for
 * the whole time of a lock, that lock is the ceiling.
 */
export function modelledTimes({ threads, cores, oneUs, heldUs }: DecidingThreads): number {
  const running = Math.min(threads, cores);
  const ceiling = oneUs / Math.max(...heldUs);
  if (running - 1 >= ceiling) return ceiling;
  const waits = heldUs.map((held) => {
    const busy = ((running - 1) * held) / oneUs;
    return (held * busy) / 2 / (1 - busy);
  });
  return Math.min(ceiling, (running * oneUs) / (oneUs + waits.reduce((sum, wait) => sum + wait, 0)));
}

/** Rounds of two threads that made fewer decisions than one thread does, and those of them with a core each. */
function slowRounds(oneUs: number, us: readonly number[], coreShares: readonly number[]): string {
  const slow = (rounds: readonly number[]) => rounds.filter((round) => round > 2 * oneUs).length;
  const whole = us.filter((_, i) => coreShares[i]! >= CORE_SHARE);
  return `${slow(us)} of ${us.length} (${slow(whole)} of ${whole.length})`;
}

/** Held times, two threads and more, and the model of more shards, a column for each size of the pool. */
export function lockTables(lines: readonly Line[]): string {
  const sizes = [...new Set(lines.map(({ name }) => name.split('/')[1]!))];
  const line = (size: string, what: string) => {
    const found = lines.find(({ name }) => name === `commit-lock/${size}/${what}`);
    if (found === undefined) throw new Error(`the report has no line commit-lock/${size}/${what}`);
    return found;
  };
  const row = (title: string, cell: (size: string) => unknown) =>
    `| ${title} | ${sizes.map((size) => String(cell(size))).join(' | ')} |`;
  const head = (first: string) => [
    `| ${first} | ${sizes.map((size) => `${size} endpoints`).join(' | ')} |`,
    `| --- |${' ---: |'.repeat(sizes.length)}`,
  ];
  const two = (size: string) => line(size, 'two-threads');
  const byModel = (size: string, threads: number) => {
    const heldUs = ['held-commit', 'held-index'].map((what) => line(size, what).us as number);
    const { us: oneUs, cores } = line(size, 'one-thread') as unknown as { readonly us: number; readonly cores: number };
    return Number(modelledTimes({ threads, cores, oneUs, heldUs }).toPrecision(3));
  };
  const measured = [
    ...head('measured'),
    row('commit lock held, µs a decision and release', (size) => line(size, 'held-commit').us),
    row('index lock held, µs', (size) => line(size, 'held-index').us),
    row('lines of the cache changed under the commit lock, decision + release', (size) => {
      const { decide, release } = line(size, 'lines-changed');
      return `${decide} + ${release}`;
    }),
    row('one thread, µs a decision', (size) => line(size, 'one-thread').us),
    row('two threads, µs a decision of each (ten rounds)', (size) => range(two(size).us as number[])),
    row('a line from core to core in these rounds, ns', (size) =>
      range((two(size).lineNs as number[]).toSorted((a, b) => a - b)),
    ),
    row('rounds in which two make fewer than one (of those with a core each)', (size) =>
      slowRounds(line(size, 'one-thread').us as number, two(size).us as number[], two(size).coreShares as number[]),
    ),
    row('two threads make, times one', (size) => two(size).timesOne ?? 'no round had two cores'),
    row('the same, by the model below', (size) => byModel(size, 2)),
    ...[4, 8].flatMap((threads) => [
      row(`${threads} threads on this machine's cores, times one`, (size) => line(size, `threads-${threads}`).timesOne),
      row('the same, by the model below', (size) => byModel(size, threads)),
    ]),
  ];
  const model = MODELLED.flatMap((shards) => [
    row(`${shards} shards: commit lock busy, wait for it`, (size) => {
      const { commitBusy, commitWaitUs } = line(size, `model-${shards}`);
      return busyAndWait(commitBusy, commitWaitUs);
    }),
    row(`${shards} shards: index lock busy, wait for it`, (size) => {
      const { indexBusy, indexWaitUs } = line(size, `model-${shards}`);
      return busyAndWait(indexBusy, indexWaitUs);
    }),
  ]);
  const exchange = row('an exchange of 4 KB on a shard among 64 endpoints, µs of CPU time (measured)', (size) => {
    return line(size, 'exchange').us;
  });
  return [...measured, '', ...head('modelled'), exchange, ...model].join('\n');
}
