import { z } from 'zod';
import type { Endpoint } from '../../contract/endpoint.js';
import type { EndpointSignals } from '../../core/endpoint-table.js';
import type { SignalReader } from './signal-reader.js';

/** A model or adapter that an endpoint serves. */
export interface ServedModel {
  readonly id: string;
  /** The base model of an adapter; empty = none. */
  readonly parent: string;
}

/** Models of one endpoint that are kept; the rest of the list is left out. */
export const SERVED_MODELS_MAX = 256;
const NAME_CHARACTERS_MAX = 256;

const list = z.object({
  data: z.array(z.object({ id: z.string(), parent: z.string().nullish() })),
});

/** Reads OpenAI's list of models; what the endpoints serve is kept here, not among the signals. */
export class ModelsReader implements SignalReader<string> {
  /** Models by endpoint id. */
  readonly #models = new Map<string, readonly ServedModel[]>();
  readonly #showAdapter: (name: string) => void;

  /** @param showAdapter called with every model of a list that has a parent */
  constructor(showAdapter: (name: string) => void) {
    this.#showAdapter = showAdapter;
  }

  /** Models by endpoint id, of all that told them. */
  get models(): ReadonlyMap<string, readonly ServedModel[]> {
    return this.#models;
  }

  /** The endpoint no longer tells: what it told is too old, or it is gone. */
  forget(id: string): void {
    this.#models.delete(id);
  }

  prepare({ id }: Endpoint): string {
    return id;
  }

  read(id: string, page: Uint8Array): { readonly signals: EndpointSignals; readonly empty: boolean } {
    const text = Buffer.from(page.buffer, page.byteOffset, page.length).toString();
    const { data } = list.parse(JSON.parse(text));
    const cut = (name: string) => name.slice(0, NAME_CHARACTERS_MAX);
    const models = data
      .slice(0, SERVED_MODELS_MAX)
      .map((each) => ({ id: cut(each.id), parent: cut(each.parent ?? '') }));
    this.#models.set(id, models);
    for (const { id: name, parent } of models) if (parent !== '') this.#showAdapter(name);
    return { signals: {}, empty: models.length === 0 };
  }

  nothingFound(): string {
    return 'the endpoint serves no models';
  }
}
