import type { MetricsExposition } from '../telemetry/exposition.js';
import type { TenantTotals, TenantUsage } from '../usage/tenant-usage.js';

/** Values of the label `kind`. */
const TOKEN_KINDS: readonly (readonly [string, (totals: TenantTotals) => number])[] = [
  ['input', ({ inputTokens }) => inputTokens],
  ['output', ({ outputTokens }) => outputTokens],
  ['output_estimated', ({ estimatedOutputTokens }) => estimatedOutputTokens],
  ['cached', ({ cachedTokens }) => cachedTokens],
];

/** Registers usage by tenant: sums that other metrics also have by model. */
export function addUsageMetrics(exposition: MetricsExposition, usage: TenantUsage): void {
  const counter = (name: string, help: string, pick: (totals: TenantTotals) => number) =>
    exposition.addCounter({
      name: `pointsman_tenant_${name}_total`,
      help,
      labels: ['fairness_id'],
      read: () => [...usage.read()].map(([id, totals]) => ({ labels: { fairness_id: id }, value: pick(totals) })),
    });
  counter('requests', 'Requests of a tenant that were given a destination.', ({ requests }) => requests);
  exposition.addCounter({
    name: 'pointsman_tenant_tokens_total',
    help:
      'Tokens of a tenant as model servers reported them: input, output, and cached, which are part of the input; ' +
      'output_estimated: those of streams without usage, counted from their chunks, no part of output.',
    labels: ['fairness_id', 'kind'],
    read: () =>
      [...usage.read()].flatMap(([id, totals]) =>
        TOKEN_KINDS.map(([kind, pick]) => ({ labels: { fairness_id: id, kind }, value: pick(totals) })),
      ),
  });
  counter(
    'wait_seconds',
    'Seconds that requests of a tenant waited in flow control.',
    ({ waitSeconds }) => waitSeconds,
  );
}
