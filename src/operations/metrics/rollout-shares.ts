import type { Endpoint } from '../../contract/endpoint.js';
import type { HookPluginSettings } from '../../scheduling/program.js';
import { disaggregatedsetRolloutScreener } from '../../scheduling/screeners/disaggregatedset-rollout-screener.js';
import { revisionShares } from '../../scheduling/screeners/revision-shares.js';
import { type RolloutParameters, revisionCounts, rolesOf } from '../../scheduling/screeners/rollout-parameters.js';
import type { MetricsExposition } from '../telemetry/exposition.js';

/**
 * Shows the shares of a rollout's revisions in the traffic. The shards draw by these shares, each from its own copy of
 * the endpoints. A revision disappears from the page with its last endpoint.
 */
export function addRolloutShares(
  exposition: MetricsExposition,
  plugins: readonly HookPluginSettings[],
  endpoints: () => readonly Endpoint[],
): void {
  const screeners = plugins.filter(({ type }) => type === disaggregatedsetRolloutScreener.type);
  if (screeners.length === 0) return;
  exposition.addGauge({
    name: 'llm_d_epp_disaggregatedset_revision_gating_share',
    help: 'Share of the requests without a revision header that each revision gets, 0 to 1.',
    labels: ['plugin_type', 'plugin_name', 'mode', 'revision'],
    read: () => screeners.flatMap((screener) => samples(screener, endpoints())),
  });
}

function samples({ name, type, parameters }: HookPluginSettings, endpoints: readonly Endpoint[]) {
  const given = parameters as RolloutParameters;
  const { mode } = given.revisionGating;
  if (mode === 'disabled') return [];
  const labels = endpoints.map((endpoint) => endpoint.labels);
  const shares = revisionShares(revisionCounts(given, labels), rolesOf(given.revisionGating), mode);
  return [...shares].map(([revision, value]) => ({
    labels: { plugin_type: type, plugin_name: name, mode, revision },
    value,
  }));
}
