import type { RequestStory, ShownDecision, ShownEndpoint } from '../src/operations/why/request-story.ts';
import { byId, type Column, h, table } from './dom.ts';
import { renewChildren } from './renew.ts';
import { CAUSES, count, ms, percent, plural, short } from './text.ts';

/** Opens the story of a request; the address keeps it, so that it can be sent to somebody. */
export async function openWhy(id: string): Promise<void> {
  const dialog = byId('why') as HTMLDialogElement;
  history.replaceState(null, '', `#why=${encodeURIComponent(id)}`);
  fill(dialog, id, h('p', { class: 'dim' }, 'asking the picker'));
  if (!dialog.open) dialog.showModal();
  try {
    const answer = await fetch(`../debug/requests/${encodeURIComponent(id)}${location.search}`);
    if (!answer.ok) return fill(dialog, id, h('p', {}, await answer.text()));
    fill(dialog, id, ...story((await answer.json()) as RequestStory));
  } catch {
    fill(dialog, id, h('p', {}, 'The picker does not answer. It may have ended.'));
  }
}

function fill(dialog: HTMLDialogElement, id: string, ...content: readonly HTMLElement[]): void {
  const close = h('button', { type: 'button', 'data-key': 'close', click: () => dialog.close() }, 'Close');
  const head = h('header', {}, h('h2', { id: 'why-title' }, `Why request ${id} went there`), close);
  // What has the focus stays: the story comes when the dialog is open already.
  renewChildren(dialog, [head, ...content]);
}

function facts(rows: readonly (readonly [string, string])[]): HTMLElement {
  return h('dl', { class: 'facts' }, ...rows.flatMap(([name, text]) => [h('dt', {}, name), h('dd', {}, text)]));
}

function story(told: RequestStory): HTMLElement[] {
  const { end, model, fairnessId, priority, decisions } = told;
  const head = facts([
    ['Result', endText(end)],
    ...(end?.refusal == null ? [] : [['Refused by', end.refusal.text] as const]),
    ...(model ? [['Model', model] as const] : []),
    ['Priority', fairnessId === undefined ? String(priority) : `${priority}, flow ${fairnessId}`],
  ]);
  if (decisions.length === 0) return [head, h('p', {}, 'It was refused before any endpoint was looked at.')];
  return [head, ...decisions.flatMap(decisionParts)];
}

function endText(end: RequestStory['end']): string {
  if (end === null) return 'not ended yet';
  if (end.end === 'rejected') return `refused with ${end.httpStatus}`;
  const parts = [
    end.firstTokenMs === null ? undefined : `first token after ${ms(end.firstTokenMs)}`,
    end.outputTokens === null ? undefined : `${end.outputTokens} tokens${end.outputEstimated ? ' (estimated)' : ''}`,
    end.cachedTokens === null
      ? undefined
      : `${count(end.cachedTokens)} of ${count(end.promptTokens)} prompt tokens cached`,
    `${ms(end.durationMs)} in all`,
  ];
  return `${end.end}: ${parts.filter((part) => part !== undefined).join(', ')}`;
}

function decisionParts(decision: ShownDecision): HTMLElement[] {
  const { better, cacheLoss, tieBreak, endpoints } = decision;
  const rows: [string, string][] = [
    [
      'Pick',
      decision.why === null
        ? `${decision.endpoint}, best of ${plural(decision.candidates, 'candidate')}`
        : `none: ${decision.why}`,
    ],
  ];
  if (decision.status !== 'undecided')
    rows.push([
      'Match',
      `${count(decision.matchedTokens)} of ${count(decision.promptTokens)} prompt tokens; ` +
        `${count(decision.chargedTokens)} charged`,
    ]);
  if (decision.heldTokens !== null) rows.push(['Held', places(decision.heldTokens)]);
  if (decision.waitedMs > 0) rows.push(['Waited', `${ms(decision.waitedMs)} for an endpoint with room`]);
  if (decision.closed > 0 && decision.why === null)
    rows.push(['No room', `on ${plural(decision.closed, 'endpoint')} that may serve it`]);
  if (better !== null)
    rows.push([
      'More cached',
      `${count(better.matchedTokens)} tokens on ${better.endpoint}, ${better.removedBy ?? 'which scored less'}`,
    ]);
  if (decision.session !== null) rows.push(['Session', decision.session.text]);
  if (cacheLoss !== null) rows.push(['Computed anew', `${count(cacheLoss.tokens)} tokens: ${CAUSES[cacheLoss.cause]}`]);
  if (tieBreak !== null && tieBreak.tied > 1)
    rows.push(['Tie', `${tieBreak.tied} endpoints had the highest score; decided by ${tieBreak.by}`]);
  const title = h('h3', {}, `Profile ${decision.profile}, ${new Date(decision.time).toLocaleTimeString('en-GB')}`);
  const rest =
    endpoints === null
      ? h(
          'p',
          { class: 'dim' },
          'Scores were not kept for this decision. --decision-columns-every says how many are; ' +
            '--allow-explain-header lets requests ask for them.',
        )
      : decision.why === null
        ? scores(endpoints)
        : rooms(endpoints);
  return [title, facts(rows), rest];
}

/** Tokens at each place that holds any. */
function places(held: NonNullable<ShownDecision['heldTokens']>): string {
  const names = { gpu: 'on the GPU', host: 'in host memory', disk: 'on disk', remote: 'elsewhere' } as const;
  return (Object.keys(names) as (keyof typeof names)[])
    .filter((place) => held[place] > 0)
    .map((place) => `${count(held[place])} ${names[place]}`)
    .join(', ');
}

function scores(endpoints: readonly ShownEndpoint[]): HTMLElement {
  const scorers = endpoints.find((endpoint) => endpoint.scores.length > 0)?.scores ?? [];
  const columns: Column<ShownEndpoint>[] = [
    { head: 'Endpoint', cell: ({ endpoint }) => short(endpoint) },
    ...scorers.map(
      ({ scorer, weight }, i): Column<ShownEndpoint> => ({
        head: `${scorer} ×${round(weight)}`,
        number: true,
        cell: (endpoint) => scoreCell(endpoint, i),
      }),
    ),
    { head: 'Score', number: true, cell: ({ score }) => round(score) },
    { head: 'In flight', number: true, wide: true, cell: ({ inflight }) => String(inflight) },
    {
      head: 'Cached',
      number: true,
      wide: true,
      cell: ({ matchedTokens }) => (matchedTokens === 0 ? '' : count(matchedTokens)),
    },
    { head: 'Place', cell: note },
  ];
  return table({ caption: 'Before the charge: score from 0 to 1, and the signal behind it' }, columns, endpoints, {
    classOf: ({ rank, removedBy }) => (rank === 1 ? 'picked' : removedBy === null ? '' : 'out'),
  });
}

/** Endpoints of a decision without a pick. */
function rooms(endpoints: readonly ShownEndpoint[]): HTMLElement {
  const columns: Column<ShownEndpoint>[] = [
    { head: 'Endpoint', cell: ({ endpoint }) => short(endpoint) },
    { head: 'Room', cell: ({ room }) => room ?? '–' },
    { head: 'In flight', number: true, cell: ({ inflight }) => String(inflight) },
    { head: 'Queue', number: true, wide: true, cell: ({ waiting }) => (waiting === null ? 'unknown' : count(waiting)) },
    { head: 'KV cache', number: true, wide: true, cell: ({ kvUsage }) => percent(kvUsage) },
    { head: 'Place', cell: note },
  ];
  return table({ caption: 'The endpoints at that time' }, columns, endpoints, {
    classOf: ({ removedBy }) => (removedBy === null ? '' : 'out'),
  });
}

function scoreCell({ scores: of }: ShownEndpoint, i: number): HTMLElement | string {
  const score = of[i];
  if (score === undefined) return '–';
  const { signal } = score;
  const shown =
    signal === null
      ? ''
      : signal.value === null
        ? 'unknown'
        : signal.name.startsWith('KV')
          ? percent(signal.value)
          : count(signal.value);
  const scraped = signal?.scraped === undefined || signal.scraped === null ? '' : `; scraped: ${count(signal.scraped)}`;
  return h(
    'span',
    { title: `${signal?.name ?? ''}${scraped}` },
    round(score.score),
    ' ',
    h('span', { class: 'dim' }, shown),
  );
}

function note(endpoint: ShownEndpoint): HTMLElement | string {
  const place = placeOf(endpoint);
  const { refused } = endpoint;
  if (refused === 0) return place;
  const title = 'Requests that its engine refused of late because its queue was full; they count as waiting';
  return h('span', { title }, place, ' ', h('span', { class: 'tag' }, `refused ${refused}`));
}

function placeOf({ rank, removedBy }: ShownEndpoint): HTMLElement | string {
  if (rank === 1) return h('strong', {}, 'picked');
  if (rank !== null) return `fallback ${rank - 1}`;
  return removedBy === null ? '' : `out: ${removedBy}`;
}

function round(value: number | null): string {
  return value === null ? '–' : String(Math.round(value * 1000) / 1000);
}
