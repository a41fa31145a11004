import { counted } from '../../src/runtime/counted.js';
import { type Condition, condition, durationText, type PickerReading, type Severity } from './condition.js';
import { endpointConditions } from './endpoint-checks.js';
import { engineConditions } from './engine-checks.js';
import { errorConditions } from './error-checks.js';
import { sumOf } from './exposition.js';
import { learningConditions } from './learning-checks.js';
import { processConditions, requestsOf } from './process-checks.js';
import { sessionConditions } from './session-checks.js';
import { trafficConditions } from './traffic-checks.js';

/** Number of decisions from which on a scorer is judged. */
const DECISIONS_MIN = 20;

/** Decisions: scorers without effect, bodies that nothing reads, waits. */
function decisionConditions(reading: PickerReading): readonly Condition[] {
  return [...scorers(reading), ...chunks(reading), ...waits(reading)];
}

function scorers({ health }: PickerReading): readonly Condition[] {
  return (health?.scorers ?? []).flatMap(({ scorer, decisions, apart, decided }) => {
    if (decisions < DECISIONS_MIN || decided > 0) return [];
    if (apart === 0) {
      const text = `${scorer} scored all candidates alike in ${decisions} decisions`;
      const remedy = 'right while the pool has little to do; under load check the signal that it reads (pointsman why)';
      return [condition('note', 'scorers', text, remedy)];
    }
    const text = `${scorer} changed no pick in ${decisions} decisions`;
    const remedy = 'right while the pool has little to do; under load raise its weight, or remove it';
    return [condition('note', 'scorers', text, remedy)];
  });
}

function chunks(reading: PickerReading): readonly Condition[] {
  const { samples, earlier, health } = reading;
  const answers = sumOf(samples, 'pointsman_unread_answers_total');
  const still = earlier === undefined || answers > sumOf(earlier, 'pointsman_unread_answers_total');
  if (answers === 0 || health?.readsAnswers === true) return [];
  const text = `the proxy sent the bodies of ${answers} of ${requestsOf(reading)} answers, and no decision reads them`;
  const remedy = 'set response_body_mode: NONE and keep response_trailer_mode: SEND (docs/guides/processing-modes.md)';
  return [condition(still ? 'warning' : 'note', 'chunks', text, remedy)];
}

function waits({ waiting }: PickerReading): readonly Condition[] {
  if (waiting === undefined) return [];
  const remedy = 'add model servers if it lasts; /debug/flow-control says what closes each endpoint';
  if (waiting.isFull) {
    const { count, longestMs } = waiting;
    const text = `no endpoint has room: ${counted(count, 'request')} waiting, the first for ${durationText(longestMs)}`;
    return [condition('warning', 'saturated pool', text, remedy)];
  }
  return [condition('note', 'queues', `${counted(waiting.count, 'request')} waiting: ${waiting.why}`, remedy)];
}

const ORDER: readonly Severity[] = ['error', 'warning', 'note'];

/** Conditions that need attention, the worst first. */
export function diagnosis(reading: PickerReading): readonly Condition[] {
  return [
    ...processConditions(reading),
    ...endpointConditions(reading),
    ...engineConditions(reading),
    ...decisionConditions(reading),
    ...trafficConditions(reading),
    ...sessionConditions(reading),
    ...learningConditions(reading),
    ...errorConditions(reading),
  ].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
}

/** Exit code of the doctor: 0 = nothing beyond notes, 1 = warnings, 2 = errors. */
export function exitCodeOf(conditions: readonly Condition[]): number {
  if (conditions.some(({ severity }) => severity === 'error')) return 2;
  return conditions.some(({ severity }) => severity === 'warning') ? 1 : 0;
}
