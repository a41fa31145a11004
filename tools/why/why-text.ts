import type { CacheLossCause } from '../../src/core/cache-loss.js';
import type {
  RequestStory,
  ShownDecision,
  ShownEnd,
  ShownEndpoint,
  ShownScore,
} from '../../src/operations/why/request-story.js';
import { counted } from '../../src/runtime/counted.js';
import { columns } from '../command-line/text-columns.js';

/** Text about a request: the request and its end, then every decision about it. */
export function whyText(story: RequestStory): string {
  const { requestId, model, targetModel, fairnessId, priority, end, decisions } = story;
  const named = model === undefined || model === '' ? [] : [['model', modelText(model, targetModel ?? model)]];
  const lines = columns([
    ['request', requestId ?? 'without an id'],
    ...named,
    ['priority', fairnessId === undefined ? String(priority) : `${priority}, flow ${fairnessId}`],
    ['result', endText(end)],
    ...(end?.refusal == null ? [] : [['refused by', end.refusal.text]]),
  ]);
  const none = decisions.length === 0 ? ['it was refused before any endpoint was looked at'] : [];
  return `${[lines.join('\n'), ...none, ...decisions.map(decisionText)].join('\n\n')}\n`;
}

function modelText(model: string, target: string): string {
  return model === target ? model : `${model} → ${target}`;
}

function endText(end: ShownEnd | null): string {
  if (end === null) return 'not ended';
  if (end.end === 'rejected') return `refused with ${end.httpStatus}`;
  if (end.end === 'abandoned') return 'the client went away, or a later profile failed';
  const parts = [
    end.firstTokenMs === null ? undefined : `first token after ${milliseconds(end.firstTokenMs)}`,
    end.outputTokens === null
      ? undefined
      : `${counted(end.outputTokens, 'token')}${end.outputEstimated ? ' (estimated)' : ''}`,
    end.cachedTokens === null ? undefined : `${end.cachedTokens} of ${end.promptTokens ?? '?'} prompt tokens cached`,
    `${milliseconds(end.durationMs)} in all`,
  ];
  return `${end.end}: ${parts.filter((part) => part !== undefined).join(', ')}`;
}

function decisionText(decision: ShownDecision): string {
  const lines = [`${decision.time}  profile "${decision.profile}"  (decision ${decision.id})`, ...factsOf(decision)];
  if (decision.endpoints === null) {
    lines.push('  Scores were not kept for this decision: --decision-columns-every says how many are.');
    return lines.join('\n');
  }
  lines.push('', ...table(decision.endpoints));
  if (decision.omittedEndpoints > 0) lines.push(`  and ${counted(decision.omittedEndpoints, 'endpoint')} more`);
  return lines.join('\n');
}

function factsOf(decision: ShownDecision): string[] {
  const { matchedTokens, heldTokens, promptTokens, better, cacheLoss, tieBreak, shadow } = decision;
  const rows = [
    ['pick', pickText(decision)],
    ...(decision.status === 'undecided'
      ? []
      : [['match', `${matchedTokens} of ${promptTokens} prompt tokens, ${decision.chargedTokens} charged`]]),
    ...(heldTokens === null ? [] : [['held', placesText(heldTokens)]]),
    ...(decision.waitedMs > 0 ? [['waited', `${milliseconds(decision.waitedMs)} for an endpoint with room`]] : []),
    ...(decision.closed > 0 && decision.why === null
      ? [['no room', `on ${counted(decision.closed, 'endpoint')} that may serve it`]]
      : []),
    ...(better === null
      ? []
      : [
          [
            'more cached',
            `${counted(better.matchedTokens, 'token')} on ${better.endpoint}, ` +
              (better.removedBy ?? 'which scored less'),
          ],
        ]),
    ...(decision.session === null ? [] : [['session', decision.session.text]]),
    ...(cacheLoss === null
      ? []
      : [['computed anew', `${counted(cacheLoss.tokens, 'token')}: ${CAUSES[cacheLoss.cause]}`]]),
    ...(shadow === null ? [] : [['candidate', shadowText(decision.endpoint, shadow)]]),
    ...(tieBreak === null || tieBreak.tied === 1
      ? []
      : [['tie', `${tieBreak.tied} endpoints had the highest score; decided by ${tieBreak.by}`]]),
  ];
  return columns(rows).map((row) => `  ${row}`);
}

/** Pick of the candidate configuration. */
function shadowText(picked: string | null, { endpoint, cost, pickCost }: NonNullable<ShownDecision['shadow']>): string {
  if (endpoint === null || cost === null) return 'the candidate configuration has no endpoint for it';
  if (endpoint === picked) return 'the candidate configuration picks the same';
  return (
    `the candidate configuration picks ${endpoint}, at a predicted cost of ${round(cost)} instead of ` +
    `${round(pickCost)} targets`
  );
}

const CAUSES: Readonly<Record<CacheLossCause, string>> = {
  'by-load': 'sent elsewhere because of load',
  'by-filter': 'sent elsewhere because of a filter',
  'by-overload': 'sent elsewhere because the endpoint was full',
  'endpoint-away': 'the endpoint was draining, ejected, dead or silent',
  evicted: 'the engine had evicted them',
  'evicted-predicted': 'sent before, and evicted since by the size of the cache (predicted)',
  'evicted-told': 'sent before, and evicted since (the engine reported it)',
  unconfirmed: 'sent before, and the engine did not report that it holds them',
  'index-full': 'sent before, and forgotten by the picker: its index is full',
  'engine-restarted': 'sent before to an engine that has ended or restarted',
  'cache-cleared': 'sent before to an engine that has cleared its cache',
  'events-lost': 'sent before to an engine of which events were lost',
  'endpoint-gone': 'sent before to an endpoint that has left the pool',
  'adapter-changed': 'the same text was sent for another model, adapter or cache salt',
  'template-changed': 'the same text was sent behind other tools, another system prompt or another template',
  'session-lapsed': 'the place of its idle session was given to another turn',
  'session-lost': 'the engine has forgotten its idle session for want of room',
  'never-stored': 'new text',
};

function pickText({ endpoint, why, candidates, score }: ShownDecision): string {
  return why === null ? `${endpoint} of ${counted(candidates, 'candidate')}, score ${round(score)}` : `none: ${why}`;
}

function table(endpoints: readonly ShownEndpoint[]): string[] {
  return endpoints.some(({ room }) => room !== null) ? roomTable(endpoints) : scoreTable(endpoints);
}

/** Endpoints of a decision without a pick. */
function roomTable(endpoints: readonly ShownEndpoint[]): string[] {
  const heads = ['endpoint', 'room', 'in flight', 'queue', 'KV', 'cached', ''];
  const rows = endpoints.map((endpoint) => [
    endpoint.endpoint,
    endpoint.room ?? '–',
    String(endpoint.inflight),
    endpoint.waiting === null ? 'unknown' : round(endpoint.waiting),
    endpoint.kvUsage === null ? 'unknown' : `${Math.round(endpoint.kvUsage * 100)} %`,
    cachedText(endpoint),
    noteOf(endpoint),
  ]);
  return columns([heads, ...rows]).map((row) => `  ${row}`);
}

function scoreTable(endpoints: readonly ShownEndpoint[]): string[] {
  const scorers = endpoints.find(({ scores }) => scores.length > 0)?.scores ?? [];
  const heads = ['endpoint', ...scorers.map(scorerHead), 'score', 'in flight', 'cached', ''];
  const rows = endpoints.map((endpoint) => [
    endpoint.endpoint,
    ...scorers.map((_, i) => scoreText(endpoint.scores[i])),
    round(endpoint.score),
    String(endpoint.inflight),
    cachedText(endpoint),
    noteOf(endpoint),
  ]);
  return columns([heads, ...rows]).map((row) => `  ${row}`);
}

/** Tokens that an endpoint holds, with those below the GPU where there are any. */
function cachedText({ matchedTokens, heldTokens }: ShownEndpoint): string {
  if (heldTokens !== null) return `${counted(matchedTokens, 'token')} (${placesText(heldTokens)})`;
  return matchedTokens === 0 ? '' : counted(matchedTokens, 'token');
}

const PLACE_NAMES = { gpu: 'GPU', host: 'host memory', disk: 'disk', remote: 'elsewhere' } as const;

/** Tokens at each place that holds any. */
function placesText(held: NonNullable<ShownDecision['heldTokens']>): string {
  const places = Object.entries(PLACE_NAMES) as [keyof typeof PLACE_NAMES, string][];
  return places
    .filter(([place]) => held[place] > 0)
    .map(([place, name]) => `${held[place]} ${name}`)
    .join(', ');
}

function scorerHead({ scorer, weight, signal }: ShownScore): string {
  return `${scorer} ×${round(weight)}${signal === null ? '' : ` (${signal.name})`}`;
}

function scoreText(score: ShownScore | undefined): string {
  if (score === undefined) return '–';
  const { signal } = score;
  if (signal === null) return round(score.score);
  const scraped = signal.scraped === undefined || signal.scraped === null ? '' : `, scraped ${round(signal.scraped)}`;
  return `${round(score.score)} (${signal.value === null ? 'unknown' : `${round(signal.value)}${scraped}`})`;
}

function noteOf(endpoint: ShownEndpoint): string {
  const { refused } = endpoint;
  const notes = [placeOf(endpoint), refused === 0 ? '' : `engine refused ${refused} of late`];
  return notes.filter((note) => note !== '').join(', ');
}

function placeOf({ rank, removedBy, gate, room }: ShownEndpoint): string {
  if (rank !== null) return rank === 1 ? 'picked' : `fallback ${rank - 1}`;
  if (removedBy === null) return '';
  if (removedBy !== 'no room' || gate === null || room !== null) return `out: ${removedBy}`;
  return `out: no room (${Math.round(gate.saturation * 100)} % full)`;
}

function milliseconds(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms * 10) / 10} ms` : `${Math.round(ms / 10) / 100} s`;
}

function round(value: number | null): string {
  return value === null ? '–' : String(Math.round(value * 1_000) / 1_000);
}
