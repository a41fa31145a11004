// Tables of the lines of `npm run bench -- commit-lock`.

/** A line of a report. */
export type Line = Readonly<Record<string, unknown>> & { readonly name: string };

const MODELLED = [4, 16, 64];

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
    row('two threads make, times one', (size) => two(size).timesOne ?? 'no round had two cores'),
    ...[4, 8].map((threads) =>
      row(`${threads} threads on this machine's cores, times one`, (size) => line(size, `threads-${threads}`).timesOne),
    ),
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
