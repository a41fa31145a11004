import type { ConfigurationShown, Snapshot } from '../src/operations/page/snapshot.ts';
import { showCandidate } from './candidate.ts';
import { predictedChart, TrafficCharts } from './charts.ts';
import { byId, empty, h, show } from './dom.ts';
import {
  showAdaptation,
  showCache,
  showDecisions,
  showEndpoints,
  showFigures,
  showHealth,
  showQueues,
  showTraffic,
} from './sections.ts';
import { clock, plural } from './text.ts';
import { openWhy } from './why.ts';

const charts = new TrafficCharts();
const predicted = predictedChart();
let last: Snapshot | undefined;
/** Time of the last snapshot by this browser, in milliseconds since 1970. */
let lastAt = 0;
/** The picker sends one each second. */
const SILENT_MS_MAX = 5_000;

function draw(snapshot: Snapshot): void {
  last = snapshot;
  lastAt = Date.now();
  setStale(undefined);
  showPool(snapshot);
  const away = snapshot.endpoints.filter(({ state }) => state !== 'live').length;
  if (snapshot.unready.length > 0) setState('not ready', 'bad');
  else setState(away > 0 ? `${plural(away, 'endpoint')} out` : 'live', away > 0 ? 'bad' : 'good');
  charts.add(snapshot.points);
  byId('predicted').hidden = snapshot.adaptation.mode === 'off';
  predicted.show(snapshot.adaptation.times);
  showFigures(snapshot);
  showEndpoints(snapshot);
  showCache(snapshot);
  showTraffic(snapshot);
  showQueues(snapshot);
  showAdaptation(snapshot);
  showCandidate(snapshot);
  showHealth(snapshot);
  showDecisions(snapshot, openWhy);
}

/** Name of the pool; where there are several, the choice among them. */
function showPool({ pool, pools, version }: Snapshot): void {
  const names = pools ?? [];
  const shown = `${pool} ${version} ${names.join(' ')}`;
  const place = byId('pool');
  if (place.dataset.shown === shown) return;
  place.dataset.shown = shown;
  if (names.length < 2) {
    place.textContent = `pool ${pool}, version ${version}`;
    return;
  }
  const choose = h(
    'select',
    { id: 'pool-choice', change: () => location.assign(`?pool=${encodeURIComponent(choose.value)}`) },
    ...names.map((name) => h('option', { value: name, selected: name === pool }, name)),
  );
  place.replaceChildren(h('label', { for: 'pool-choice' }, 'Pool '), choose, ` version ${version}`);
}

/** The state is spoken when it changes, so it is set only then. */
function setState(text: string, kind: string): void {
  const state = byId('state');
  if (state.textContent !== text) state.textContent = text;
  state.className = `pill ${kind}`;
}

/** Dims the figures and says of when they are. @param sinceMs time of the figures; undefined = they are new */
function setStale(sinceMs: number | undefined): void {
  const place = byId('stale');
  const text =
    sinceMs === undefined
      ? ''
      : `The picker has not been heard since ${clock(sinceMs / 1000)}: all figures below are of that time.`;
  // It is spoken when it changes.
  if (place.textContent !== text) place.textContent = text;
  place.hidden = sinceMs === undefined;
  document.body.classList.toggle('stale', sinceMs !== undefined);
}

/** The picker is gone, or hangs. Before the first snapshot there are no figures. */
function lost(): void {
  setState('no connection', 'bad');
  if (last !== undefined) setStale(lastAt);
}

function listen(): void {
  const events = new EventSource(`events${location.search}`);
  events.addEventListener('message', ({ data }) => draw(JSON.parse(data as string) as Snapshot));
  events.addEventListener('error', () => {
    lost();
    // The browser tries again by itself, unless the picker refused the stream.
    if (events.readyState === EventSource.CLOSED) setTimeout(listen, 5000);
  });
}

async function loadConfiguration(): Promise<void> {
  const answer = await fetch(`configuration${location.search}`).catch(() => undefined);
  if (answer?.ok !== true) return show('configuration-body', empty('The configuration cannot be read now.'));
  const { effective, warnings } = (await answer.json()) as ConfigurationShown;
  show(
    'configuration-body',
    warnings.length === 0
      ? h('p', {}, 'No findings: pointsman lint has nothing to say about it.')
      : h('ul', { class: 'words' }, ...warnings.map((warning) => h('li', {}, warning))),
    h(
      'details',
      {},
      h('summary', {}, 'Effective configuration, with every default'),
      h('pre', { tabindex: '0' }, effective),
    ),
  );
}

byId('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  const id = (byId('ask-id') as HTMLInputElement).value.trim();
  if (id !== '') void openWhy(id);
});
byId('why').addEventListener('close', () => history.replaceState(null, '', location.pathname + location.search));
document.addEventListener('redraw', () => last !== undefined && showEndpoints(last));
const asked = /^#why=(.+)$/.exec(location.hash)?.[1];
if (asked !== undefined) void openWhy(decodeURIComponent(asked));
void loadConfiguration();
listen();
setInterval(() => last !== undefined && Date.now() - lastAt > SILENT_MS_MAX && lost(), 1000);
