import { z } from 'zod';
import type { Endpoint } from '../../contract/endpoint.js';
import type { ServedModel } from '../../contract/endpoint-facts.js';
import type { EndpointSignals } from '../../core/endpoint-table.js';
import type { SignalReader } from './signal-reader.js';

/** Models of one endpoint that are kept; the rest of the list is left out. */
export const SERVED_MODELS_MAX = 256;
const NAME_CHARACTERS_MAX = 256;

/** A field that is only passed on: one of another type counts as absent. */
const text = z.string().optional().catch(undefined);

const list = z.object({
  data: z.array(
    z.object({
      id: z.string(),
      parent: z.string().nullish(),
      object: text,
      created: z.number().optional().catch(undefined),
      owned_by: text,
      shutdown_date: text,
    }),
  ),
});

/** Reads OpenAI's list of models; what the endpoints serve is kept here, not among the signals. */
export class ModelsReader implements SignalReader<string> {
  /** Models by endpoint id. */
  readonly #models = new Map<string, readonly ServedModel[]>();
  readonly #showAdapter: (name: string) => void;
  readonly #listed: (id: string, models: readonly ServedModel[] | undefined) => void;

  /**
   * @param showAdapter called with every model of a list that has a parent
   * @param listed called with every list; undefined = the endpoint has none any more
   */
  constructor(
    showAdapter: (name: string) => void,
    listed: (id: string, models: readonly ServedModel[] | undefined) => void = () => {},
  ) {
    this.#showAdapter = showAdapter;
    this.#listed = listed;
  }

  /** Models by endpoint id, of all endpoints that list them. */
  get models(): ReadonlyMap<string, readonly ServedModel[]> {
    return this.#models;
  }

  /** Forgets an endpoint whose list is too old, or that has left. */
  forget(id: string): void {
    if (this.#models.delete(id)) this.#listed(id, undefined);
  }

  prepare({ id }: Endpoint): string {
    return id;
  }

  read(id: string, page: Uint8Array): { readonly signals: EndpointSignals; readonly empty: boolean } {
    const text = Buffer.from(page.buffer, page.byteOffset, page.length).toString();
    const { data } = list.parse(JSON.parse(text));
    const cut = (name: string) => name.slice(0, NAME_CHARACTERS_MAX);
    const models = data.slice(0, SERVED_MODELS_MAX).map((each) => servedModel(each, cut));
    this.#models.set(id, models);
    this.#listed(id, models);
    for (const { id: name, parent } of models) if (parent !== '') this.#showAdapter(name);
    return { signals: {}, empty: models.length === 0 };
  }

  nothingFound(): string {
    return 'the endpoint serves no models';
  }
}

function servedModel(
  {
    id,
    parent,
    object,
    created,
    owned_by: ownedBy,
    shutdown_date: shutdownDate,
  }: z.output<typeof list>['data'][number],
  cut: (name: string) => string,
): ServedModel {
  return {
    id: cut(id),
    parent: cut(parent ?? ''),
    ...(object === undefined ? {} : { object: cut(object) }),
    ...(created === undefined ? {} : { created }),
    ...(ownedBy === undefined ? {} : { ownedBy: cut(ownedBy) }),
    ...(shutdownDate === undefined ? {} : { shutdownDate: cut(shutdownDate) }),
  };
}
