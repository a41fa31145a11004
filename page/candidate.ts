import type { CandidateShown, ComparisonShown, Snapshot } from '../src/operations/page/snapshot.ts';
import { byId, type Column, empty, h, show, table } from './dom.ts';
import { clock, count, short } from './text.ts';

type Row = ComparisonShown & { readonly objective: string };

/** The candidate configuration beside the running one; the section is there only while one is configured. */
export function showCandidate({ candidate, time }: Snapshot): void {
  byId('candidate').hidden = candidate === null;
  if (candidate === null) return;
  const { all } = candidate;
  const compared = all === null ? [empty('It has decided nothing yet.')] : figures(candidate, all);
  show('candidate-body', h('p', {}, stateOf(candidate, time)), ...compared);
}

function stateOf({ file, every, seconds, stopped }: CandidateShown, time: number): HTMLElement {
  const name = h('code', { title: file }, short(file));
  if (stopped !== null) return h('span', { class: 'bad-text' }, name, ` decides no longer: ${stopped}`);
  const part = every === 1 ? 'every request' : `one request in ${every}`;
  const since = `decides ${part} too since ${clock(time - seconds)}, and nothing follows from it.`;
  return h('span', {}, name, ` ${since}`);
}

function figures({ objectives }: CandidateShown, all: ComparisonShown): HTMLElement[] {
  const rows: readonly Row[] = objectives.length > 1 ? [{ objective: 'all', ...all }, ...objectives] : objectives;
  const columns: Column<Row>[] = [
    { head: 'Objective', cell: ({ objective }) => objective },
    { head: 'Decisions', number: true, cell: ({ decisions }) => count(decisions) },
    { head: 'Different', number: true, cell: ({ different }) => `${(different * 100).toFixed(1)} %` },
    { head: 'Cost', number: true, cell: costsOf },
    { head: 'Unplaced', number: true, wide: true, cell: unplacedOf },
  ];
  return [
    h('p', {}, summary(all)),
    table({ caption: 'Predicted cost in targets (1 = as long as the target), running → candidate' }, columns, rows),
  ];
}

function summary({ different, runningCost, candidateCost }: ComparisonShown): string {
  const picks = `Other picks for ${(different * 100).toFixed(1)} % of the requests`;
  if (runningCost === null || candidateCost === null) return `${picks}.`;
  const change = runningCost > 0 ? ` (${signed((candidateCost / runningCost - 1) * 100)} %)` : '';
  return (
    `${picks}, at a predicted cost of ${targets(candidateCost)} instead of ${targets(runningCost)} ` +
    `targets${change}.`
  );
}

function costsOf({ runningCost, candidateCost }: Row): string {
  return runningCost === null ? '–' : `${targets(runningCost)} → ${targets(candidateCost)}`;
}

function unplacedOf({ unplaced }: Row): HTMLElement | string {
  return unplaced > 0 ? h('span', { class: 'bad-text' }, count(unplaced)) : '0';
}

function targets(value: number | null): string {
  return value === null ? '–' : value.toFixed(3);
}

function signed(value: number): string {
  return `${value > 0 ? '+' : '−'}${Math.abs(value).toFixed(1)}`;
}
