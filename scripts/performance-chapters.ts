// The chapters of docs/performance.md: what each measures, and its part of the page.
//
// A chapter takes at most some two minutes, so that a machine that is quiet only for a while can be used one chapter at
// a time. Those of whole pickers run llm-d-router's picker too where LLM_D_ROUTER names it.
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BenchResult } from '../bench/bench.ts';
import { attackTable } from '../bench/figures/attacks.ts';
import { type Line, lockTables } from '../bench/figures/commit-lock.ts';
import { overloadTable } from '../bench/figures/overload.ts';
import { POOL_BENCHES, poolTable } from '../bench/figures/pools.ts';
import { BUSY_ENDPOINTS, SCRAPE_BUDGET, SCRAPED_ENDPOINTS, scrapingTable } from '../bench/figures/scraping.ts';
import { ATTACKS, COLD_SECONDS } from '../bench/load/attacker.ts';
import { coldFigures } from '../bench/process/cold.ts';
import type { ProcessFigure } from '../bench/process/figure.ts';
import { gatewayFigures } from '../bench/process/gateway.ts';
import { OWN_COMMAND } from '../bench/process/load.ts';
import { loadFigures } from '../bench/process/rows.ts';
import { spreadFigures } from '../bench/process/spread.ts';
import { steadyFigures } from '../bench/process/steady.ts';
import { inLines, processTable, tables } from './performance-doc.ts';

/** Times of a run: those of a page, or shorter ones to see that everything runs. */
export interface ChapterTimes {
  readonly rowMs: number;
  readonly loadMs: number;
  readonly starts: number;
}

export interface Chapter {
  readonly name: string;
  /** Chapter whose table takes its rows; undefined = it has a part of the page. */
  readonly joins?: string;
  measure(times: ChapterTimes): Promise<readonly unknown[]>;
  /** Its part of the page. */
  text(rows: readonly unknown[]): string;
}

const root = join(import.meta.dirname, '..');

/** Runs benchmarks or reports of bench/ in a process of their own. @returns their lines */
function benchLines(names: readonly string[], timeMs: number, env: NodeJS.ProcessEnv = {}): unknown[] {
  const file = join(tmpdir(), `pointsman-performance-${process.pid}.jsonl`);
  try {
    execFileSync(process.execPath, ['bench/run.ts', ...names, '--json', file, '--time', String(timeMs)], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, ...env },
    });
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    return lines.map((line) => JSON.parse(line) as unknown);
  } finally {
    rmSync(file, { force: true });
  }
}

/** Time of a row for each second of polling. */
const ROW_MS_PER_SECOND = 200;

/** Polls metrics pages of many endpoints, of which `busy` have traffic. @returns the line of the report */
function scraping(busy: number, rowMs: number): Line {
  const seconds = Math.ceil(rowMs / ROW_MS_PER_SECOND);
  const pool = { ENDPOINTS: SCRAPED_ENDPOINTS, BUSY: busy, CPU_PERCENT: SCRAPE_BUDGET };
  const settings = { ...pool, MEASURE_SECONDS: seconds };
  const env = { ...process.env };
  for (const [name, value] of Object.entries(settings)) env[name] = String(value);
  const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit'];
  const text = execFileSync(process.execPath, ['bench/informer.ts'], { cwd: root, stdio, env, encoding: 'utf8' });
  return { ...(JSON.parse(text) as Line), busy };
}

type Measured = (command: readonly string[], note: Note, times: ChapterTimes) => Promise<void>;
type Note = (scenario: string, value: number, unit: ProcessFigure['unit']) => void;

/** A chapter with the figures of this picker, and behind it one with those of llm-d-router's for the same table. */
function pickers(name: string, title: string, words: string, measured: Measured): Chapter[] {
  const of = async (picker: string, command: readonly string[], times: ChapterTimes) => {
    const figures: ProcessFigure[] = [];
    await measured(
      command,
      (scenario, value, unit) => {
        console.error(`${picker}: ${scenario}: ${value.toPrecision(3)} ${unit}`);
        figures.push({ picker, scenario, value, unit });
      },
      times,
    );
    return figures;
  };
  const text: Chapter['text'] = (rows) =>
    `## ${title}\n\n${inLines(words)}\n\n${processTable(rows as readonly ProcessFigure[])}`;
  const router = process.env.LLM_D_ROUTER;
  return [
    { name, text, measure: (times) => of('pointsman', OWN_COMMAND, times) },
    {
      name: `${name}-llm-d-router`,
      joins: name,
      text,
      measure: async (times) => (router ? of('llm-d-router', [router], times) : []),
    },
  ];
}

/** A chapter with rows of bench/. @param areas the parts of names before the first slash */
function benches(name: string, title: string, areas: readonly string[]): Chapter {
  const named = ({ name: row }: BenchResult) => areas.includes(row.split('/', 1)[0]!);
  return {
    name,
    measure: async ({ rowMs }) => {
      const lines = benchLines(
        areas.map((area) => `${area}/`),
        rowMs,
      );
      return (lines as BenchResult[]).filter(named);
    },
    text: (rows) => `## ${title}\n\n${tables(rows as BenchResult[]).replaceAll(/^## /gm, '### ')}`,
  };
}

function report(
  name: string,
  title: string,
  words: string,
  measure: Chapter['measure'],
  table: (rows: readonly Line[]) => string,
): Chapter {
  return { name, measure, text: (rows) => `## ${title}\n\n${inLines(words)}\n\n${table(rows as readonly Line[])}` };
}

/** Longest time of one attack behind its first seconds: with three rounds a chapter takes some four minutes. */
const ATTACK_MS_MAX = 4_000;

export const chapters: readonly Chapter[] = [
  ...pickers(
    'cold',
    'Whole pickers, cold',
    'Each row is of processes that have just started, or were ready for 4 s without a request, on all cores; medians ' +
      'of several starts. CPU time has steps of 10 ms. The client has sent its load to another picker before, so ' +
      'that its own code is hot.',
    (command, note, { starts }) => coldFigures(command, starts, note),
  ),
  ...pickers(
    'warm',
    'Whole pickers, warm',
    'The picker has one core and the load another one, 60,000 exchanges behind it but for the first row.',
    (command, note, { loadMs }) => steadyFigures(command, loadMs / 1_000, note),
  ),
  ...pickers(
    'loads',
    'CPU time of an exchange',
    'A client of one connection, picker and client on all cores, after a few seconds: code is still being compiled.',
    (command, note, { loadMs }) => loadFigures(command, { warmMs: loadMs, measuredMs: loadMs }, note),
  ),
  ...pickers(
    'gateways',
    'Behind a gateway',
    'Chats of 4 KB over HTTP/1.1, 32 at a time, through Envoy (one thread) without a picker, with one, with one ' +
      'that gets no bodies of answers or those of one in ten, and through `pointsman gateway`. Client, gateway, ' +
      'picker and server share the cores; the picker was ready for 4 s before, so that its first rows hold some ' +
      'code that is being compiled.',
    (command, note, { loadMs }) => gatewayFigures(command, loadMs / 2_000, note),
  ),
  ...pickers(
    'spread',
    'Shared prompts on idle endpoints',
    'Requests with 16 system prompts, of 3 KB each, to eight idle endpoints: those of the fullest endpoint, in times ' +
      'of an even share. In turn: 800, each when the one before has ended. Burst: all at once behind the first ones ' +
      'of the system prompts, none ended before all are placed. Medians of several pickers, without any time.',
    (command, note, { starts }) => spreadFigures(command, starts, note),
  ),
  report(
    'threads',
    'Threads and the commit lock',
    'One and two threads that only decide; what more of them would make of it is a model ' +
      '([model](internals/core.md#held-times-and-a-model-for-more-shards)).',
    // Shorter rounds say nothing of a lock that is held for a tenth of the time.
    async () => benchLines(['commit-lock'], 1_000),
    lockTables,
  ),
  {
    name: 'pools',
    measure: async ({ rowMs }) => {
      const lines = benchLines(POOL_BENCHES, rowMs) as BenchResult[];
      return lines.filter(({ name }) => /^decide\/chat-4k\/\d+$/.test(name) || !name.startsWith('decide/'));
    },
    text: (rows) => `## A decision by the size of the pool\n\n${poolTable(rows as BenchResult[])}`,
  },
  report(
    'scraping',
    'Metrics pages of a thousand endpoints',
    `Pages of 36 KB of ${SCRAPED_ENDPOINTS.toLocaleString('en-US')} endpoints, which one process serves, with ` +
      `\`--scrape-cpu-percent=${SCRAPE_BUDGET}\`: the reading process alone, from its fifth second on.`,
    async ({ rowMs }) => BUSY_ENDPOINTS.map((busy) => scraping(busy, rowMs)),
    scrapingTable,
  ),
  report(
    'overload',
    'Overload',
    'Open loop at multiples of the closed-loop maximum, four connections, ages from the intended start of a request ' +
      'to its first reply; picker and load have one core each.',
    async ({ loadMs }) => benchLines(['overload'], loadMs),
    overloadTable,
  ),
  ...[0, 3, 6, 8].map((from, part, starts) =>
    report(
      `attacks-${part + 1}`,
      part === 0 ? 'Hostile peers' : 'Hostile peers, continued',
      '1,000 requests a second on a good connection beside one hostile peer; ages from when a request leaves to its ' +
        'first reply. In the control the peer sends the same ' +
        "bytes to another program on the picker's core. Three rounds with a new picker each, in which the control is " +
        'first, second, first: the median, and the range. The first two seconds, in which the code for the attack ' +
        'gets hot on that core, are counted apart; the picker was ready for 4 s before and had a closed loop for five.',
      async ({ loadMs }) =>
        benchLines(['attacks'], COLD_SECONDS * 1_000 + Math.min(loadMs, ATTACK_MS_MAX), {
          ATTACK: ATTACKS.slice(from, starts[part + 1]).join(','),
        }),
      attackTable,
    ),
  ),
  benches('decisions', 'Decisions and the gate', ['decide', 'threads', 'gate', 'queues']),
  benches('index', 'The prefix index and active blocks', ['active', 'index', 'match']),
  benches('exchanges', 'Requests and answers', [
    'memory',
    'response',
    'scan',
    'stream',
    'wire',
    'tracing',
    'telemetry',
  ]),
  benches('beside', 'Work beside the requests', ['adaptation', 'kubernetes', 'piscina', 'scrape', 'start']),
  benches('operations', 'Single operations, a slot', ['operations']),
];

/** The parts of the page: a table has the rows of the chapters that join it, too. */
export function chapterTexts(
  results: readonly { readonly chapter: Chapter; readonly result: { readonly rows: readonly unknown[] } }[],
): string[] {
  const whole = results.filter(({ chapter }) => chapter.joins === undefined);
  return whole.map(({ chapter, result }) => {
    const joined = results.filter((other) => other.chapter.joins === chapter.name);
    return chapter.text([...result.rows, ...joined.flatMap((other) => other.result.rows)]);
  });
}
