// The text of docs/outside-benchmarks.md.
import { wrapped } from '../adaptation-results/page.ts';
import { table } from '../adaptation-results/tables.ts';
import { GENERATORS, type GeneratorResult } from './generators.ts';

export interface Arm {
  readonly name: string;
  /** Whether the picker is that of llm-d. */
  readonly isLlmD: boolean;
  /** Sections of the configuration beside the default profile. YAML. */
  readonly settings: string;
}

export const ARMS: readonly Arm[] = [
  { name: 'llm-d-router', isLlmD: true, settings: '' },
  { name: 'Pointsman, default', isLlmD: false, settings: '' },
  { name: 'Pointsman, learned', isLlmD: false, settings: 'adaptation: {mode: always}\n' },
];

export interface OutsideRun extends GeneratorResult {
  readonly generator: string;
  readonly arm: string;
  readonly run: number;
  /** Share of the prompt tokens that the servers had cached. */
  readonly hits: number;
}

const INTRODUCTION = `
Load generators that others wrote, through Envoy, against three pickers in front of four simulated servers
(\`llama-8b-l40s\` with 96,000 tokens of cache each): inference-perf 0.7.0 and aiperf 0.13.0. In one run all pickers
get the same traffic, one after the other; the order changes from run to run. Figures are medians over the runs;
TTFT in milliseconds as the generator saw it, hits as the servers counted them. Costs are learned from nothing in each
run. Generator, Envoy, picker and servers share two cores, so a few milliseconds of the means are theirs. The page is
written by:`;

const COMMAND = `<!-- not run: installs 2 GB and runs for an hour -->
\`\`\`sh
sh scripts/install-load-generators.sh
LLM_D_ROUTER=path npm run outside-benchmarks -- --tokenizer folder
\`\`\``;

/** The page; a benchmark without runs is named. */
export function outsidePage(found: readonly OutsideRun[]): string {
  const chapters = GENERATORS.map(({ name, traffic }) => chapter(name, traffic, found));
  const head = ['# Benchmarks that others wrote', INTRODUCTION.trim(), COMMAND, behindText(found)];
  return wrapped(`${[...head, ...chapters].join('\n\n')}\n`);
}

/** Figures by which a picker is behind llm-d's, of the same generator. */
function behindOf(generator: string, arm: Arm, found: readonly OutsideRun[]): string[] {
  const of = (isOwn: (name: string) => boolean) =>
    found.filter((each) => each.generator === generator && isOwn(each.arm));
  const theirs = figures(of((name) => ARMS.some((each) => each.isLlmD && each.name === name)));
  const own = figures(of((name) => name === arm.name));
  if (own.runs === 0 || theirs.runs === 0) return [];
  const behind = [
    Number(own.mean) > Number(theirs.mean) ? `TTFT mean ${own.mean} ms (${theirs.mean})` : '',
    Number(own.hits) < Number(theirs.hits) ? `hits ${own.hits} % (${theirs.hits} %)` : '',
  ].filter((each) => each !== '');
  return behind.length === 0 ? [] : [`- ${generator}, ${arm.name}: ${behind.join(', ')}`];
}

/** Where a picker of ours is behind llm-d's by the medians, as they are shown. */
function behindText(found: readonly OutsideRun[]): string {
  const own = ARMS.filter(({ isLlmD }) => !isLlmD);
  const lines = GENERATORS.flatMap(({ name }) => own.flatMap((arm) => behindOf(name, arm, found)));
  if (lines.length === 0) return 'By the medians Pointsman is nowhere behind llm-d-router, in TTFT mean or in hits.';
  const head = 'Where Pointsman is behind llm-d-router by the medians, whose figures stand in brackets:';
  return `${head}\n\n${lines.join('\n')}`;
}

function chapter(name: string, traffic: string, found: readonly OutsideRun[]): string {
  const own = found.filter(({ generator }) => generator === name);
  const head = `## ${name}\n\n${traffic}`;
  if (own.length === 0) return `${head} Not run for this page.`;
  const rows = ARMS.flatMap((arm) => {
    const runs = own.filter((each) => each.arm === arm.name);
    return runs.length === 0 ? [] : [row(arm.name, runs)];
  });
  return `${head}\n\n${table(['picker', 'TTFT mean', 'its range', 'TTFT p99', 'hits', 'failed', 'runs'], rows)}`;
}

function row(name: string, runs: readonly OutsideRun[]): string[] {
  const means = runs.map(({ ttftMean }) => ttftMean);
  const { mean, p99, hits } = figures(runs);
  return [
    name,
    mean,
    `${Math.min(...means).toFixed(0)} to ${Math.max(...means).toFixed(0)}`,
    p99,
    `${hits} %`,
    `${runs.reduce((sum, { failed }) => sum + failed, 0)}`,
    `${runs.length}`,
  ];
}

/** Medians as they are shown: TTFT in ms, hits in percent. */
function figures(runs: readonly OutsideRun[]) {
  return {
    runs: runs.length,
    mean: median(runs.map(({ ttftMean }) => ttftMean)).toFixed(0),
    p99: median(runs.map(({ ttftP99 }) => ttftP99)).toFixed(0),
    hits: (100 * median(runs.map(({ hits }) => hits))).toFixed(1),
  };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
