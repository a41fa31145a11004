import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { HealthReport } from '../../dist/src/operations/health-report.js';
import { type CandidateScores, ScorerUses } from '../../dist/src/operations/why/scorer-use.js';
import type { PickerReading } from '../../dist/tools/doctor/condition.js';
import { diagnosis, exitCodeOf } from '../../dist/tools/doctor/diagnosis.js';
import { doctorText } from '../../dist/tools/doctor/doctor-text.js';
import { ofPool, readSamples } from '../../dist/tools/doctor/exposition.js';
import { startFleet } from '../../dist/tools/simulator/server/fleet.js';
import { dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { ask, PROGRAM, Setting, startPicker } from '../picker/serving.ts';
import { eventually } from './gateway/client.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const HEALTHY: HealthReport = {
  timeMs: 0,
  pool: 'p',
  version: '1',
  uptimeSeconds: 7_380,
  unready: [],
  stalenessMs: 2_000,
  refreshMs: 50,
  bounds: [{ name: 'streams', used: 10, limit: 10_000, setting: '--max-streams', fills: false }],
  memory: { resident: 100e6, limit: 1e9, needs: [{ what: 'everything', bytes: 900e6 }] },
  scorers: [{ scorer: 'queue-scorer', decisions: 50, apart: 40, decided: 9 }],
  plugins: [],
  traffic: { windowSeconds: 60, decided: 0, refused: {}, endpoints: [], leaning: null, explained: 0 },
  lastMinute: {},
  readsAnswers: true,
  configuration: { lastReload: null, warnings: [] },
};

const LEARNING: NonNullable<HealthReport['learning']> = {
  mode: 'auto',
  state: 'active',
  why: null,
  fileUnused: null,
  classes: 0,
  hardwareLabel: 'llm-d.ai/accelerator-variant',
};

const PAGE = `pointsman_endpoint_inflight_requests{endpoint="a"} 1
pointsman_endpoint_inflight_requests{endpoint="b"} 0
pointsman_endpoint_signal_age_seconds{endpoint="a"} 0.04
pointsman_endpoint_signal_age_seconds{endpoint="b"} 0.05
pointsman_endpoint_ejection_state{endpoint="a"} 0
pointsman_endpoint_ejection_state{endpoint="b"} 0
pointsman_ledger_entries 1
llm_d_epp_request_total{model_name="m"} 50
`;

interface Given {
  readonly page?: string;
  readonly earlier?: string;
  readonly health?: Partial<HealthReport>;
  readonly rest?: Partial<PickerReading>;
}

/** A healthy picker but for what is given. */
function reading({ page = PAGE, earlier = page, health = {}, rest = {} }: Given): PickerReading {
  return {
    samples: readSamples(page),
    earlier: readSamples(earlier),
    health: { ...HEALTHY, ...health },
    unreadable: undefined,
    waiting: undefined,
    otherPools: [],
    clock: { skewMs: 3, uncertainMs: 2 },
    ...rest,
  };
}

const lines = (given: Given) =>
  diagnosis(reading(given)).map(({ severity, about, text }) => `${severity} ${about}: ${text}`);

const CASES: readonly (readonly [string, string, Given])[] = [
  [
    'agents whose histories find no room',
    'warning sessions: 60 of 200 turns of agents found no KV cache with room for their history; 3 are held now',
    {
      page: `${PAGE}pointsman_session_looks_total{room="none"} 60
pointsman_session_looks_total{room="room"} 40
pointsman_session_looks_total{room="protected"} 100
pointsman_session_held 3\n`,
    },
  ],
  [
    'agents whose histories find no room, with the number that fits',
    'warning sessions: 60 of 200 turns of agents found no KV cache with room for their history; 90 sessions were ' +
      'active in the last five minutes, and 40 of their size fit',
    {
      page: `${PAGE}pointsman_session_looks_total{room="none"} 60
pointsman_session_looks_total{room="room"} 140
llm_d_epp_thunder_agent_endpoint_capacity_tokens{endpoint="a"} 9000
llm_d_epp_thunder_agent_endpoint_capacity_tokens{endpoint="b"} 9000
pointsman_session_active 90
pointsman_session_fit 40.7\n`,
    },
  ],
  [
    'a session header that changes within a conversation',
    'warning session header: 20 of 120 turns go on from a session that another header names',
    {
      page: `${PAGE}pointsman_session_turns_total{how="new"} 40\npointsman_session_turns_total{how="header"} 80
pointsman_session_splits_total{cause="renamed"} 20\n`,
    },
  ],
  [
    'a session header that several conversations share',
    'warning session header: 20 of 120 turns do not go on from the session that their header names',
    {
      page: `${PAGE}pointsman_session_turns_total{how="new"} 40\npointsman_session_turns_total{how="prompt"} 80
pointsman_session_splits_total{cause="merged"} 20\n`,
    },
  ],
  [
    'histories that are rewritten',
    'note sessions: 12 of 120 turns begin as an earlier one and then differ from it: a rewritten history',
    {
      page: `${PAGE}pointsman_session_turns_total{how="new"} 40\npointsman_session_turns_total{how="prompt"} 80
pointsman_session_splits_total{cause="rewritten"} 12\n`,
    },
  ],
  [
    'clients that write their history anew',
    'note sessions: 90 of 120 long prompts do not go on from an earlier one',
    { page: `${PAGE}pointsman_session_turns_total{how="new"} 90\npointsman_session_turns_total{how="prompt"} 30\n` },
  ],
  [
    'held turns that were not served in time',
    'warning sessions: 4 held turns went on without room after flowControl.sessions.maxWait',
    { page: `${PAGE}pointsman_session_forced_total 4\n` },
  ],
  [
    'an unready picker',
    'error readiness: not ready: discovery has not loaded yet',
    { health: { unready: ['discovery has not loaded yet'] } },
  ],
  [
    'an empty pool',
    'error endpoints: the pool has none: every request gets 503',
    { page: 'pointsman_ledger_entries 0\n' },
  ],
  [
    'one stale endpoint',
    'warning signals: unknown of 1 of 2 endpoints: b (14.0 s)',
    { page: PAGE.replace('0.05', '14') },
  ],
  [
    'an endpoint that was never reached',
    'warning signals: unknown of 1 of 2 endpoints: b (never reached)',
    { page: PAGE.replace(/.*age_seconds\{endpoint="b".*\n/, '') },
  ],
  [
    'an endpoint that was never reached since it joined',
    'warning signals: unknown of 1 of 2 endpoints: b (never reached)',
    { page: `${PAGE.replace('0.05', '14')}pointsman_endpoint_scraped{endpoint="b"} 0\n` },
  ],
  [
    'a dead endpoint',
    'warning dead endpoints: 1 of 2 endpoints take no connections: a',
    { page: PAGE.replace('state{endpoint="a"} 0', 'state{endpoint="a"} 3') },
  ],
  [
    'an endpoint that takes no connections, whose signals are old by that',
    'warning dead endpoints: 1 of 2 endpoints take no connections: a',
    {
      page: PAGE.replace('ejection_state{endpoint="a"} 0', 'ejection_state{endpoint="a"} 3').replace('0.04', '90'),
    },
  ],
  [
    'a pool of stale endpoints',
    'error signals: unknown of 2 of 2 endpoints: a (9.0 s), b (9.0 s)',
    { page: PAGE.replace('0.04', '9').replace('0.05', '9') },
  ],
  [
    'an endpoint with slow scrapes',
    'note signals: old (over 1000 ms) of 1 of 2 endpoints: b (1.5 s)',
    { page: PAGE.replace('0.05', '1.5') },
  ],
  [
    'an endpoint with slow scrapes of a slow interval',
    'note signals: old (over 3000 ms) of 1 of 2 endpoints: b (4.0 s)',
    { page: PAGE.replace('0.04', '2').replace('0.05', '4'), health: { refreshMs: 1_000, stalenessMs: 10_000 } },
  ],
  [
    'endpoints with traffic that are scraped rarely',
    'note scrapes: of endpoints with traffic are 0.40 s apart, of others 1.00 s: they take 25 % of a core, their bound',
    {
      page:
        `${PAGE}pointsman_scrape_interval_seconds{endpoints="busy"} 0.4\n` +
        'pointsman_scrape_interval_seconds{endpoints="quiet"} 1\npointsman_scrape_cpu_share 0.251\n',
    },
  ],
  [
    'updates for other replicas that come rarely',
    'note replicas: updates for others come every 100 ms, and so old is the load of this picker that they know: ' +
      'sharing takes 1.7 % of a core',
    {
      page:
        `${PAGE}pointsman_replication_connected 1\npointsman_replication_interval_seconds 0.1\n` +
        'pointsman_replication_cpu_share 0.0167\n',
    },
  ],
  [
    'blocks that engines do not confirm',
    'warning KV events: engines have not confirmed 80 of 120 blocks that were sent to them',
    {
      page:
        `${PAGE}pointsman_kv_events_speculated_blocks_total{outcome="made"} 120\n` +
        'pointsman_kv_events_speculated_blocks_total{outcome="expired"} 80\n',
    },
  ],
  [
    'tokens that the engine counts otherwise',
    'warning token counts: 2 of 20 prompts have other token counts at the engine; the last one 31 there and 26 here',
    {
      page:
        `${PAGE}pointsman_token_counts_total{agreement="same"} 18\n` +
        'pointsman_token_counts_total{agreement="differs"} 2\n' +
        'pointsman_token_count_differing{counted_by="picker"} 26\n' +
        'pointsman_token_count_differing{counted_by="engine"} 31\n',
    },
  ],
  [
    'an engine that sleeps',
    'note sleep: the engines of 1 of 2 endpoints sleep and get no requests: b',
    { page: `${PAGE}pointsman_endpoint_asleep{endpoint="b"} 1\n` },
  ],
  [
    'an engine that refuses requests',
    'warning refused requests: the engines of 1 of 2 endpoints refuse requests: b (3.5/s)',
    {
      page:
        `${PAGE}pointsman_endpoint_engine_refused_per_second{endpoint="a"} 0\n` +
        'pointsman_endpoint_engine_refused_per_second{endpoint="b"} 3.5\n',
    },
  ],
  [
    'an endpoint that is vetoed for long',
    'warning vetoes: overload-filter vetoes 1 of 2 endpoints: b (over 12.5 waiting requests for 45 s)',
    {
      page:
        `${PAGE}pointsman_endpoint_vetoed_seconds{endpoint="b",limit="waiting"} 45\n` +
        'pointsman_endpoint_veto_limit{endpoint="b",limit="waiting"} 12.5\n',
    },
  ],
  [
    'a pool whose endpoints are all vetoed',
    'warning vetoes: overload-filter vetoes 2 of 2 endpoints: a (over 95 % of the KV cache for 0 s), ' +
      'b (over 8 waiting requests for 2 s)',
    {
      page:
        `${PAGE}pointsman_endpoint_vetoed_seconds{endpoint="a",limit="kv-cache"} 0\n` +
        'pointsman_endpoint_vetoed_seconds{endpoint="b",limit="waiting"} 2\n' +
        'pointsman_endpoint_veto_limit{endpoint="a",limit="kv-cache"} 0.95\n' +
        'pointsman_endpoint_veto_limit{endpoint="b",limit="waiting"} 8\n',
    },
  ],
  [
    'a cache that stays cold',
    'note warm-up: the caches of 1 of 2 endpoints do not warm up: b (400.0 s)',
    {
      page:
        `${PAGE}pointsman_endpoint_warming_seconds{endpoint="a"} 20\n` +
        'pointsman_endpoint_warming_seconds{endpoint="b"} 400\n',
    },
  ],
  [
    'engines that serve and tell nothing',
    'error KV events: a, b, c and 1 more served requests and told of no KV block; what is sent there counts as held',
    {
      page: [PAGE, ...['a', 'b', 'c', 'd'].map((name) => `pointsman_kv_events_state{endpoint="${name}"} 3\n`)].join(''),
    },
  ],
  [
    'an ejected endpoint',
    'warning ejections: 1 of 2 endpoints are out because their answers failed: a',
    { page: PAGE.replace('state{endpoint="a"} 0', 'state{endpoint="a"} 1') },
  ],
  [
    'a silent endpoint',
    'warning silence: requests in flight on 1 of 2 endpoints get no byte: a',
    {
      page: [
        PAGE.replace('state{endpoint="a"} 0', 'state{endpoint="a"} 1'),
        'pointsman_endpoint_silent{endpoint="a"} 1\n',
      ].join(''),
    },
  ],
  [
    'a silent endpoint that is still picked',
    'error silence: requests in flight on 1 of 2 endpoints get no byte: b; new ones still go to b: half of the ' +
      'pool is out, or ejection is off',
    { page: `${PAGE}pointsman_endpoint_silent{endpoint="b"} 1\n` },
  ],
  [
    'endpoints without a slot',
    'error endpoints: 3 are left out: the pool is full',
    { page: `${PAGE}pointsman_left_out_endpoints 3\n` },
  ],
  [
    'a bound that is nearly met',
    'warning bounds: streams 85 % full (85 of 100)',
    { health: { bounds: [{ name: 'streams', used: 85, limit: 100, setting: '--max-streams', fills: false }] } },
  ],
  [
    'a bound that is met',
    'error bounds: streams 100 % full (100 of 100)',
    { health: { bounds: [{ name: 'streams', used: 100, limit: 100, setting: '--max-streams', fills: false }] } },
  ],
  [
    'a full prefix index',
    'note bounds: prefix index 100 % full (64 of 64): the oldest entries give way',
    { health: { bounds: [{ name: 'prefix index', used: 64, limit: 64, setting: '--index-blocks', fills: true }] } },
  ],
  [
    'few files left',
    'warning bounds: open files 98 % full (1000 of 1024)',
    { page: `${PAGE}process_open_fds 1000\nprocess_max_fds 1024\n` },
  ],
  [
    'a limit below the need',
    'warning memory: the limit of 500 MB is below what its flags allow, 900 MB: 900 MB for everything',
    { health: { memory: { ...HEALTHY.memory, limit: 500e6 } } },
  ],
  [
    'memory that is nearly used up',
    'error memory: 950 MB of the limit of 1.0 GB are in use: the process is about to be killed',
    { health: { memory: { ...HEALTHY.memory, resident: 950e6 } } },
  ],
  [
    'a file with a mistake',
    'error configuration: the file has a mistake: an older version is in effect',
    { health: { configuration: { lastReload: 'invalid', warnings: [] } } },
  ],
  [
    'kept files that cannot be written',
    'error files: cannot be written: what was learned (--state-dir, adaptation.stateFile), the usage of tenants ' +
      '(--usage-dir); it is lost when the picker ends',
    {
      page: `${PAGE}pointsman_kept_file_unsaved{file="learned"} 1
pointsman_kept_file_unsaved{file="prefix-index"} 0
pointsman_kept_file_unsaved{file="usage"} 1
`,
    },
  ],
  [
    'learned costs that the guard has taken back',
    'warning learned costs: learned costs were taken back, because requests cost 12 % more; tried again in 4.0 minutes',
    {
      health: {
        learning: {
          ...LEARNING,
          state: 'fallback',
          why: 'learned costs were taken back, because requests cost 12 % more; tried again in 4.0 minutes',
        },
      },
    },
  ],
  [
    'learned costs that were never tried',
    'note learned costs: not tried in 123 minutes: predictions do not rank the requests',
    { health: { learning: { ...LEARNING, state: 'shadow', why: 'predictions do not rank the requests' } } },
  ],
  [
    'a file of learned costs that was not used',
    'note learned costs: began anew, as the file of what was learned before was not used: it is no JSON',
    { health: { learning: { ...LEARNING, fileUnused: 'it is no JSON' } } },
  ],
  [
    'hardware that no label tells',
    'note learned costs: output takes longer than on the others on b (3.0 times)',
    {
      page: `${PAGE}pointsman_adaptation_endpoint_slowness{endpoint="a"} 1
pointsman_adaptation_endpoint_slowness{endpoint="b"} 3
`,
      health: { learning: { ...LEARNING, mode: 'shadow' } },
    },
  ],
  [
    'samples of learned costs that were lost',
    'note learned costs: requests were not learned from, as the control thread was late: 7 since the start',
    {
      page: `${PAGE}pointsman_adaptation_labels_total{outcome="learned"} 90
pointsman_adaptation_labels_total{outcome="lost"} 7
`,
    },
  ],
  [
    'a kept index that cannot be written',
    'warning files: cannot be written: the prefix index (--state-dir); it is lost when the picker ends',
    { page: `${PAGE}pointsman_kept_file_unsaved{file="prefix-index"} 1\n` },
  ],
  [
    'a file that waits for a restart',
    'warning configuration: the file has changed in a part that is read at the start: an older version is in effect',
    { health: { configuration: { lastReload: 'restart_required', warnings: [] } } },
  ],
  [
    'a finding of the linter',
    'note configuration: x.yaml:3:1: no effect',
    { health: { configuration: { lastReload: 'applied', warnings: ['x.yaml:3:1: no effect'] } } },
  ],
  [
    'a scorer that tells nothing apart',
    'note scorers: lora-scorer scored all candidates alike in 60 decisions',
    { health: { scorers: [{ scorer: 'lora-scorer', decisions: 60, apart: 0, decided: 0 }] } },
  ],
  [
    'a scorer that changes no pick',
    'note scorers: queue-scorer changed no pick in 60 decisions',
    { health: { scorers: [{ scorer: 'queue-scorer', decisions: 60, apart: 9, decided: 0 }] } },
  ],
  [
    'bodies that nothing reads',
    'warning chunks: the proxy sent the bodies of 40 of 50 answers, and no decision reads them',
    { page: `${PAGE}pointsman_unread_answers_total 40\n`, earlier: PAGE, health: { readsAnswers: false } },
  ],
  [
    'waiting requests',
    'note queues: 7 requests waiting: 1 of 2 endpoints have no room',
    { rest: { waiting: { count: 7, why: '1 of 2 endpoints have no room', isFull: false, longestMs: 40 } } },
  ],
  [
    'requests that wait for a full pool',
    'warning saturated pool: no endpoint has room: 7 requests waiting, the first for 2.5 s',
    { rest: { waiting: { count: 7, why: 'no endpoint has room', isFull: true, longestMs: 2_500 } } },
  ],
  [
    'one request that waits',
    'note queues: 1 request waiting: 1 of 2 endpoints have no room',
    { rest: { waiting: { count: 1, why: '1 of 2 endpoints have no room', isFull: false, longestMs: 40 } } },
  ],
  [
    'requests that were refused for want of room',
    'warning saturated pool: refused 14 requests in the last 60 s, because no endpoint had room ' +
      '(pool-saturation 12, queue-deadline 2)',
    {
      health: {
        traffic: { ...HEALTHY.traffic, refused: { 'queue-deadline': 2, 'pool-saturation': 12, 'tenant-limit': 3 } },
      },
    },
  ],
  [
    'a metrics page that stands still',
    'warning frozen page: the metrics page of 1 of 2 endpoints stands still although requests end there: b',
    { page: `${PAGE}pointsman_endpoint_metrics_frozen{endpoint="b"} 1\n` },
  ],
  [
    'a clock that is ahead',
    "warning clock: the picker's is 5.0 s ahead of the clock here",
    { rest: { clock: { skewMs: 5_000, uncertainMs: 20 } } },
  ],
  [
    'errors that go on',
    'warning requests: ended in an error: 3 just now, 8 since the start (RateLimited 8)',
    {
      page: `${PAGE}llm_d_epp_request_error_total{error_code="RateLimited"} 8\n`,
      earlier: `${PAGE}llm_d_epp_request_error_total{error_code="RateLimited"} 5\n`,
    },
  ],
  [
    'errors of the past',
    'note shards: died and were started again: 1 since the start (2 1)',
    { page: `${PAGE}pointsman_shard_deaths_total{shard="1"} 0\npointsman_shard_deaths_total{shard="2"} 1\n` },
  ],
  [
    'retention hints that are left out',
    'note retention hints: turns had none, as their clients write its member of the body themselves: 3 since the start',
    { page: `${PAGE}pointsman_retention_hints_left_out_total 3\n` },
  ],
  [
    'an overload',
    'error overload: streams were turned away because the picker itself had too much to do: 4 just now, 4 since the ' +
      'start',
    { page: `${PAGE}pointsman_overload_rejections_total 4\n`, earlier: PAGE },
  ],
  [
    'a kind that is not synced',
    'error Kubernetes: no complete list of pods',
    { page: `${PAGE}pointsman_kubernetes_synced{kind="pods"} 0\n` },
  ],
  [
    'a replica without NATS',
    'warning replicas: not connected to NATS: this picker does not hear of what other replicas charge and place',
    { page: `${PAGE}pointsman_replication_connected 0\n` },
  ],
  [
    'traces that do not arrive',
    'warning traces: spans were not exported: 2 just now, 2 since the start (dropped 2)',
    {
      page:
        `${PAGE}pointsman_trace_spans_total{outcome="exported"} 9\n` +
        'pointsman_trace_spans_total{outcome="dropped"} 2\n',
      earlier: PAGE,
    },
  ],
  [
    'a picker whose debug pages are closed',
    'note debug pages: not readable, so only the metrics are judged: 403',
    { rest: { health: undefined, unreadable: '403', clock: undefined } },
  ],
];

describe('the diagnosis', () => {
  it('the diagnosis takes signals for fresh that are asked for rarely by design', () => {
    const page = PAGE.replace('0.05', '4.9');
    const interval = (seconds: number) =>
      `${page}pointsman_endpoint_scrape_interval_seconds{endpoint="b"} ${seconds}\n`;
    expect(lines({ page: interval(4) })).toEqual([]);
    expect(lines({ page: interval(3) })).toEqual(['note signals: old (over 1000 ms) of 1 of 2 endpoints: b (4.9 s)']);
  });

  it('the diagnosis of a healthy picker is empty, with exit code 0', () => {
    expect(lines({})).toEqual([]);
    expect(exitCodeOf([])).toBe(0);
  });

  it('the diagnosis of prompts without tokens in front of engines that tell of their blocks is an error', () => {
    const failed = 'pointsman_token_requests_total{outcome="failed"} 7\n';
    const page = `${PAGE}pointsman_kv_events_state{endpoint="a"} 1\n${failed}`;
    expect(lines({ page })).toContain(
      'error token sources: no prompt gets its tokens (7 prompts since the start), so none matches the blocks that ' +
        'engines tell of',
    );
    expect(lines({ page: `${page}pointsman_token_requests_total{outcome="tokenised"} 1\n` }).join()).not.toContain(
      'error',
    );
  });

  it('the diagnosis of an endpoint that was vetoed a moment ago, and of one that begins to warm up, is empty', () => {
    const page =
      `${PAGE}pointsman_endpoint_vetoed_seconds{endpoint="b",limit="waiting"} 29\n` +
      'pointsman_endpoint_veto_limit{endpoint="b",limit="waiting"} 8\n' +
      'pointsman_endpoint_warming_seconds{endpoint="b"} 299\n';
    expect(lines({ page })).toEqual([]);
  });

  it.each(CASES)('the diagnosis of %s is "%s" alone', (_what, expected, given) => {
    expect(lines(given)).toEqual([expected]);
  });

  it('the diagnosis says nothing of learned costs that look on, decide, or know their hardware', () => {
    const page = `${PAGE}pointsman_adaptation_endpoint_slowness{endpoint="b"} 3\n`;
    const why = 'learned costs only look on (mode: shadow)';
    expect(lines({ health: { learning: { ...LEARNING, mode: 'shadow', state: 'shadow', why } } })).toEqual([]);
    expect(lines({ page, health: { learning: { ...LEARNING, classes: 2 } } })).toEqual([]);
    const young = { uptimeSeconds: 60, learning: { ...LEARNING, state: 'shadow' as const, why: 'not yet' } };
    expect(lines({ health: young })).toEqual([]);
  });

  it('the diagnosis of one of several pools counts its series and those of the process', () => {
    const page = `process_open_fds 5
pointsman_ledger_entries 1
pointsman_ledger_entries{pool="b"} 7
pointsman_left_out_endpoints 9
pointsman_left_out_endpoints{pool="b"} 0
`;
    const shown = (pool: string) =>
      [...ofPool(readSamples(page), pool)].map(([name, [sample]]) => [name, sample!.value]);
    expect(shown('b')).toEqual([
      ['process_open_fds', 5],
      ['pointsman_ledger_entries', 7],
      ['pointsman_left_out_endpoints', 0],
    ]);
    expect(shown('own')).toEqual([
      ['process_open_fds', 5],
      ['pointsman_ledger_entries', 1],
      ['pointsman_left_out_endpoints', 9],
    ]);
  });

  it('the diagnosis names other pools that are not ready', () => {
    const rest = { otherPools: [{ name: 'code', unready: ['discovery has not loaded yet'] }] };
    expect(lines({ rest })).toEqual(['warning pools: code is not ready: discovery has not loaded yet']);
  });

  it('the diagnosis leaves unread bodies out where decisions read them', () => {
    expect(lines({ page: `${PAGE}pointsman_unread_answers_total 40\n`, earlier: PAGE })).toEqual([]);
  });

  it('refusals by limits of tenants are told apart from those of the queues, and no remedy raises a bound', () => {
    const refusals = (cause: string, count: number) =>
      `pointsman_flow_control_refusals_total{cause="${cause}"} ${count}\n`;
    const lastMinute = {
      pointsman_flow_control_refusals_total: 5,
      'pointsman_flow_control_refusals_total{cause="tenant-limit"}': 5,
    };
    const given = { page: PAGE + refusals('band-tokens', 3) + refusals('tenant-limit', 7), health: { lastMinute } };
    const found = diagnosis(reading(given));
    expect(lines(given)).toEqual([
      'warning tenant limits: requests were refused because their tenants had spent their tokens: 5 in the last ' +
        'minute, 7 since the start',
      'note queues: requests were refused at a bound: 3 since the start (band-tokens 3)',
    ]);
    expect(found.map(({ remedy }) => remedy).join()).not.toContain('raise');
  });

  it('a difference of clocks within the time of the question is none', () => {
    expect(lines({ rest: { clock: { skewMs: 5_000, uncertainMs: 4_000 } } })).toEqual([]);
  });

  it('the worst condition comes first and gives the exit code', () => {
    const conditions = diagnosis(
      reading({ page: `${PAGE}pointsman_left_out_endpoints 3\n`, rest: { clock: { skewMs: 9e6, uncertainMs: 1 } } }),
    );
    expect(conditions.map(({ severity }) => severity)).toEqual(['error', 'warning']);
    expect(exitCodeOf(conditions)).toBe(2);
    expect(exitCodeOf(conditions.slice(1))).toBe(1);
  });

  it('the text has at most ten lines however much is wrong, and says how much it leaves out', () => {
    const warnings = Array.from({ length: 30 }, (_, i) => `warning ${i}`);
    const given = reading({ health: { configuration: { lastReload: null, warnings } } });
    const text = doctorText(given, diagnosis(given), false);
    expect(text.trimEnd().split('\n')).toHaveLength(10);
    expect(text).toContain('and 23 more: --all');
    expect(text).toMatch(/^pool p, pointsman 1, up 2 h 3 min, 2 endpoints, 50 requests, 1 in flight\n/);
    expect(doctorText(given, diagnosis(given), true).trimEnd().split('\n')).toHaveLength(32);
  });
});

describe('the use of scorers', () => {
  const decision = (...candidates: readonly (readonly number[])[]): CandidateScores => ({
    scorers: candidates[0]!.map((_, at) => ({ name: `s${at}`, weight: 1 })),
    candidates: candidates.map((scores, index) => ({ picked: index === 0, scores })),
  });

  function useIn(...decisions: readonly CandidateScores[]) {
    const uses = new ScorerUses();
    for (const each of decisions) uses.add(each);
    return uses.uses;
  }

  it('a scorer decides when the pick does not score highest without it', () => {
    expect(useIn(decision([1, 0.2], [0, 0.5]), decision([0.5, 0.9], [0.4, 0.1]))).toEqual([
      { scorer: 's0', decisions: 2, apart: 2, decided: 1 },
      { scorer: 's1', decisions: 2, apart: 2, decided: 0 },
    ]);
  });

  it('a scorer decides when it lifts the pick out of a tie, and does not within one', () => {
    expect(useIn(decision([0.5, 0.9], [0.5, 0.1]), decision([0.5, 0.9], [0.5, 0.9]))).toEqual([
      { scorer: 's0', decisions: 2, apart: 0, decided: 0 },
      { scorer: 's1', decisions: 2, apart: 1, decided: 1 },
    ]);
  });

  it('a decision with one candidate says nothing of a scorer', () => {
    expect(useIn(decision([1, 1]))).toEqual([]);
  });
});

/** Runs the doctor without blocking this process, which may be the picker. */
function doctor(
  ...argv: string[]
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, 'doctor', '--seconds=0', ...argv], (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

async function serve(setting: Setting, ...flags: string[]) {
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, ...flags]);
  cleanups.push(() => picker.stop(0));
  return { url: `http://127.0.0.1:${ports.metricsPort}`, ports };
}

describe('pointsman doctor', () => {
  it('a running picker with servers that answer has nothing wrong, also behind a request', async () => {
    const fleet = await startFleet(2);
    cleanups.push(() => fleet.stop());
    const setting = await Setting.create(
      fleet.servers.map(({ name, port }) => ({ name, port })),
      'plugins:\n- {type: queue-scorer}\n',
    );
    const { url, ports } = await serve(setting, '--decision-columns-every=1');
    await eventually('the servers are scraped', async () => {
      const page = await (await fetch(`${url}/metrics`)).text();
      return (page.match(/^pointsman_endpoint_signal_age_seconds\{/gm) ?? []).length === 2;
    });
    const client = await dialPicker(ports.grpcPort);
    cleanups.push(() => client.close());
    for (let i = 0; i < 3; i++) {
      const call = ask(client, `question ${i}`, {});
      await firstReply(call);
      call.end();
    }
    const { code, stdout } = await doctor('--picker', url, '--json');
    const report = JSON.parse(stdout);
    expect({ code, conditions: report.conditions }).toEqual({ code: 0, conditions: [] });
    expect(report.health.scorers).toContainEqual(expect.objectContaining({ scorer: 'queue-scorer', decisions: 3 }));
    expect(report.health.memory.resident).toBeGreaterThan(10e6);
    expect((await doctor('--picker', url)).stdout).toMatch(
      /nothing is wrong or odd\nbounds: endpoints < 1 %, streams 0 %/,
    );
  });

  it('a picker with a broken configuration and a silent endpoint is told of both, with exit code 2', async () => {
    const setting = await Setting.create([{ name: 'only', port: 21_032 }]);
    const { url } = await serve(setting);
    writeFileSync(join(setting.folder, 'configuration.yaml'), 'kind: Nonsense\n');
    await eventually('the mistake is seen', async () => {
      const page = await (await fetch(`${url}/metrics`)).text();
      return page.includes('pointsman_config_reloads_total{outcome="invalid"} 1');
    });
    const { code, stdout } = await doctor('--picker', url);
    expect(code).toBe(2);
    expect(stdout).toMatch(/error +configuration +the file has a mistake: an older version is in effect/);
    expect(stdout).toMatch(/error +signals +unknown of 1 of 1 endpoints: \S+ \(never reached\)/);
  });

  it('a port without a picker ends with one line and exit code 1', async () => {
    const { code, stderr } = await doctor('--picker', 'http://127.0.0.1:9');
    expect(code).toBe(1);
    expect(stderr).toMatch(/^pointsman: no picker answers on [^\n]+\n$/);
  });

  it('the doctor names the model servers that are missing for the sessions of agents', () => {
    const page = `${PAGE}pointsman_session_looks_total{room="none"} 60
pointsman_session_looks_total{room="room"} 140
llm_d_epp_thunder_agent_endpoint_capacity_tokens{endpoint="a"} 9000
llm_d_epp_thunder_agent_endpoint_capacity_tokens{endpoint="b"} 9000
pointsman_session_active 90
pointsman_session_fit 40.7\n`;
    const found = diagnosis(reading({ page })).find(({ about }) => about === 'sessions');
    expect(found?.remedy).toMatch(/^add 3 model servers like the present ones, or run fewer agents/);
  });
});
