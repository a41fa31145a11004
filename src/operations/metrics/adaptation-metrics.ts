import type { ShownAdaptation } from '../../adaptation/shown-adaptation.js';
import type { MetricsExposition, Sample } from '../telemetry/exposition.js';

const STATES = ['off', 'shadow', 'canary', 'active', 'fallback'] as const;

/** Ways to register a metric of the adaptation, by the shape of its values. */
interface Gauges {
  readonly many: (name: string, help: string, label: string, values: () => Iterable<Sample>) => void;
  readonly one: (name: string, help: string, value: (shown: ShownAdaptation) => number | undefined) => void;
  /** One series for each field of an object. */
  readonly each: (
    name: string,
    help: string,
    label: string,
    values: (shown: ShownAdaptation) => object | undefined,
  ) => void;
}

/** Registers the metrics of the adaptation. `read` is called once per metric and page. */
export function addAdaptationMetrics(exposition: MetricsExposition, read: () => ShownAdaptation): void {
  const gauges = gaugesOf(exposition, read);
  stateGauges(gauges);
  endpointGauges(gauges.many, read);
  exposition.addQuantiles({
    name: 'pointsman_adaptation_latency_seconds',
    help: 'Times of the last requests, as predicted before they were learned from and as observed.',
    labels: ['time', 'source', 'quantile'],
    read: () => latencySamples(read()),
  });
  predictionGauges(gauges);
  comparisonGauges(gauges);
  goodputGauges(gauges);
  counters(exposition, read);
}

function gaugesOf(exposition: MetricsExposition, read: () => ShownAdaptation): Gauges {
  const gauge = (name: string, help: string, labels: readonly string[], values: () => Iterable<Sample>) =>
    exposition.addGauge({ name: `pointsman_adaptation_${name}`, help, labels, read: values });
  return {
    many: (name, help, label, values) => gauge(name, help, [label], values),
    one: (name, help, value) =>
      gauge(name, help, [], () => {
        const found = value(read());
        return found === undefined ? [] : [{ labels: {}, value: found }];
      }),
    each: (name, help, label, values) =>
      gauge(name, help, [label], () =>
        Object.entries(values(read()) ?? {}).map(([key, value]) => ({
          labels: { [label]: key },
          value: Number(value),
        })),
      ),
  };
}

/** Adds the gauges of the arm that decides, and of its costs. */
function stateGauges({ one, each }: Gauges): void {
  each('state', '1 for the state that the adaptation is in, 0 for the others.', 'state', stateOf);
  one('driving', '1 while learned costs decide, 0 while the configured weights do.', ({ arm }) =>
    Number(arm === 'learned'),
  );
  each(
    'coefficient',
    'Coefficients of the cost of one more request: milliseconds (…Ms), tokens, requests (slots) and factors ' +
      '(missPrice, evictionPrice).',
    'name',
    ({ coefficients }) => coefficients,
  );
  one(
    'return_odds',
    'Share of the computed tokens that had been evicted: the odds that what a miss evicts is wanted again.',
    (shown) => shown.returnOdds,
  );
  each(
    'effective_weight',
    'Cost in targets of 1,000 tokens outside the cache (context) or ahead in the queue, a waiting request, an ' +
      'active request, ' +
      '100,000 tokens in the KV cache (kvTokens).',
    'term',
    (shown) => shown.effectiveWeights,
  );
  each(
    'tier_price',
    'Learned cost of loading a block from a tier below the GPU, beside computing it: 0 = as on the GPU, 1 = as none.',
    'tier',
    ({ tierPrices }) => tierPrices,
  );
  each('decision_share', 'Share of a term in what told endpoints apart.', 'term', ({ shares }) => shares);
}

/** Adds the gauges of how good the predictions are. */
function predictionGauges({ one }: Gauges): void {
  one(
    'rank_correlation',
    'Rank correlation of predicted and observed times to first output.',
    ({ fit }) => fit.correlation,
  );
  one('prediction_bias', 'Median of ln(observed/predicted) of times to first output.', ({ fit }) => fit.bias);
  one(
    'agreement',
    'Share of decisions in which learned costs would have picked the same endpoint.',
    (shown) => shown.agreement,
  );
}

/** Adds the gauges of learned costs against the configured weights. */
function comparisonGauges({ one, each }: Gauges): void {
  one('budget_risked', 'Share of the accepted loss that may have been used up.', ({ risked }) => risked);
  each('arm_cost', 'Mean of ln(cost/reference) of the epochs of an arm.', 'arm', ({ arms }) => ({
    static: arms.static.mean,
    learned: arms.learned.mean,
  }));
  each(
    'cost_gap',
    'ln(cost with learned costs / cost with the configured weights), and the ends of its 95 % interval.',
    'bound',
    ({ gap }) => intervalOf(gap),
  );
  each(
    'tail_gap',
    'ln(TTFT p99 with learned costs / TTFT p99 with the configured weights), and the ends of its 95 % interval.',
    'bound',
    ({ tailGap }) => intervalOf(tailGap),
  );
  each(
    'token_tail_gap',
    'ln(TPOT p99 with learned costs / TPOT p99 with the configured weights), and the ends of its 95 % interval.',
    'bound',
    ({ tokenTailGap }) => intervalOf(tokenTailGap),
  );
}

/** Adds the gauges of requests that come with latency targets; without such requests they have no series. */
function goodputGauges({ each }: Gauges): void {
  each(
    'goodput_ratio',
    'Share of the requests with latency targets of their own that met theirs, by the arm that decided.',
    'arm',
    ({ goodput }) => goodput,
  );
  each(
    'goodput_gap',
    'ln(goodput with the configured weights / goodput with learned costs), and the ends of its 95 % interval.',
    'bound',
    ({ goodputGap }) => (goodputGap === undefined ? undefined : intervalOf(goodputGap)),
  );
}

function intervalOf({ mean, halfWidth }: ShownAdaptation['gap']): Readonly<Record<string, number>> {
  return { mean, low: mean - halfWidth, high: mean + halfWidth };
}

function latencySamples({ fit }: ShownAdaptation): Sample[] {
  const times = { first_output: fit.firstOutput, output_token: fit.perToken };
  return Object.entries(times).flatMap(([time, found]) => {
    if (found === undefined) return [];
    const sources = { predicted: found.predictedMs, observed: found.observedMs };
    return Object.entries(sources).flatMap(([source, { p50, p90 }]) => [
      { labels: { time, source, quantile: '0.5' }, value: p50 / 1000 },
      { labels: { time, source, quantile: '0.9' }, value: p90 / 1000 },
    ]);
  });
}

function endpointGauges(gauge: Gauges['many'], read: () => ShownAdaptation): void {
  const perEndpoint = (pick: (each: ShownAdaptation['endpoints'][number]) => number) => () =>
    read().endpoints.map((each) => ({ labels: { endpoint: each.endpoint }, value: pick(each) }));
  gauge(
    'endpoint_slowness',
    'How much longer output takes there than on the others; 1 = as long.',
    'endpoint',
    perEndpoint(({ speed }) => speed),
  );
  gauge(
    'endpoint_cache_reliability',
    'Share of the tokens thought to be cached there that were.',
    'endpoint',
    perEndpoint(({ reliability }) => reliability),
  );
}

function counters(exposition: MetricsExposition, read: () => ShownAdaptation): void {
  const counter = (name: string, help: string, value: (shown: ShownAdaptation) => number) =>
    exposition.addCounter({
      name: `pointsman_adaptation_${name}`,
      help,
      read: () => [{ labels: {}, value: value(read()) }],
    });
  exposition.addCounter({
    name: 'pointsman_adaptation_labels_total',
    help: 'Finished requests by outcome of their training samples.',
    labels: ['outcome'],
    read: () => Object.entries(read().samples).map(([outcome, value]) => ({ labels: { outcome }, value })),
  });
  counter('fallbacks_total', 'Times that learned costs were taken back.', ({ fallbacks }) => fallbacks);
  counter('changes_total', 'Times that latencies were found to have changed.', ({ alarms }) => alarms);
}

function stateOf({ mode, state }: ShownAdaptation): Record<string, number> {
  const current = mode === 'off' ? 'off' : state;
  return Object.fromEntries(STATES.map((each) => [each, Number(each === current)]));
}
