import { z } from 'zod';
import { selectorAccepts } from '../../contract/label-selector.js';
import { BadSelector, parseSelector } from './selector-text.js';

/** Header that the coordinator of llm-d-router carries from the answer of one stage to the request of the next. */
const REVISION_HEADER = 'x-llm-d-disagg-revision';

interface RequiredRoles {
  readonly requiredRoles: readonly string[];
  readonly requireRoles: { readonly values: readonly string[] };
}

/** Roles that a revision must have an endpoint of, in either form. */
export function rolesOf({ requiredRoles, requireRoles }: RequiredRoles): readonly string[] {
  return requiredRoles.length > 0 ? requiredRoles : requireRoles.values;
}

const headerSelector = () =>
  z.strictObject({
    name: z.string().min(1).describe('Name of the rule in the metrics.'),
    headerName: z.string().min(1).describe('Header of requests and answers that carries the value.'),
    labelKey: z.string().min(1).describe('Label of the endpoints that is compared with it.'),
    mode: z
      .enum(['strict', 'prefer'], { error: 'must be one of strict|prefer' })
      .describe('strict: only endpoints with that value. prefer: the value is only put into the answer.'),
  });

const roles = () => z.array(z.string().min(1, { error: 'must not be empty' })).default([]);
const areDistinct = (values: readonly string[]) => new Set(values).size === values.length;

const revisionGating = () =>
  z
    .strictObject({
      mode: z
        .enum(['sum', 'max-role', 'disabled'], { error: 'must be one of sum|max-role|disabled' })
        .describe('How a revision is drawn: by all its endpoints, by those of the largest role, or not at all.'),
      requiredRoles: roles().describe('Roles that a revision must have an endpoint of.'),
      requireRoles: z
        .strictObject({ values: roles().describe('The roles.') })
        .default({ values: [] })
        .describe('Older form of requiredRoles.'),
      revisionHeaderName: z
        .string()
        .default('')
        .describe(
          'Header of requests and answers that names the revision; a request that brings it goes there or nowhere. ' +
            `Empty = ${REVISION_HEADER}, with the older requireRoles or headerSelectors none.`,
        ),
      disableCoordination: z
        .boolean()
        .default(false)
        .describe(
          'Draws each request for itself. Otherwise requests with the same x-llm-d-revision-decision-id, without it ' +
            'the same x-request-id, get the same revision, in every replica; not with the older requireRoles or ' +
            'headerSelectors.',
        ),
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
    .refine(({ requiredRoles, requireRoles }) => requiredRoles.length === 0 || requireRoles.values.length === 0, {
      path: ['requireRoles'],
      error: 'is the older form of requiredRoles: give one of them',
    })
    .refine((gating) => gating.mode === 'disabled' || rolesOf(gating).length > 0, {
      path: ['requiredRoles'],
      error: 'is required unless mode is disabled',
    })
    .refine(({ requiredRoles }) => areDistinct(requiredRoles), {
      path: ['requiredRoles'],
      error: 'contains a duplicate role',
    })
    .refine(({ requireRoles }) => areDistinct(requireRoles.values), {
      path: ['requireRoles', 'values'],
      error: 'contains a duplicate role',
    });

export const rolloutParameters = () =>
  z
    .strictObject({
      scope: z
        .strictObject({
          labelSelector: z.string().min(1).describe('As kubectl -l takes it: key=value, key in (a, b), with commas.'),
        })
        .describe('The endpoints that count for the shares of the revisions.'),
      headerSelectors: z
        .array(headerSelector())
        .default([])
        .describe('Headers that stand for labels of endpoints. Older form of revisionHeaderName.'),
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
    .refine(({ headerSelectors }) => areDistinct(headerSelectors.map(({ name }) => name)), {
      path: ['headerSelectors'],
      error: 'contains a duplicate name',
    });

export type RolloutParameters = z.output<ReturnType<typeof rolloutParameters>>;

/** Whether the parameters are those of llm-d-router before September 2026, where every header was a rule of its own. */
function isOlderForm({ headerSelectors, revisionGating: { requireRoles } }: RolloutParameters): boolean {
  return headerSelectors.length > 0 || requireRoles.values.length > 0;
}

/** Header that names the revision; undefined = none does. */
export function revisionHeader(given: RolloutParameters): string | undefined {
  return given.revisionGating.revisionHeaderName || (isOlderForm(given) ? undefined : REVISION_HEADER);
}

/** Whether requests that belong together get the same revision. */
export function isCoordinated(given: RolloutParameters): boolean {
  return !(given.revisionGating.disableCoordination || isOlderForm(given));
}

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
    const counts = revisions.get(revision) ?? new Map<string, number>();
    revisions.set(revision, counts.set(role, (counts.get(role) ?? 0) + 1));
  }
  return revisions;
}
