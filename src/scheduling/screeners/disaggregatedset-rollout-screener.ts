import type { HookRequest } from '../hooks/hook-request.js';
import type { EndpointViews, HookContext, HookPlugin, HookResponse } from '../hooks/hooks.js';
import { PATIENT_BUDGET_MS } from '../hooks/plugin-guard.js';
import { definePlugin } from '../plugin.js';
import { textHash } from '../text-hash.js';
import { drawRevision, revisionShares } from './revision-shares.js';
import {
  isCoordinated,
  type RolloutParameters,
  revisionCounts,
  revisionHeader,
  rolesOf,
  rolloutParameters,
} from './rollout-parameters.js';

/** Headers by which requests that belong together are known, the first one that a request brings. */
const DECISION_HEADERS = ['x-llm-d-revision-decision-id', 'x-request-id'];

/** Keeps a request within one revision of a rollout, so that its prefill and its decode fit together. */
class RolloutScreener implements HookPlugin {
  readonly #parameters: RolloutParameters;
  readonly #context: HookContext;
  readonly #revisionHeader: string | undefined;
  readonly #coordinated: boolean;
  /** Shares for the set of endpoints from which they were computed. */
  #shares: ReadonlyMap<string, number> = new Map();
  #sharedSlots: readonly number[] | undefined;

  constructor(given: RolloutParameters, context: HookContext) {
    this.#parameters = given;
    this.#context = context;
    this.#revisionHeader = revisionHeader(given);
    this.#coordinated = isCoordinated(given);
  }

  screen(request: HookRequest, endpoints: EndpointViews): readonly number[] {
    const { headerSelectors, revisionGating: gating } = this.#parameters;
    const strict = headerSelectors.filter(({ mode, headerName }) => mode === 'strict' && headerOf(request, headerName));
    const asked = this.#revisionHeader === undefined ? '' : headerOf(request, this.#revisionHeader);
    const label = (slot: number, key: string) => endpoints.at(slot)?.endpoint.labels[key] ?? '';
    const revision = (slot: number) => label(slot, gating.revisionLabelKey);
    let kept = endpoints.slots;
    if (gating.mode !== 'disabled') {
      const shares = this.#sharesOf(endpoints);
      const offered = new Map(
        kept.map((slot) => [revision(slot), shares.get(revision(slot)) ?? 0] as const).filter(([, share]) => share > 0),
      );
      const isFree = strict.length === 0 && asked === '';
      const drawn = isFree ? drawRevision(offered, this.#draw(request)) : undefined;
      kept = kept.filter((slot) => offered.has(revision(slot)) && (drawn === undefined || drawn === revision(slot)));
    }
    if (asked !== '') {
      kept = kept.filter((slot) => revision(slot) === asked);
      if (kept.length === 0) this.#context.count('disaggregatedset_strict_revision_no_match', {});
    }
    for (const { name, headerName, labelKey } of strict) {
      if (kept.length === 0) break;
      kept = kept.filter((slot) => label(slot, labelKey) === headerOf(request, headerName));
      if (kept.length === 0) this.#context.count('disaggregatedset_strict_header_no_match', { selector: name });
    }
    return kept;
  }

  /** Number in [0, 1); the same for requests that belong together. */
  #draw(request: HookRequest): number {
    if (!this.#coordinated) return this.#context.random();
    const decision = DECISION_HEADERS.map((name) => headerOf(request, name)).find((value) => value !== '');
    return decision === undefined ? this.#context.random() : textHash(decision) / 2 ** 32;
  }

  /** All endpoints of the pool count, also those that the request may not use. */
  #sharesOf(endpoints: EndpointViews): ReadonlyMap<string, number> {
    const { revisionGating } = this.#parameters;
    if (revisionGating.mode === 'disabled' || endpoints.all === this.#sharedSlots) return this.#shares;
    this.#sharedSlots = endpoints.all;
    const labels = endpoints.all.map((slot) => endpoints.at(slot)!.endpoint.labels);
    const counts = revisionCounts(this.#parameters, labels);
    this.#shares = revisionShares(counts, rolesOf(revisionGating), revisionGating.mode);
    return this.#shares;
  }

  responseHeaders(_request: HookRequest, response: HookResponse): void {
    const { headerSelectors, revisionGating } = this.#parameters;
    const { labels } = response.endpoint.endpoint;
    const stamp = (headerName: string, value: string | undefined) => {
      if (value !== undefined && value !== '') response.setHeader(headerName, value);
    };
    for (const { headerName, labelKey } of headerSelectors) stamp(headerName, labels[labelKey]);
    if (this.#revisionHeader !== undefined) stamp(this.#revisionHeader, labels[revisionGating.revisionLabelKey]);
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
    'that brings such a header goes to that revision or is refused with 503. Requests that belong together have the ' +
    'same draw.',
  parameters: rolloutParameters,
  budgetMs: PATIENT_BUDGET_MS,
  host: (given, context) => new RolloutScreener(given, context),
});
