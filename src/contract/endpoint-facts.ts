/** A model or adapter that an endpoint serves, as its list of models names it. */
export interface ServedModel {
  readonly id: string;
  /** The base model of an adapter; empty = none. */
  readonly parent: string;
  /** Further fields of OpenAI's list; undefined = the endpoint does not tell. */
  readonly object?: string | undefined;
  /** Seconds since 1970. */
  readonly created?: number | undefined;
  readonly ownedBy?: string | undefined;
  readonly shutdownDate?: string | undefined;
}

/** Place of a loaded LoRA adapter: a slot of the GPU, or host memory. */
export type AdapterLevel = 'gpu' | 'cpu';

/** LoRA adapters that an endpoint has loaded, by its metrics. */
export interface LoadedAdapters {
  /** Level of every loaded adapter by its name; undefined = the engine does not tell. */
  readonly levels: ReadonlyMap<string, AdapterLevel> | undefined;
  /** Adapters in slots of the GPU. */
  readonly onGpu: number;
  /** Slots of the GPU; 0 = unknown, or none. */
  readonly slots: number;
  /** Adapters on the GPU with a request that runs or waits. */
  readonly busy: number;
  /** Whether an adapter on the GPU is neither busy nor pinned: it makes room for another one. */
  readonly replaceable: boolean;
  /** Base model that the metrics name; empty = none. */
  readonly baseModel: string;
}

/** What shards know of an endpoint beside its columns. It changes rarely. */
export interface EndpointFacts {
  /** `namespace/name` of the endpoint. */
  readonly id: string;
  /** Undefined = it has told no list of models. */
  readonly models: readonly ServedModel[] | undefined;
  /** Undefined = its metrics have not been read, or nothing asks for it. */
  readonly adapters: LoadedAdapters | undefined;
}
