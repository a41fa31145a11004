import type { Recording } from '../../src/operations/recording/recording-reader.js';
import { counted } from '../../src/runtime/counted.js';
import { columns } from '../command-line/text-columns.js';
import type { ReplayedGroup, ReplayResult } from './comparison.js';

/** Bound on the listed endpoints, those with the largest changes of share. */
const ENDPOINTS_LISTED = 12;

/** A replay for people. */
export function replayText({ header, trailer }: Recording, result: ReplayResult): string {
  const { decisions, reproduced, total, priorities, endpoints } = result;
  const begun = new Date(header.wallMs).toISOString();
  const whole = trailer === undefined ? 'the file was cut off' : `${trailer.seconds.toFixed(1)} s`;
  const dropped = trailer !== undefined && trailer.dropped > 0 ? `, ${counted(trailer.dropped, 'frame')} left out` : '';
  const lines = columns([
    ['recording', `pool ${header.pool}, from ${begun}, ${whole}${dropped}: ${counted(decisions, 'decision')}`],
    ['again', `${percent(reproduced)} of the recorded picks are made again by the recorded configuration`],
    ['other', `another endpoint for ${percent(total.different / decisions)} of them, none for ${total.unplaced}`],
    ['worth', worth(total)],
  ]);
  const head = ['priority', 'decisions', 'different', 'cost recorded', 'other', 'cached recorded', 'other'];
  const groups = columns([head, ...priorities.map(groupRow)]);
  const shown = [...endpoints]
    .sort((a, b) => Math.abs(b.other - b.recorded) - Math.abs(a.other - a.recorded))
    .slice(0, ENDPOINTS_LISTED);
  const shares = columns([
    ['endpoint', 'picks recorded', 'other'],
    ...shown.map(({ endpoint, recorded, other }) => [endpoint, percent(recorded), percent(other)]),
  ]);
  return `${[lines, groups, shares].map((block) => block.join('\n')).join('\n\n')}\n`;
}

function worth({ cost }: ReplayedGroup): string {
  if (cost === null) return 'nothing to compare';
  const change = cost.other / cost.recorded - 1;
  return (
    `predicted cost of a request ${target(cost.other)} instead of ${target(cost.recorded)} targets ` +
    `(${change <= 0 ? '' : '+'}${percent(change)})`
  );
}

function groupRow({ priority, decisions, different, cost, cached }: ReplayedGroup): string[] {
  return [
    String(priority),
    String(decisions),
    percent(different / decisions),
    cost === null ? '–' : target(cost.recorded),
    cost === null ? '–' : target(cost.other),
    cached === null ? '–' : percent(cached.recorded),
    cached === null ? '–' : percent(cached.other),
  ];
}

function target(cost: number): string {
  return cost.toFixed(3);
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
