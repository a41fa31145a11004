import { oldSignalsMs, signalsState } from '../../src/operations/health-report.js';
import { type Condition, condition, durationText, named, type PickerReading } from './condition.js';
import type { Samples } from './exposition.js';

/** Age of signals that is unknown to the doctor: the default of --metrics-staleness-threshold. */
const STALENESS_MS = 2_000;

/** Value of `pointsman_endpoint_ejection_state` of a dead endpoint. */
const DEAD = 3;

/** Endpoints: none, dead, ejected, left out, or with signals that are missing or old. */
export function endpointConditions(reading: PickerReading): readonly Condition[] {
  const endpoints = namesOf(reading.samples, 'pointsman_endpoint_inflight_requests');
  if (endpoints.length === 0) {
    const remedy = 'check the endpoints file or the selector of the pool (docs/discovery.md)';
    return [condition('error', 'endpoints', 'the pool has none: every request gets 503', remedy)];
  }
  return [
    ...signals(reading, endpoints),
    ...rareScrapes(reading),
    ...frozen(reading, endpoints),
    ...dead(reading, endpoints),
    ...ejected(reading, endpoints),
    ...silent(reading, endpoints),
    ...asleep(reading, endpoints),
    ...refusing(reading, endpoints),
    ...vetoed(reading, endpoints),
    ...warming(reading, endpoints),
    ...leftOut(reading),
  ];
}

function signals({ samples, health }: PickerReading, endpoints: readonly string[]): readonly Condition[] {
  const ages = new Map(
    (samples.get('pointsman_endpoint_signal_age_seconds') ?? []).map(({ labels, value }) => [
      labels.endpoint!,
      value * 1000,
    ]),
  );
  const never = new Set(
    (samples.get('pointsman_endpoint_scraped') ?? [])
      .filter(({ value }) => value === 0)
      .map(({ labels }) => labels.endpoint!),
  );
  const refreshMs = health?.refreshMs ?? 0;
  const intervals = new Map(
    (samples.get('pointsman_endpoint_scrape_interval_seconds') ?? []).map(({ labels, value }) => [
      labels.endpoint!,
      value * 1000,
    ]),
  );
  // What an endpoint is asked more rarely by design makes its signals no older.
  const byDesignMs = (name: string) => Math.max(0, (intervals.get(name) ?? 0) - refreshMs);
  const agedMs = (name: string) => (ages.get(name) ?? Number.POSITIVE_INFINITY) - byDesignMs(name);
  const times = { stalenessMs: health?.stalenessMs ?? STALENESS_MS, refreshMs };
  // The age of an endpoint that was never read counts from the time at which it joined.
  const stateOf = (name: string) => signalsState(never.has(name) ? undefined : agedMs(name), times);
  // What takes no connections has a line of its own.
  const gone = new Set(deadOf(samples));
  const asked = endpoints.filter((name) => !gone.has(name));
  const unknown = asked.filter((name) => stateOf(name) === 'unknown');
  const old = asked.filter((name) => stateOf(name) === 'old');
  const aged = (name: string) =>
    `${name} (${ages.has(name) && !never.has(name) ? `${(ages.get(name)! / 1000).toFixed(1)} s` : 'never reached'})`;
  const remedy = 'ask an endpoint for its metrics page by hand; check its port, path and the network policy';
  const found: Condition[] = [];
  if (unknown.length > 0) {
    const severity = unknown.length === asked.length ? 'error' : 'warning';
    const text = `unknown of ${unknown.length} of ${endpoints.length} endpoints: ${named(unknown.map(aged))}`;
    found.push(condition(severity, 'signals', text, remedy));
  }
  if (old.length > 0) {
    const over = `over ${oldSignalsMs(refreshMs)} ms`;
    const text = `old (${over}) of ${old.length} of ${endpoints.length} endpoints: ${named(old.map(aged))}`;
    found.push(condition('note', 'signals', text, remedy));
  }
  return found;
}

/** Endpoints with traffic that are asked more rarely than they should be, since scrapes take their share of a core. */
function rareScrapes({ samples, health }: PickerReading): readonly Condition[] {
  const intervals = samples.get('pointsman_scrape_interval_seconds') ?? [];
  const seconds = (which: string) => intervals.find(({ labels }) => labels.endpoints === which)?.value ?? 0;
  if (health === undefined || seconds('busy') * 1000 <= health.refreshMs) return [];
  const share = samples.get('pointsman_scrape_cpu_share')?.[0]?.value ?? 0;
  const text =
    `of endpoints with traffic are ${seconds('busy').toFixed(2)} s apart, of others ${seconds('quiet').toFixed(2)} s` +
    `: they take ${Math.round(share * 100)} % of a core, their bound`;
  const remedy = 'raise --scrape-cpu-percent, or make the metrics pages of the engines smaller';
  return [condition('note', 'scrapes', text, remedy)];
}

function frozen({ samples }: PickerReading, endpoints: readonly string[]): readonly Condition[] {
  const still = marked(samples, 'pointsman_endpoint_metrics_frozen');
  if (still.length === 0) return [];
  const text =
    `the metrics page of ${still.length} of ${endpoints.length} endpoints stands still although requests end there: ` +
    named(still);
  const remedy =
    'picks go by its last figures: look for a cache or an exporter in front of the page; else restart the engine';
  return [condition('warning', 'frozen page', text, remedy)];
}

function dead({ samples }: PickerReading, endpoints: readonly string[]): readonly Condition[] {
  const gone = deadOf(samples);
  if (gone.length === 0) return [];
  const severity = gone.length === endpoints.length ? 'error' : 'warning';
  const text = `${gone.length} of ${endpoints.length} endpoints take no connections: ${named(gone)}`;
  const remedy = 'start these servers, or take them out of the pool; each comes back by itself when it listens';
  return [condition(severity, 'dead endpoints', text, remedy)];
}

function ejected({ samples }: PickerReading, endpoints: readonly string[]): readonly Condition[] {
  const quiet = marked(samples, 'pointsman_endpoint_silent');
  const out = (samples.get('pointsman_endpoint_ejection_state') ?? [])
    .filter(({ value }) => value !== 0 && value !== DEAD)
    .map(({ labels }) => labels.endpoint!)
    .filter((name) => !quiet.includes(name));
  if (out.length === 0) return [];
  const severity = out.length === endpoints.length ? 'error' : 'warning';
  const text = `${out.length} of ${endpoints.length} endpoints are out because their answers failed: ${named(out)}`;
  return [condition(severity, 'ejections', text, 'read their logs; each comes back when a probe succeeds')];
}

function silent({ samples }: PickerReading, endpoints: readonly string[]): readonly Condition[] {
  const gone = deadOf(samples);
  const quiet = marked(samples, 'pointsman_endpoint_silent').filter((name) => !gone.includes(name));
  if (quiet.length === 0) return [];
  const out = marked(samples, 'pointsman_endpoint_ejection_state');
  const picked = quiet.filter((name) => !out.includes(name));
  const severity = picked.length === 0 ? 'warning' : 'error';
  const text = `requests in flight on ${quiet.length} of ${endpoints.length} endpoints get no byte: ${named(quiet)}`;
  const still =
    picked.length === 0 ? '' : `; new ones still go to ${named(picked)}: half of the pool is out, or ejection is off`;
  const remedy =
    'the engine hangs although its health and metrics answer: read its log, restart it; it is back with the first byte';
  return [condition(severity, 'silence', text + still, remedy)];
}

function asleep({ samples }: PickerReading, endpoints: readonly string[]): readonly Condition[] {
  const sleeping = marked(samples, 'pointsman_endpoint_asleep');
  if (sleeping.length === 0) return [];
  const severity = sleeping.length === endpoints.length ? 'error' : 'note';
  const which = `${sleeping.length} of ${endpoints.length} endpoints`;
  const text = `the engines of ${which} sleep and get no requests: ${named(sleeping)}`;
  return [condition(severity, 'sleep', text, 'wake them with POST /wake_up; each gets requests after its next scrape')];
}

function refusing({ samples }: PickerReading, endpoints: readonly string[]): readonly Condition[] {
  const rates = (samples.get('pointsman_endpoint_engine_refused_per_second') ?? []).filter(({ value }) => value > 0);
  if (rates.length === 0) return [];
  const each = rates.map(({ labels, value }) => `${labels.endpoint!} (${value}/s)`);
  const text = `the engines of ${rates.length} of ${endpoints.length} endpoints refuse requests: ${named(each)}`;
  const remedy =
    'their clients get 503: let requests wait in the picker (flowControl), or raise --max-num-queued-reqs and ' +
    '--max-num-queued-tokens of the engines';
  return [condition('warning', 'refused requests', text, remedy)];
}

/** Time from which on a veto is no passing burst. */
const VETO_SECONDS = 30;
/** Time from which on a cold cache should have warmed up. */
const WARMING_SECONDS = 300;

/** Endpoints that overload-filter vetoes: all of them now, or some for long. */
function vetoed({ samples }: PickerReading, endpoints: readonly string[]): readonly Condition[] {
  const vetoes = samples.get('pointsman_endpoint_vetoed_seconds') ?? [];
  const limits = samples.get('pointsman_endpoint_veto_limit') ?? [];
  const isAll = vetoes.length === endpoints.length;
  const lasting = isAll ? vetoes : vetoes.filter(({ value }) => value >= VETO_SECONDS);
  if (lasting.length === 0) return [];
  const each = lasting.map(({ labels: { endpoint, limit }, value }) => {
    const at = limits.find(({ labels }) => labels.endpoint === endpoint)?.value ?? Number.NaN;
    const text = limit === 'waiting' ? `${number(at)} waiting requests` : `${number(at * 100)} % of the KV cache`;
    return `${endpoint!} (over ${text} for ${value} s)`;
  });
  const which = `${lasting.length} of ${endpoints.length} endpoints`;
  const text = `overload-filter vetoes ${which}: ${named(each)}`;
  const remedy = isAll
    ? 'requests go on as without the filter, or get 429 with fallbackOnEmpty: false: add model servers'
    : 'look whether these engines still work; raise maxWaiting, batches or maxKvCacheUsage if they do';
  return [condition('warning', 'vetoes', text, remedy)];
}

function number(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** Endpoints whose caches stay cold. */
function warming({ samples }: PickerReading, endpoints: readonly string[]): readonly Condition[] {
  const cold = (samples.get('pointsman_endpoint_warming_seconds') ?? []).filter(
    ({ value }) => value >= WARMING_SECONDS,
  );
  if (cold.length === 0) return [];
  const each = cold.map(({ labels, value }) => `${labels.endpoint!} (${durationText(value * 1000)})`);
  const text = `the caches of ${cold.length} of ${endpoints.length} endpoints do not warm up: ${named(each)}`;
  const remedy =
    'pointsman why shows what they hold of the prompts; see that their caches are as large as those of the others, ' +
    'and lower requests of warm-up-filter';
  return [condition('note', 'warm-up', text, remedy)];
}

function deadOf(samples: Samples): readonly string[] {
  const states = samples.get('pointsman_endpoint_ejection_state') ?? [];
  return states.filter(({ value }) => value === DEAD).map(({ labels }) => labels.endpoint!);
}

/** Endpoints whose gauge is not 0. */
function marked(samples: Samples, gauge: string): readonly string[] {
  return (samples.get(gauge) ?? []).filter(({ value }) => value !== 0).map(({ labels }) => labels.endpoint!);
}

function leftOut({ samples }: PickerReading): readonly Condition[] {
  const count = samples.get('pointsman_left_out_endpoints')?.[0]?.value ?? 0;
  if (count === 0) return [];
  return [condition('error', 'endpoints', `${count} are left out: the pool is full`, 'raise --max-endpoints')];
}

function namesOf(samples: Samples, name: string): readonly string[] {
  return (samples.get(name) ?? []).map(({ labels }) => labels.endpoint!);
}
