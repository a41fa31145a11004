import type { EffectivePlugin } from '../../src/config/effective-configuration.js';
import type { LoadedConfiguration } from '../../src/config/load.js';
import { needsInWords, proxyNeeds } from '../../src/config/proxy-needs.js';
import type { ProgramOperation } from '../../src/scheduling/program.js';
import { columns } from './text-columns.js';

/** Description of an operation of a program. */
export function operationKind({
  code,
}: Pick<ProgramOperation, 'code'>): 'filter' | 'scorer' | 'picker' | 'admitter' | 'producer' {
  if (code === 'OP_PREDICT') return 'producer';
  if (code.startsWith('OP_ADMIT_')) return 'admitter';
  if (code.startsWith('OP_FILTER_')) return 'filter';
  return code.startsWith('OP_PICK_') ? 'picker' : 'scorer';
}

/**
 * The compiled profiles and their inputs, for people.
 * @param elsewhere source of the endpoints of a configuration that has none
 */
export function programText(configuration: LoadedConfiguration, elsewhere = 'from the flags'): string {
  const plugins = new Map(configuration.effective.plugins.map((plugin) => [plugin.name, plugin]));
  const profiles = configuration.scheduling.profiles.map(({ name, operations }) => {
    const weights = operations.filter((operation) => operationKind(operation) === 'scorer');
    const total = weights.reduce((sum, { weight }) => sum + weight, 0);
    const rows = operations.map((operation) => operationRow(operation, total, plugins.get(operation.name)));
    return [`profile "${name}"`, ...columns(rows).map((row) => `  ${row}`)].join('\n');
  });
  return [...profiles, feedsText(configuration, elsewhere)].join('\n');
}

function operationRow(operation: ProgramOperation, total: number, plugin: EffectivePlugin | undefined): string[] {
  const kind = operationKind(operation);
  const share = total === 0 ? '' : ` (${((100 * operation.weight) / total).toFixed(0)} %)`;
  const type = plugin === undefined || plugin.type === operation.name ? '' : plugin.type;
  const weight = kind === 'scorer' ? `weight ${operation.weight}${share}` : '';
  return [kind, operation.name, type, weight, parametersText(plugin?.parameters ?? {})];
}

function parametersText(parameters: object): string {
  const entries = Object.entries(parameters).filter(([, value]) => value !== undefined);
  return entries.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(' ');
}

function feedsText(configuration: LoadedConfiguration, elsewhere: string): string {
  const { scheduling, parsers, discovery, metricsSource, saturationDetector } = configuration;
  const { prefix } = scheduling;
  const cache =
    prefix === undefined
      ? 'none'
      : `blocks of ${prefix.blockTokens} tokens, ${prefix.capacityBlocks} for each endpoint` +
        `${prefix.autoTune ? ' unless the engine says otherwise' : ''}, ${prefix.maxBlocks} compared at most`;
  const metrics = metricsSource.enabled ? `${metricsSource.scheme} ${metricsSource.path}` : 'none';
  const { name, type } = scheduling.handler;
  const needs = needsInWords(proxyNeeds(configuration));
  const rows = [
    ['profile handler', name === type ? type : `${name} (${type})`],
    ['prefix index', cache],
    ['parsers', parsers.join(', ')],
    ['endpoints', discovery === undefined ? elsewhere : `${discovery.type} ${discovery.path}`],
    ['metrics', metrics],
    ['saturation', saturationDetector?.type ?? 'none'],
    ['reads of a request', needs.request],
    ['reads of an answer', needs.answer],
  ];
  const sessions = sessionsText(configuration);
  if (sessions !== undefined) rows.push(['sessions', sessions]);
  return columns(rows).join('\n');
}

/** What the gate does with turns of sessions; undefined = there are no queues in which a turn could wait. */
function sessionsText({ flowControl }: LoadedConfiguration): string | undefined {
  if (flowControl === undefined) return undefined;
  const { mode, maxWaitMs } = flowControl.sessions;
  if (mode === 'off') return 'off: not counted';
  if (mode === 'shadow') return 'shadow: counted, no turn is held';
  const bound = maxWaitMs === Number.POSITIVE_INFINITY ? '' : `, ${maxWaitMs / 1_000} s at most`;
  return `on: a turn without room is held${bound}`;
}
