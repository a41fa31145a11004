// Decisions, matches and masks by the size of the pool: as a ratio to 64 endpoints, since machines differ by more than
// two.
import { type BenchResult, timeText } from '../bench.ts';

const MEASURE = 64;

/** Columns of the table: rows of bench/ whose names hold the endpoints, and whether times are for each endpoint. */
const COLUMNS = [
  { title: 'a decision and its release', name: /^decide\/chat-4k\/(\d+)$/, isEach: false },
  { title: 'a prompt of 64 blocks matched', name: /^match\/64-blocks-(\d+)ep-1M$/, isEach: false },
  { title: 'a mask of labels and a pick', name: /^operations\/filter-mask\/(\d+)$/, isEach: true },
] as const;

/** Names of bench/ that measure the table. */
export const POOL_BENCHES: readonly string[] = [
  'decide/chat-4k',
  ...[64, 512, 10_240].map((endpoints) => `match/64-blocks-${endpoints}ep-1M`),
  'operations/filter-mask',
];

/** @returns times in nanoseconds, by endpoints */
function timesOf(results: readonly BenchResult[], { title, name, isEach }: (typeof COLUMNS)[number]) {
  const times = new Map<number, number>();
  for (const result of results) {
    const endpoints = Number(name.exec(result.name)?.[1] ?? Number.NaN);
    if (!Number.isNaN(endpoints)) times.set(endpoints, isEach ? result.median * endpoints : result.median);
  }
  if (!times.has(MEASURE)) throw new Error(`${title}: there is no row of ${MEASURE} endpoints`);
  return times;
}

export function poolTable(results: readonly BenchResult[]): string {
  const columns = COLUMNS.map((column) => timesOf(results, column));
  const sizes = [...new Set(columns.flatMap((times) => [...times.keys()]))].sort((a, b) => a - b);
  const cells = (times: ReadonlyMap<number, number>, size: number) => {
    const time = times.get(size);
    return time === undefined ? '– | –' : `${timeText(time)} | ${(time / times.get(MEASURE)!).toFixed(2)} ×`;
  };
  return [
    `| endpoints | ${COLUMNS.map(({ title }) => `${title} | of ${MEASURE}`).join(' | ')} |`,
    `| ---: |${' ---: | ---: |'.repeat(COLUMNS.length)}`,
    ...sizes.map(
      (size) => `| ${size.toLocaleString('en-US')} | ${columns.map((times) => cells(times, size)).join(' | ')} |`,
    ),
  ].join('\n');
}
