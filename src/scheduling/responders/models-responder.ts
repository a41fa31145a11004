import { z } from 'zod';
import type { ServedModel } from '../../contract/endpoint-facts.js';
import { CORE } from '../../core/core-names.js';
import { servesModel } from '../filters/served-model-filter.js';
import type { HookRequest } from '../hooks/hook-request.js';
import type { Denial, EndpointViews, HookContext, HookPlugin, LocalAnswer, RequestLine } from '../hooks/hooks.js';
import { openThread } from '../open-thread.js';
import { definePlugin } from '../plugin.js';

const PATH = '/v1/models';
/** Bound on the models of one answer, some 600 KB; the rest is left out. */
const MODELS_MAX = 4_096;

const NO_LISTS: Denial = {
  code: 'ServiceUnavailable',
  message: 'no model data collected yet from any endpoint',
  retryAfterSeconds: 1,
};

/** Models of all endpoints by name; of equal names the one of the endpoint with the lowest id. Undefined = no list. */
function union(endpoints: EndpointViews): ReadonlyMap<string, ServedModel> | undefined {
  const idOf = (slot: number) => endpoints.at(slot)?.endpoint.id ?? '';
  const lists = [...endpoints.all]
    .sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1))
    .map((slot) => endpoints.modelsOf(slot))
    .filter((models) => models !== undefined);
  if (lists.length === 0) return undefined;
  const all = new Map<string, ServedModel>();
  for (const models of lists) for (const [id, model] of models) if (id !== '' && !all.has(id)) all.set(id, model);
  return all;
}

/** OpenAI's list of models. */
function listText(models: ReadonlyMap<string, ServedModel>): string {
  const data = [...models.values()]
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .slice(0, MODELS_MAX)
    .map(({ id, object, created, ownedBy, shutdownDate }) => ({
      id,
      object,
      created,
      owned_by: ownedBy,
      shutdown_date: shutdownDate,
    }));
  return JSON.stringify({ object: 'list', data });
}

/** Answers the list of models; keeps requests away from endpoints whose list lacks their model. */
class ModelsResponder implements HookPlugin {
  readonly #context: Pick<HookContext, 'count' | 'log'>;
  /** Answer to the lists of this version and these slots. */
  #answer: LocalAnswer | Denial = NO_LISTS;
  #version = -1;
  #slots: readonly number[] | undefined;

  constructor(context: Pick<HookContext, 'count' | 'log'>) {
    this.#context = context;
  }

  respond({ method, path }: RequestLine, endpoints: EndpointViews): LocalAnswer | Denial | undefined {
    if (method !== 'GET' || (path !== PATH && path !== `${PATH}/`)) return undefined;
    if (this.#version !== endpoints.factsVersion || this.#slots !== endpoints.all) this.#renew(endpoints);
    this.#context.count('event', { event: 'body' in this.#answer ? 'answered' : 'refused' });
    return this.#answer;
  }

  #renew(endpoints: EndpointViews): void {
    this.#version = endpoints.factsVersion;
    this.#slots = endpoints.all;
    const models = union(endpoints);
    if (models !== undefined && models.size > MODELS_MAX) {
      const fields = { models: models.size, answered: MODELS_MAX };
      this.#context.log.warn(fields, 'the pool serves more models than GET /v1/models names: the rest is left out');
    }
    this.#answer =
      models === undefined
        ? NO_LISTS
        : { kind: 'answered', status: 200, contentType: 'application/json', body: listText(models) };
  }

  /**
   * As served-model-filter with its defaults, but all endpoints stay where none would: lists may be incomplete. Roles
   * play no part.
   */
  screen({ targetModel }: HookRequest, endpoints: EndpointViews): readonly number[] | undefined {
    if (targetModel === '') return undefined;
    const serves = endpoints.slots.map((slot) => servesModel(endpoints, slot, targetModel));
    const asAdapter = serves.includes(CORE.SERVES_ADAPTER);
    const kept = endpoints.slots.filter((_slot, i) => {
      const told = serves[i]!;
      return told === CORE.SERVES_MODEL || told === CORE.SERVES_ADAPTER || (!asAdapter && told === CORE.SERVES_UNKNOWN);
    });
    return kept.length === 0 || kept.length === endpoints.slots.length ? undefined : kept;
  }
}

export const modelsResponder = definePlugin({
  type: 'models-responder',
  kinds: ['responder'],
  stability: 'Alpha',
  doc:
    'Answers GET /v1/models itself, with the models and adapters of all endpoints, each once, in the order of their ' +
    'names; 503 while no endpoint has told its list. Keeps other requests to the endpoints that list their model, ' +
    'where any does. The lists are fetched as by models-data-source with its defaults, unless dataLayer.sources ' +
    'names one. Open in llm-d-router (#1878): it may change.',
  parameters: () => z.strictObject({}),
  fetchesModels: true,
  advise: () => [openThread(1878)],
  host: (_parameters, context) => new ModelsResponder(context),
});
