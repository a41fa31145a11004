import type { LearningUse } from '../../src/operations/health-report.js';
import { type Condition, condition, named, type PickerReading } from './condition.js';
import type { Samples } from './exposition.js';

/** Factor on the time of an output token from which on an endpoint is told to be slow. */
const SLOWNESS_MIN = 1.3;
/** Age of the process from which on learned costs that were never tried are told. */
const UNTRIED_SECONDS = 900;

/**
 * Learned costs: taken back, not tried, what an earlier run had learned and was not used, and endpoints of other
 * hardware without the label that would tell it.
 */
export function learningConditions({ health, samples }: PickerReading): readonly Condition[] {
  const use = health?.learning;
  if (health === undefined || use === undefined) return [];
  return [...driving(use, health.uptimeSeconds), ...unusedFile(use), ...unlabelled(use, samples)];
}

function driving({ mode, state, why }: LearningUse, uptimeSeconds: number): readonly Condition[] {
  if (mode !== 'auto' || why === null) return [];
  if (state === 'fallback') {
    const remedy =
      '/debug/adaptation has the figures; label endpoints of different hardware, or set adaptation.mode: shadow ' +
      '(docs/adaptation.md)';
    return [condition('warning', 'learned costs', why, remedy)];
  }
  if (state !== 'shadow' || uptimeSeconds < UNTRIED_SECONDS) return [];
  const text = `not tried in ${Math.floor(uptimeSeconds / 60)} minutes: ${why}`;
  return [condition('note', 'learned costs', text, 'docs/adaptation.md says what the guard waits for')];
}

function unusedFile({ fileUnused }: LearningUse): readonly Condition[] {
  if (fileUnused === null) return [];
  const text = `began anew, as the file of what was learned before was not used: ${fileUnused}`;
  return [
    condition('note', 'learned costs', text, 'nothing is to be done: the file is replaced by what is learned now'),
  ];
}

/** Slow endpoints in a pool of one hardware class. */
function unlabelled({ classes, hardwareLabel }: LearningUse, samples: Samples): readonly Condition[] {
  if (classes > 0) return [];
  const slow = (samples.get('pointsman_adaptation_endpoint_slowness') ?? [])
    .filter(({ value }) => value >= SLOWNESS_MIN)
    .sort((a, b) => b.value - a.value)
    .map(({ labels: { endpoint = '' }, value }) => `${endpoint} (${value.toFixed(1)} times)`);
  if (slow.length === 0) return [];
  const text = `output takes longer than on the others on ${named(slow)}`;
  const remedy = `if their hardware is another one, label all endpoints by it (${hardwareLabel}); else look at them`;
  return [condition('note', 'learned costs', text, remedy)];
}
