import type { EffectiveWeights, ShownAdaptation } from '../../../src/adaptation/shown-adaptation.js';
import { Table } from '../table.js';
import type { Figures } from './figures.js';
import type { ShiftRun, ShiftWindow } from './shift.js';
import { PHASES } from './traffic.js';

const DECIDES = 'decides   ';
const LIVE_HEAD = ['second', DECIDES, 'done', 'failed', 'TTFT p50', 'TTFT p99', 'cached', ' cost', 'guard'];
const END_HEAD = [DECIDES, 'done', 'TTFT p50', 'TTFT p99', 'cached', 'spread', 'srv 0', '  cost', 'change'];
const END_NOTE = [
  'spread: requests of the fullest server over those of the emptiest',
  'srv 0: share of server-0; change: cost against the other pool',
]
  .map((line) => `  ${line}`)
  .join('\n');

/** The lines of the shift while it runs: in every window one for each pool, and the weights of those that learn. */
export class LiveTable {
  readonly #table = new Table(LIVE_HEAD);
  #phase = -1;

  head(): string {
    return this.#table.head();
  }

  rows({ second, phase, pools }: ShiftWindow): string {
    const rows = pools.flatMap(({ figures, learned }, index) => {
      const line = this.#table.line([
        index === 0 ? second.toFixed(0) : '',
        decides(learned),
        String(figures.answered),
        figures.failed === 0 ? '' : String(figures.failed),
        milliseconds(figures.firstTokenP50),
        milliseconds(figures.firstTokenP99),
        percent(figures.cached),
        decimals(figures.cost, 2),
        learned.state,
      ]);
      return learned.arm === 'learned' ? [line, `    weights ${weightsText(learned.effectiveWeights)}`] : [line];
    });
    const begins = phase === this.#phase ? [] : [`  ${PHASES[phase]!.name}`];
    this.#phase = phase;
    return [...begins, ...rows].join('\n');
  }
}

/**
 * Two pools side by side, phase by phase and then in all: each line of the second with its cost against the first's.
 */
export function comparison(first: ShiftRun, second: ShiftRun): string {
  const table = new Table(END_HEAD);
  const pair = (phase: string, ours: Figures, theirs: Figures) => [
    `  ${phase}`,
    table.line([first.name, ...cells(ours), '']),
    table.line([second.name, ...cells(theirs), signedPercent(theirs.cost / ours.cost - 1)]),
  ];
  const phases = PHASES.flatMap(({ name }, phase) => pair(name, first.phases[phase]!, second.phases[phase]!));
  return [table.head(), ...phases, ...pair('all', first.whole, second.whole), END_NOTE].join('\n');
}

/** Changes of the learned weights, and the state of the guard. */
export function learnedText({ name, before, after }: ShiftRun): string {
  const { samples, fit, arm, state, fallbacks } = after;
  const correlation = fit.correlation === undefined ? 'unknown' : decimals(fit.correlation, 2);
  return `  ${name}: learned from ${samples.learned} requests; predicted and observed times to first token
    rank alike with ${correlation}
    weights before and after
    ${weightsText(before.effectiveWeights)}
    ${weightsText(after.effectiveWeights)}
    guard    ${state}, ${arm === 'learned' ? 'learned costs decide' : 'the configured weights decide'}, \
taken back ${fallbacks} times`;
}

function cells(figures: Figures): string[] {
  return [
    String(figures.answered),
    milliseconds(figures.firstTokenP50),
    milliseconds(figures.firstTokenP99),
    percent(figures.cached),
    ratio(figures.imbalance),
    percent(figures.firstServer),
    decimals(figures.cost, 3),
  ];
}

function decides({ arm }: ShownAdaptation): string {
  return arm === 'learned' ? 'learned' : 'configured';
}

/** Cost of one unit of what each kind of scorer looks at, in thousandths of a target. */
function weightsText(weights: EffectiveWeights): string {
  const { context, queue, waiting, activeRequest, kvTokens } = weights;
  const named = { context, queue, waiting, request: activeRequest, KV: kvTokens };
  return Object.entries(named)
    .map(([name, weight]) => `${name} ${decimals(1_000 * weight, 1)}`)
    .join('  ');
}

function decimals(value: number, places: number): string {
  return Number.isFinite(value) ? value.toFixed(places) : '–';
}

function milliseconds(value: number): string {
  return Number.isFinite(value) ? `${value.toFixed(0)} ms` : '–';
}

function percent(share: number): string {
  return Number.isFinite(share) ? `${(100 * share).toFixed(0)} %` : '–';
}

function signedPercent(share: number): string {
  return Number.isFinite(share) ? `${share < 0 ? '−' : '+'}${Math.abs(100 * share).toFixed(1)} %` : '–';
}

function ratio(value: number): string {
  return Number.isFinite(value) ? value.toFixed(2) : '–';
}
