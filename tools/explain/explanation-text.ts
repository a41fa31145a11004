import { counted } from '../../src/runtime/counted.js';
import { columns } from '../command-line/text-columns.js';
import type {
  ExplainedEndpoint,
  ExplainedOutcome,
  ExplainedProfile,
  ExplainedSignals,
  Explanation,
} from './explained-request.js';

/** An explanation for people: the request, then a table for each profile. */
export function explanationText(explanation: Explanation): string {
  if (explanation.kind === 'rejected') return `rejected with ${explanation.status}: ${explanation.message}\n`;
  const { request, signals, saturation, shed, scheduler, failedPlugins, handler, outcome, profiles } = explanation;
  const rewritten = request.rewriteRule === undefined ? '' : ` (rewrite rule "${request.rewriteRule}")`;
  const lines = columns([
    ['path', `${request.path}, read by ${request.parser}`],
    [
      'model',
      request.model === request.targetModel ? request.model : `${request.model} → ${request.targetModel}${rewritten}`,
    ],
    ['prompt', `about ${counted(request.promptTokens, 'token')}, ${counted(request.promptBlocks, 'block')}`],
    ['priority', `${request.priority}, flow ${request.fairnessId}`],
    ...(scheduler === undefined ? [] : [['scheduler', `${scheduler} decides; the profiles are what it may ask`]]),
    ...(failedPlugins.length === 0 ? [] : [['failed', `${failedPlugins.join(', ')}: had no say`]]),
    ['saturation', `${round(saturation)}${shed ? ': a request of negative priority is turned away (429)' : ''}`],
    ['handler', handler.name === handler.type ? handler.type : `${handler.name} (${handler.type})`],
    ['goes to', outcomeText(outcome)],
    ...headerRows(outcome),
  ]);
  return `${[lines.join('\n'), signalsText(signals), ...profiles.map(profileText)].join('\n\n')}\n`;
}

function outcomeText(outcome: ExplainedOutcome): string {
  if (outcome.kind === 'rejected') return `no endpoint: ${outcome.message} (${outcome.status})`;
  return `${outcome.address}, the pick of profile "${outcome.profile}"`;
}

function headerRows(outcome: ExplainedOutcome): string[][] {
  if (outcome.kind === 'rejected') return [];
  return Object.entries(outcome.headers).map(([name, value]) => [
    'header',
    value === null ? `${name} is taken out` : `${name}: ${value}`,
  ]);
}

function signalsText(signals: readonly ExplainedSignals[]): string {
  const attributes = Object.keys(signals[0]?.attributes ?? {});
  const rows = signals.map((state) => [
    state.name,
    known(state.waitingRequests),
    known(state.runningRequests),
    known(state.kvUsage),
    ...attributes.map((attribute) => known(state.attributes[attribute] ?? null)),
    `${state.inFlightRequests} with ${counted(state.inFlightTokens, 'token')}`,
  ]);
  const heads = ['endpoint', 'waiting', 'running', 'KV usage', ...attributes, 'in flight'];
  return ['signals', ...columns([heads, ...rows]).map((row) => `  ${row}`)].join('\n');
}

function known(value: number | null): string {
  return value === null ? 'unknown' : round(value);
}

function profileText(profile: ExplainedProfile): string {
  const { name, work, scorers, endpoints } = profile;
  const heads = [
    'endpoint',
    'address',
    ...scorers.map((scorer) => `${scorer.name} ×${scorer.weight}`),
    'total',
    'cached',
    '',
  ];
  const rows = endpoints.map((endpoint) => endpointRow(endpoint, scorers));
  const does =
    work === undefined ? ', not run for this request; shown as if it were' : work === 'answer' ? '' : `, for ${work}`;
  return [`profile "${name}"${does}`, ...columns([heads, ...rows]).map((row) => `  ${row}`), verdict(profile)].join(
    '\n',
  );
}

function endpointRow(endpoint: ExplainedEndpoint, scorers: ExplainedProfile['scorers']): string[] {
  const { name, address, removedBy, scores, total, cachedTokens, rank } = endpoint;
  const note =
    removedBy !== undefined
      ? `out: ${removedBy}`
      : rank === 1
        ? 'picked'
        : rank === undefined
          ? ''
          : `fallback ${rank - 1}`;
  const cells = scorers.map((scorer) => round(scores[scorer.name]));
  return [name, address, ...cells, round(total), cachedTokens === 0 ? '' : counted(cachedTokens, 'token'), note];
}

function verdict({ status, leftNoneBy, picker, endpoints, best }: ExplainedProfile): string {
  if (leftNoneBy !== undefined) return `  no pick: the filter ${JSON.stringify(leftNoneBy)} leaves no endpoint (503)`;
  if (status === 'filtered') return '  no pick: the filters left no endpoint (429)';
  if (status !== 'decided') return '  no pick: there is no endpoint for the request (503)';
  const names = endpoints
    .filter(({ rank }) => rank !== undefined)
    .sort((a, b) => a.rank! - b.rank!)
    .map(({ address }) => address);
  const chance = best > 1 ? `; ${best} endpoints share the highest total` : '';
  return `  ${picker} picks ${names.join(', ')}${chance}`;
}

function round(value: number | undefined): string {
  return value === undefined ? '–' : String(Math.round(value * 10_000) / 10_000);
}
