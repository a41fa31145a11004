// Decisions by the size of the pool: as a ratio to 64 endpoints, since machines differ by more than two.
import { type BenchResult, timeText } from '../bench.ts';

const MEASURE = 64;

export function poolTable(results: readonly BenchResult[]): string {
  const sized = results.map(({ name, median }) => ({ endpoints: Number(name.split('/').at(-1)), median }));
  const one = sized.find(({ endpoints }) => endpoints === MEASURE)?.median;
  if (one === undefined) throw new Error(`there is no row of ${MEASURE} endpoints`);
  const rows = sized.map(
    ({ endpoints, median }) =>
      `| ${endpoints.toLocaleString('en-US')} | ${timeText(median)} | ${(median / one).toFixed(2)} × |`,
  );
  return [
    `| endpoints | a decision and its release | of ${MEASURE} endpoints |`,
    '| ---: | ---: | ---: |',
    ...rows,
  ].join('\n');
}
