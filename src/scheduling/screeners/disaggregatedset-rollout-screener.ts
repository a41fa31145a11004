import { z } from 'zod';
import { selectorAccepts } from '../../contract/label-selector.js';
import type { HookRequest } from '../hooks/hook-request.js';
import type { EndpointViews, HookContext, HookPlugin, HookResponse } from '../hooks/hooks.js';
import { PATIENT_BUDGET_MS } from '../hooks/plugin-guard.js';
import { definePlugin } from '../plugin.js';
import { drawRevision, revisionShares } from './revision-shares.js';
import { BadSelector, parseSelector } from './selector-text.js';

const headerSelector = () =>
  z.strictObject({
    name: z.string().min(1).describe('Name of the rule in the metrics.'),
    headerName: z.string().min(1).describe('Header of requests and answers that carries the value.'),
    labelKey: z.string().min(1).describe('Label of the endpoints that is compared with it.'),
    mode: z
      .enum(['strict', 'prefer'], { error: 'must be one of strict|prefer' })
      .describe('strict: only endpoints with that value. prefer: the value is only put into the answer.'),
  });

const revisionGating = () =>
  z
    .strictObject({
      mode: z
        .enum(['sum', 'max-role', 'disabled'], { error: 'must be one of sum|max-role|disabled' })
        .describe('How a revision is drawn: by all its endpoints, by those of the largest role, or not at all.'),
      requireRoles: z
        .strictObject({
          values: z
            .array(z.string().min(1, { error: 'must not be empty' }))
            .default([])
            .describe('The roles.'),
        })
        .default({ values: [] })
        .describe('Roles that a revision must have an endpoint of.'),
      revisionLabelKey: z
        .string()
        .min(1)
        .default('disaggregatedset.x-k8s.io/revision')
        .describe('Label that names the revision of an endpoint.'),
      roleLabelKey: z
        .string()
        .min(1)
        .default('disaggregatedset.x-k8s.io/role')
        .describe('Label that names the role of an endpoint.'),
    })
    .refine(({ mode, requireRoles }) => mode === 'disabled' || requireRoles.values.length > 0, {
      path: ['requireRoles'],
      error: 'is required unless mode is disabled',
    })
    .refine(({ requireRoles: { values } }) => new Set(values).size === values.length, {
      path: ['requireRoles', 'values'],
      error: 'contains a duplicate role',
    });

const parameters = () =>
  z
    .strictObject({
      scope: z
        .strictObject({
          labelSelector: z.string().min(1).describe('As kubectl -l takes it: key=value, key in (a, b), with commas.'),
        })
        .describe('The endpoints that count for the shares of the revisions.'),
      headerSelectors: z.array(headerSelector()).default([]).describe('Headers that stand for labels of endpoints.'),
      revisionGating: revisionGating().describe('How one revision is chosen for a request.'),
    })
    .superRefine(({ scope }, context) => {
      try {
        parseSelector(scope.labelSelector);
      } catch (error) {
        if (!(error instanceof BadSelector)) throw error;
        context.addIssue({ code: 'custom', path: ['scope', 'labelSelector'], message: error.message });
      }
    })
    .refine(({ headerSelectors }) => new Set(headerSelectors.map(({ name }) => name)).size === headerSelectors.length, {
      path: ['headerSelectors'],
      error: 'contains a duplicate name',
    });

export type RolloutParameters = z.output<ReturnType<typeof parameters>>;

/** Number of selected endpoints by revision and role. */
export function revisionCounts(
  { scope, revisionGating: { revisionLabelKey, roleLabelKey } }: RolloutParameters,
  labels: Iterable<Readonly<Record<string, string>>>,
): ReadonlyMap<string, ReadonlyMap<string, number>> {
  const selector = parseSelector(scope.labelSelector);
  const revisions = new Map<string, Map<string, number>>();
  for (const each of labels) {
    const [revision, role] = [each[revisionLabelKey], each[roleLabelKey]];
    if (!revision || !role || !selectorAccepts(selector, each)) continue;
    const roles = revisions.get(revision) ?? new Map<string, number>();
    revisions.set(revision, roles.set(role, (roles.get(role) ?? 0) + 1));
  }
  return revisions;
}

/** Keeps a request within one revision of a rollout, so that its prefill and its decode fit together. */
class RolloutScreener implements HookPlugin {
  readonly #parameters: RolloutParameters;
  readonly #context: HookContext;
  /** Shares for the set of endpoints from which they were computed. */
  #shares: ReadonlyMap<string, number> = new Map();
  #sharedSlots: readonly number[] | undefined;

  constructor(given: RolloutParameters, context: HookContext) {
    this.#parameters = given;
    this.#context = context;
  }

  screen(request: HookRequest, endpoints: EndpointViews): readonly number[] {
    const { headerSelectors, revisionGating: gating } = this.#parameters;
    const strict = headerSelectors.filter(({ mode, headerName }) => mode === 'strict' && headerOf(request, headerName));
    const label = (slot: number, key: string) => endpoints.at(slot)?.endpoint.labels[key] ?? '';
    let kept = endpoints.slots;
    if (gating.mode !== 'disabled') {
      const shares = this.#sharesOf(endpoints);
      const offered = new Map(
        kept.flatMap((slot) => {
          const revision = label(slot, gating.revisionLabelKey);
          return (shares.get(revision) ?? 0) > 0 ? [[revision, shares.get(revision)!] as const] : [];
        }),
      );
      const drawn = strict.length > 0 ? undefined : drawRevision(offered, this.#context.random());
      kept = kept.filter((slot) => {
        const revision = label(slot, gating.revisionLabelKey);
        return offered.has(revision) && (drawn === undefined || drawn === revision);
      });
    }
    for (const { name, headerName, labelKey } of strict) {
      if (kept.length === 0) break;
      kept = kept.filter((slot) => label(slot, labelKey) === headerOf(request, headerName));
      if (kept.length === 0) this.#context.count('disaggregatedset_strict_header_no_match', { selector: name });
    }
    return kept;
  }

  /** All endpoints of the pool count, also those that the request may not use. */
  #sharesOf(endpoints: EndpointViews): ReadonlyMap<string, number> {
    const { mode, requireRoles } = this.#parameters.revisionGating;
    if (mode === 'disabled' || endpoints.all === this.#sharedSlots) return this.#shares;
    this.#sharedSlots = endpoints.all;
    const labels = endpoints.all.map((slot) => endpoints.at(slot)!.endpoint.labels);
    this.#shares = revisionShares(revisionCounts(this.#parameters, labels), requireRoles.values, mode);
    return this.#shares;
  }

  responseHeaders(_request: HookRequest, response: HookResponse): void {
    for (const { headerName, labelKey } of this.#parameters.headerSelectors) {
      const value = response.endpoint.endpoint.labels[labelKey];
      if (value !== undefined && value !== '') response.setHeader(headerName, value);
    }
  }
}

function headerOf(request: HookRequest, header: string): string {
  return request.headers.get(header.toLowerCase()) ?? '';
}

export const disaggregatedsetRolloutScreener = definePlugin({
  type: 'disaggregatedset-rollout-screener',
  kinds: ['screener'],
  stability: 'Alpha',
  doc:
    'During a rollout, keeps every request within one revision of the model servers: revisions that lack a role are ' +
    'left out, one of the others is drawn by its share of endpoints, and the answer names it in a header. A request ' +
    'that brings such a header goes to that revision or is refused with 503.',
  parameters,
  budgetMs: PATIENT_BUDGET_MS,
  host: (given, context) => new RolloutScreener(given, context),
});
