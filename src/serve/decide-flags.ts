import { randomBytes } from 'node:crypto';
import type { DecideSettings } from '../contract/decide-settings.js';
import { type FlagValues, flag, toggle } from './flag.js';
import { parseFlagDuration, parseOptionalDuration, parseOptionalInteger } from './flag-values.js';

const SIGNALS = 'Signals and decisions';
export const REFRESH_MS = 50;
const SCRAPE_PERCENT = 25;
/** Intervals of scrapes for which signals hold at least. */
const STALE_INTERVALS = 3;

/** Flags of signals and decisions, in the order of the help. */
export const DECIDE_FLAGS = {
  'refresh-metrics-interval': flag<number | undefined>(
    SIGNALS,
    '<duration>',
    undefined,
    '50ms',
    parseOptionalDuration(0),
    'Time between two scrapes of an endpoint, at least 50ms; --scrape-cpu-percent may stretch one that is not given.',
  ),
  'scrape-cpu-percent': flag<number | undefined>(
    SIGNALS,
    '<number>',
    undefined,
    '25',
    parseOptionalInteger(1, 100),
    'Share of one core that the scrapes of the engines of a pool may take: above it they come more rarely, at ' +
      'endpoints without traffic first. No bound where only --refresh-metrics-interval is given.',
  ),
  'metrics-staleness-threshold': flag(
    SIGNALS,
    '<duration>',
    2000,
    '2s',
    parseFlagDuration(0),
    'Age from which on signals count as unknown: this, and three intervals of scrapes at least.',
  ),
  'require-model-match': toggle(
    SIGNALS,
    false,
    'Answer 404 to models that no objective and no rewrite rule names, and to requests that name none.',
  ),
  'model-rewrite-header': toggle(
    SIGNALS,
    true,
    'Let requests choose the model with the header x-llm-d-model-name-rewrite.',
  ),
  'disable-endpoint-subset-filter': toggle(SIGNALS, false, "Ignore the proxy's subset hint."),
  'disable-endpoint-ejection': toggle(SIGNALS, false, 'Keep endpoints that fail among the picks.'),
  'allow-profile-header': toggle(
    SIGNALS,
    false,
    'Let requests choose their scheduling profile with the header x-pointsman-profile.',
  ),
  'emit-endpoint-scores': toggle(SIGNALS, false, 'Tell the proxy the scores of all candidates.'),
  seed: flag<number | undefined>(
    SIGNALS,
    '<number>',
    undefined,
    undefined,
    parseOptionalInteger(0, 2 ** 32 - 1),
    'Same seed, same input: same picks.',
  ),
};

/** Share of a core; undefined = scrapes have no bound. */
function scrapeCpuShare({ refreshMetricsInterval, scrapeCpuPercent }: FlagValues<typeof DECIDE_FLAGS>) {
  const isExact = refreshMetricsInterval !== undefined && scrapeCpuPercent === undefined;
  return isExact ? undefined : (scrapeCpuPercent ?? SCRAPE_PERCENT) / 100;
}

/**
 * How requests are decided.
 * @param shadowEvery requests from one decision of a candidate to the next; 0 = there is none
 */
export function decideSettings(flags: FlagValues<typeof DECIDE_FLAGS>, shadowEvery: number): DecideSettings {
  const refreshMetricsMs = flags.refreshMetricsInterval ?? REFRESH_MS;
  return {
    emitScores: flags.emitEndpointScores,
    ignoreSubset: flags.disableEndpointSubsetFilter,
    allowProfileHeader: flags.allowProfileHeader,
    models: { matchRequired: flags.requireModelMatch, clientsRewrite: flags.modelRewriteHeader },
    shadowEvery,
    ejection: !flags.disableEndpointEjection,
    refreshMetricsMs,
    scrapeCpuShare: scrapeCpuShare(flags),
    // Between two scrapes that are far apart no signal can be younger.
    stalenessMs: Math.max(flags.metricsStalenessThreshold, STALE_INTERVALS * refreshMetricsMs),
    seed: flags.seed === undefined ? randomBytes(8).readBigUInt64LE() : BigInt(flags.seed),
  };
}
