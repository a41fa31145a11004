import type { PredictedAndObserved } from './cost-model.js';
import type { ShownAdaptation } from './shown-adaptation.js';

/**
 * An operator's first questions, one sentence each: the active arm and its reason, the quality of the predictions, the
 * gain, and the important terms.
 */
export function adaptationInWords(shown: Omit<ShownAdaptation, 'inWords'>): string[] {
  if (shown.mode === 'off') return ['Adaptation is off: the configured weights decide and nothing is learned.'];
  return [whoDecides(shown), predictions(shown), comparison(shown), terms(shown), ...slowEndpoints(shown)].filter(
    (sentence) => sentence !== '',
  );
}

type Shown = Omit<ShownAdaptation, 'inWords'>;

function whoDecides({ mode, arm, state, why, rules }: Shown): string {
  const learned = rules === undefined ? 'Learned costs decide' : `The rule "${rules.current}" decides`;
  if (mode === 'always') return `${learned}, without a guard (mode: always).`;
  if (arm === 'learned') {
    if (state !== 'canary') return `${learned}.`;
    return `${learned} this epoch, in turn with the configured weights, until they are proven.`;
  }
  return `The configured weights decide: ${why ?? 'learned costs may not yet'}.`;
}

function predictions({ fit }: Shown): string {
  if (fit.firstOutput === undefined) return 'No request has been learned from yet.';
  const perToken = fit.perToken === undefined ? '' : `; per output token ${times(fit.perToken)}`;
  return (
    `Learned from ${fit.samples} requests. Of the last ones, time to first output ` +
    `${times(fit.firstOutput)}${perToken}.`
  );
}

function times({ predictedMs, observedMs }: PredictedAndObserved): string {
  return (
    `${observedMs.p50.toFixed(0)} ms in the middle and ${observedMs.p90.toFixed(0)} ms at the 90th percentile, ` +
    `predicted ${predictedMs.p50.toFixed(0)} and ${predictedMs.p90.toFixed(0)} ms`
  );
}

function comparison(shown: Shown): string {
  const { mode, arms, gap, tailGap, tokenTailGap, measure, goodput, goodputGap } = shown;
  if (mode !== 'auto' || arms.learned.epochs === 0) return '';
  const low = percent(gap.mean - gap.halfWidth);
  const high = percent(gap.mean + gap.halfWidth);
  const epochs = `${arms.learned.epochs} epochs of learned costs and ${arms.static.epochs} of the configured weights`;
  const tail =
    `the slowest hundredth waits ${percent(tailGap.mean)} for its first output and ` +
    `${percent(tokenTailGap.mean)} for an output token`;
  if (measure === 'goodput' && goodputGap !== undefined) {
    const { static: configured, learned } = goodput;
    return (
      `By ${epochs}, ${share(learned)} of the requests met their latency targets with learned costs and ` +
      `${share(configured)} with the configured weights (95 % interval of their ratio ` +
      `${percent(-goodputGap.mean - goodputGap.halfWidth)} to ${percent(goodputGap.halfWidth - goodputGap.mean)}); ` +
      `${tail}.`
    );
  }
  return (
    `By ${epochs}, requests cost ${percent(gap.mean)} with learned costs (95 % interval ${low} to ${high}); ` +
    `${tail}.`
  );
}

function share(part: number | undefined): string {
  return part === undefined ? 'an unknown share' : `${(100 * part).toFixed(1)} %`;
}

/** A difference of logarithms as a change in percent. */
function percent(logarithm: number): string {
  const change = 100 * Math.expm1(logarithm);
  return `${change < 0 ? '−' : '+'}${Math.abs(change).toFixed(1)} %`;
}

function terms({ shares, inactive }: Shown): string {
  if (shares === undefined) return '';
  const telling = Object.entries(shares)
    .filter(([, share]) => share >= 0.01)
    .sort(([, a], [, b]) => b - a)
    .map(([term, share]) => `${term} ${(100 * share).toFixed(0)} %`);
  const scorers = inactive.flatMap((each) => each.scorers);
  const idle = scorers.length === 0 ? '' : ` Nothing has come of ${scorers.join(', ')} for five minutes.`;
  return telling.length === 0 ? idle.trim() : `Endpoints are told apart by ${telling.join(', ')}.${idle}`;
}

function slowEndpoints({ endpoints }: Shown): string[] {
  const slow = endpoints.filter(({ speed }) => speed > 1);
  if (slow.length === 0) return [];
  return [
    `Output takes longer on ${slow.map(({ endpoint, speed }) => `${endpoint} (×${speed.toFixed(2)})`).join(', ')}.`,
  ];
}
