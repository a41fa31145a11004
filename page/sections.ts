import type { CacheLossCause } from '../src/core/cache-loss.ts';
import type {
  BandShown,
  CacheShown,
  DecisionShown,
  EndpointShown,
  EngineShown,
  HeldBackShown,
  PriorityShown,
  Snapshot,
} from '../src/operations/page/snapshot.ts';
import { type Column, empty, h, level, show, table, unknown } from './dom.ts';
import { sessionParts } from './sessions.ts';
import { CAUSES, clock, count, ms, percent, plural, short } from './text.ts';

/** Endpoints listed before the rest is asked for. */
const ENDPOINTS_LISTED = 24;
let allEndpoints = false;

export function showFigures(snapshot: Snapshot): void {
  const { endpoints, priorities, cache, windowSeconds } = snapshot;
  const live = endpoints.filter(({ state }) => state === 'live').length;
  const decided = priorities.reduce((sum, each) => sum + each.decided, 0);
  const refused = priorities.reduce((sum, each) => sum + each.refused, 0);
  const waiting = snapshot.queues?.waiting ?? 0;
  const first = medianOf(priorities);
  const figure = (name: string, value: string, note: string) =>
    h('div', {}, h('dt', {}, name), h('dd', {}, value, h('small', {}, note)));
  show(
    'figures',
    figure(
      'Requests per second',
      count(Math.round((decided / windowSeconds) * 10) / 10),
      refused > 0 ? `${refused} refused in ${windowSeconds} s` : `over ${windowSeconds} s`,
    ),
    figure(
      'First token',
      ms(first?.ttft.p50 ?? null),
      first === undefined ? 'no answer yet' : `95 % within ${ms(first.ttft.p95)}`,
    ),
    figure(
      'Served from cache',
      percent(cache.hitRate ?? (cache.promptTokens === 0 ? null : cache.matchedTokens / cache.promptTokens)),
      cacheNote(cache),
    ),
    figure('In flight', count(snapshot.inflight), waiting > 0 ? `${waiting} waiting for room` : 'none waiting'),
    figure('Endpoints', endpoints.length === 0 ? '0' : `${live} / ${endpoints.length}`, endpointsNote(endpoints, live)),
  );
}

function cacheNote({ promptTokens, hitRate }: Snapshot['cache']): string {
  if (promptTokens === 0) return 'no prompts yet';
  const tokens = `of ${count(promptTokens)} prompt tokens`;
  return hitRate === null ? `${tokens}, expected: engines do not tell` : tokens;
}

function endpointsNote(endpoints: readonly EndpointShown[], live: number): string {
  if (endpoints.length === 0) return 'none found';
  const silent = endpoints.filter(({ waiting, kvUsage }) => waiting === null && kvUsage === null).length;
  const out = live === endpoints.length ? 'all live' : `${endpoints.length - live} out`;
  return silent === 0 ? out : `${out}, ${silent} without signals`;
}

/** The priority with most decisions stands for all. */
function medianOf(priorities: readonly PriorityShown[]): PriorityShown | undefined {
  return [...priorities].filter(({ ttft }) => ttft.p50 !== null).sort((a, b) => b.decided - a.decided)[0];
}

export function showEndpoints({ endpoints }: Snapshot): void {
  if (endpoints.length === 0) {
    show(
      'endpoints-body',
      empty('No endpoints. Discovery has found none yet: requests are answered with 503 until it does.'),
    );
    return;
  }
  const most = Math.max(1, ...endpoints.map(({ inflight }) => inflight));
  const sorted = [...endpoints].sort(
    (a, b) =>
      Number(a.state === 'live') - Number(b.state === 'live') ||
      b.inflight - a.inflight ||
      a.id.localeCompare(b.id, 'en', { numeric: true }),
  );
  const ordered =
    endpoints.length > ENDPOINTS_LISTED
      ? sorted
      : [...endpoints].sort((a, b) => a.id.localeCompare(b.id, 'en', { numeric: true }));
  const listed = allEndpoints ? ordered : ordered.slice(0, ENDPOINTS_LISTED);
  show(
    'endpoints-body',
    endpoints.length > ENDPOINTS_LISTED ? cells(endpoints, most) : null,
    table('Table of the endpoints', endpointColumns(most), listed, { keyOf: ({ id }) => id }),
    endpoints.length > ENDPOINTS_LISTED ? more(endpoints.length) : null,
  );
}

function more(all: number): HTMLElement {
  const text = allEndpoints ? `Show the ${ENDPOINTS_LISTED} busiest` : `Show all ${all}`;
  const click = () => {
    allEndpoints = !allEndpoints;
    document.dispatchEvent(new Event('redraw'));
  };
  return h('button', { class: 'more', type: 'button', 'data-key': 'all-endpoints', click }, text);
}

/** A small square for each endpoint, filled by its requests in flight. */
function cells(endpoints: readonly EndpointShown[], most: number): HTMLElement {
  const squares = endpoints.map((endpoint) => {
    const square = h('i', {
      class: endpoint.state === 'live' ? '' : 'out',
      title: `${endpoint.id}: ${endpoint.inflight} in flight, ${endpoint.state}`,
    });
    square.style.setProperty('--level', percent(endpoint.inflight / most).replace(' ', ''));
    return square;
  });
  return h(
    'div',
    {
      class: 'cells',
      role: 'img',
      'aria-label': `${plural(endpoints.length, 'endpoint')} by requests in flight, ${most} at most`,
    },
    ...squares,
  );
}

function endpointColumns(most: number): Column<EndpointShown>[] {
  const orUnknown = (value: number | null, text: (known: number) => string | HTMLElement) =>
    value === null ? unknown() : text(value);
  return [
    {
      head: 'Endpoint',
      cell: ({ id, state, heldBack }) =>
        h(
          'span',
          { title: id },
          short(id),
          state === 'live' ? null : h('span', { class: 'tag' }, state),
          ...heldBackTags(heldBack),
        ),
    },
    { head: 'In flight', cell: ({ inflight }) => level(inflight / most, count(inflight), 'requests in flight') },
    {
      head: 'Queue',
      number: true,
      cell: ({ waiting, engine }) => orUnknown(waiting, (known) => queue(known, engine)),
    },
    { head: 'KV cache', cell: ({ kvUsage }) => level(kvUsage, percent(kvUsage), 'KV cache in use') },
    {
      head: 'Hit rate',
      number: true,
      cell: ({ hitRate, engine }) => h('span', { title: cacheSources(engine) }, percent(hitRate)),
    },
    { head: 'First token', number: true, wide: true, cell: ({ ttftMs }) => ms(ttftMs) },
    { head: 'Picked', number: true, wide: true, cell: ({ share }) => percent(share) },
    {
      head: 'Signals',
      number: true,
      wide: true,
      cell: ({ ageMs, waiting, kvUsage }) => age(ageMs, waiting === null && kvUsage === null),
    },
  ];
}

/** Filters that hold an endpoint back. */
function heldBackTags(heldBack: HeldBackShown | null): HTMLElement[] {
  const { veto, warming } = heldBack ?? { veto: null, warming: null };
  const tag = (title: string, text: string) => h('span', { class: 'tag', title }, text);
  const tags: HTMLElement[] = [];
  if (veto !== null) {
    const limit =
      veto.limit === 'waiting'
        ? `${plural(Math.round(veto.at), 'waiting request')}`
        : `${percent(veto.at)} of the KV cache`;
    tags.push(tag(`overload-filter vetoes it: at or over ${limit} for ${veto.seconds} s`, 'vetoed'));
  }
  if (warming !== null) {
    const share = `${percent(warming.share)} of the others’ requests in flight for ${warming.seconds} s`;
    tags.push(tag(`warm-up-filter gives its cold cache ${share}`, 'warming up'));
  }
  return tags;
}

/** Waiting requests, those of them that wait for an adapter or for blocks of others, and refused ones. */
function queue(waiting: number, engine: EngineShown | null): HTMLElement | string {
  const { deferred, refusedPerSecond } = engine ?? NO_ENGINE;
  if (!deferred && refusedPerSecond === 0) return count(waiting);
  const refused = refusedPerSecond === 0 ? null : h('span', { class: 'tag' }, `${refusedPerSecond}/s refused`);
  const title = deferred ? `${count(deferred)} of them wait for an adapter or for blocks of others` : undefined;
  return h('span', { title }, count(waiting), refused);
}

/** Where the cached tokens of an engine came from; undefined = it does not tell, or from its own memory alone. */
function cacheSources(engine: EngineShown | null): string | undefined {
  const { cachedBySource, externalHitRate } = engine ?? NO_ENGINE;
  const shares = Object.entries(cachedBySource).map(([source, share]) => `${source} ${percent(share)}`);
  const external =
    externalHitRate === null ? [] : [`an external cache had ${percent(externalHitRate)} of what it was asked for`];
  if (shares.length < 2 && external.length === 0) return undefined;
  return [`cached tokens since the engine's start: ${shares.join(', ') || 'none'}`, ...external].join('; ');
}

const NO_ENGINE: EngineShown = { deferred: null, refusedPerSecond: 0, externalHitRate: null, cachedBySource: {} };

/** Age of the signals. @param unused they are too old to be used */
function age(ageMs: number | null, unused: boolean): HTMLElement | string {
  if (ageMs === null) return unknown();
  const text = `${ms(ageMs)} old`;
  return unused ? h('span', { class: 'late' }, text) : text;
}

/** In the order of the table. */
const TONES: Readonly<Record<CacheLossCause, string>> = {
  'never-stored': 'tone-1',
  'template-changed': 'tone-1',
  'adapter-changed': 'tone-1',
  'by-load': 'tone-2',
  'by-filter': 'tone-2',
  'by-overload': 'tone-2',
  'endpoint-away': 'tone-3',
  'endpoint-gone': 'tone-3',
  'engine-restarted': 'tone-3',
  'cache-cleared': 'tone-3',
  'session-lapsed': 'tone-3',
  'session-lost': 'tone-3',
  evicted: 'tone-3',
  'evicted-told': 'tone-3',
  'evicted-predicted': 'tone-3',
  unconfirmed: 'tone-3',
  'events-lost': 'tone-3',
  'index-full': 'tone-3',
};
const LOSSES = Object.keys(TONES) as CacheLossCause[];

export function showCache({ cache, windowSeconds }: Snapshot): void {
  if (cache.promptTokens === 0) {
    show(
      'cache-body',
      empty(`No prompt has been decided in the last ${windowSeconds} s, so there is nothing to find in a cache.`),
    );
    return;
  }
  if (cache.matchedTokens === 0 && Object.keys(cache.lost).length === 0) {
    show(
      'cache-body',
      empty('No plugin of this configuration looks at prompts, so the picker does not know what is cached.'),
    );
    return;
  }
  show('cache-body', ...cacheParts(cache, windowSeconds));
}

function cacheParts(cache: CacheShown, windowSeconds: number): HTMLElement[] {
  const lost = LOSSES.filter((cause) => (cache.lost[cause] ?? 0) > 0).map((cause) => ({
    text: CAUSES[cause],
    tone: TONES[cause],
    tokens: cache.lost[cause]!,
  }));
  const evicted = cache.lost.evicted ?? 0;
  const parts = [
    { text: 'cached where it was sent', tone: 'tone-0', tokens: Math.max(0, cache.matchedTokens - evicted) },
    ...lost,
  ];
  const total = Math.max(
    1,
    parts.reduce((sum, { tokens }) => sum + tokens, 0),
  );
  const bar = h('div', {
    class: 'bar',
    role: 'img',
    'aria-label': parts.map(({ text, tokens }) => `${percent(tokens / total)} ${text}`).join(', '),
  });
  for (const { tone, tokens, text } of parts) {
    const piece = h('span', { class: tone, title: text });
    piece.style.flexGrow = String(tokens);
    bar.append(piece);
  }
  const rows = table<(typeof parts)[number]>(
    { caption: `Prompt tokens of the last ${windowSeconds} s, and why some were computed anew` },
    [
      { head: 'Tokens were', cell: ({ text, tone }) => h('span', {}, h('span', { class: `swatch ${tone}` }), text) },
      { head: 'Tokens', number: true, cell: ({ tokens }) => count(tokens) },
      { head: 'Share', number: true, cell: ({ tokens }) => percent(tokens / total) },
    ],
    parts,
  );
  return [bar, rows];
}

/** A priority with the names of its objectives. */
function priorityOf({ priority, objectives }: Pick<PriorityShown, 'priority' | 'objectives'>): HTMLElement {
  const names = objectives.length === 0 ? null : h('span', { class: 'dim' }, ` ${objectives.join(', ')}`);
  return h('span', {}, String(priority), names);
}

export function showTraffic({ priorities, windowSeconds }: Snapshot): void {
  if (priorities.length === 0) {
    show('traffic-body', empty(`No request in the last ${windowSeconds} s.`));
    return;
  }
  const columns: Column<PriorityShown>[] = [
    { head: 'Priority', cell: priorityOf },
    { head: 'Per second', number: true, cell: ({ decided }) => count(Math.round((decided / windowSeconds) * 10) / 10) },
    { head: 'First token', number: true, cell: ({ ttft }) => ms(ttft.p50) },
    { head: '95 %', number: true, cell: ({ ttft }) => ms(ttft.p95) },
    { head: 'Per token', number: true, wide: true, cell: ({ tpot }) => ms(tpot.p50) },
    {
      head: 'Refused',
      number: true,
      cell: ({ refused }) => (refused > 0 ? h('span', { class: 'bad-text' }, count(refused)) : '0'),
    },
  ];
  show('traffic-body', table({ caption: `Requests of the last ${windowSeconds} s by priority` }, columns, priorities));
}

export function showQueues({ queues, sessions }: Snapshot): void {
  if (queues === null) {
    show(
      'queues-body',
      empty('Flow control is off: no request waits in the picker. The feature gate flowControl turns it on.'),
    );
    return;
  }
  const columns: Column<BandShown>[] = [
    { head: 'Band', cell: priorityOf },
    { head: 'Waiting', number: true, cell: ({ waiting }) => count(waiting) },
    { head: 'Running', number: true, cell: ({ running }) => count(running) },
    { head: 'Flows', number: true, cell: ({ flows }) => count(flows.length) },
    {
      head: 'Longest wait',
      number: true,
      cell: ({ flows }) =>
        ms(
          Math.max(-1, ...flows.map(({ headAgeMs }) => headAgeMs ?? -1)) < 0
            ? null
            : Math.max(...flows.map(({ headAgeMs }) => headAgeMs ?? 0)),
        ),
    },
  ];
  show(
    'queues-body',
    h(
      'p',
      {},
      queues.waiting === 0
        ? 'No request waits.'
        : `${plural(queues.waiting, 'request')} wait for an endpoint with room.`,
    ),
    queues.bands.length === 0 ? null : table({ caption: 'Priority bands' }, columns, queues.bands),
    ...sessionParts(sessions),
  );
}

export function showAdaptation({ adaptation, windowSeconds }: Snapshot): void {
  const { inWords, shares, deciders } = adaptation;
  const named = Object.entries(shares ?? {}).filter(([, share]) => share > 0);
  show(
    'adaptation-body',
    h('ul', { class: 'words' }, ...inWords.map((sentence) => h('li', {}, sentence))),
    deciders === null
      ? null
      : table<[string, number]>(
          { caption: `Decisions of the last ${windowSeconds} s` },
          [
            { head: 'Made by', cell: ([name]) => name },
            { head: 'Share', cell: ([, share]) => level(share, percent(share), 'share of the decisions') },
          ],
          [
            ['learned costs', deciders.learned],
            ['configured weights', deciders.configured],
          ],
        ),
    named.length === 0
      ? null
      : table<[string, number]>(
          { caption: 'Decisions in which each cost made a difference' },
          [
            { head: 'Cost', cell: ([name]) => name },
            { head: 'Share', cell: ([, share]) => level(share, percent(share), 'share of the decisions') },
          ],
          named,
        ),
  );
}

export function showHealth({ parts, unready }: Snapshot): void {
  const rows = [...unready.map((reason) => ({ name: 'not ready', ok: false, text: reason })), ...parts];
  show(
    'health-body',
    h(
      'ul',
      { class: 'plain' },
      ...rows.map(({ name, ok, text }) =>
        h(
          'li',
          {},
          h('strong', {}, name),
          ' ',
          h('span', { class: ok ? 'tag good' : 'tag' }, ok ? 'ok' : 'look'),
          h('div', { class: 'dim' }, text),
        ),
      ),
    ),
  );
}

export function showDecisions({ decisions }: Snapshot, why: (id: string) => void): void {
  if (decisions.length === 0) {
    show(
      'decisions-body',
      empty('No decision yet. Send a request, and it appears here with the reason for its endpoint.'),
    );
    return;
  }
  const columns: Column<DecisionShown>[] = [
    { head: 'Time', cell: ({ time }) => clock(time) },
    {
      head: 'Endpoint',
      cell: ({ endpoint, status, end }) => {
        if (endpoint !== null) return short(endpoint);
        return h('span', { class: 'bad-text' }, status === 'undecided' || end === 'rejected' ? 'none' : status);
      },
    },
    { head: 'Prompt', number: true, wide: true, cell: ({ promptTokens }) => count(promptTokens) },
    {
      head: 'Cached',
      number: true,
      wide: true,
      cell: ({ matchedTokens, promptTokens }) => (promptTokens === 0 ? '–' : percent(matchedTokens / promptTokens)),
    },
    { head: 'First token', number: true, cell: ({ ttftMs }) => ms(ttftMs) },
    { head: 'Waited', number: true, wide: true, cell: ({ waitedMs }) => (waitedMs > 0 ? ms(waitedMs) : '–') },
    { head: 'Result', cell: resultOf },
    {
      head: 'Why',
      cell: ({ id, requestId }) =>
        h(
          'button',
          {
            class: 'link',
            type: 'button',
            'data-key': id,
            'aria-label': `Why request ${requestId ?? id} went there`,
            click: () => why(requestId ?? id),
          },
          'why',
        ),
    },
  ];
  show('decisions-body', table('Table of the last decisions', columns, decisions, { keyOf: ({ id }) => `row ${id}` }));
}

function resultOf({ end, httpStatus, status }: DecisionShown): HTMLElement | string {
  if (end === null) return status === 'waiting' ? 'waits' : 'running';
  return end === 'completed'
    ? 'completed'
    : h('span', { class: 'bad-text' }, end === 'rejected' ? `refused with ${httpStatus}` : end);
}
