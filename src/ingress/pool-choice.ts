import { requestPath } from '../request/control-headers.js';
import { createDialects, type Dialect, type Dialects, MODEL_PARSERS } from '../request/dialects.js';
import { noPool, noPoolOfModel, unknownPool } from '../request/rejections.js';
import type { Rejection } from '../scheduling/decision.js';
import type { RequestHeaders } from '../scheduling/request-headers.js';
import { type HeaderMap, NO_HEADERS } from './codec/header-map.js';
import { BodyMode, Phase, type ProcessMessage } from './codec/process-request.js';

/** Header by which a proxy names the pool of a request. */
export const POOL_HEADER = 'x-pointsman-pool';

/** How requests find a pool. */
export interface PoolRoute {
  /** Value of the header or of the metadata. */
  readonly name: string;
  /** Models whose requests belong to the pool; one that ends with `*` stands for all names with that beginning. */
  readonly models: readonly string[];
}

/** The proxy's part of a choice. */
export interface PoolHint {
  readonly headers: RequestHeaders;
  /** Pool that the proxy's metadata name. */
  readonly pool: string | undefined;
}

/** Property of a pool's streams that a scan needs before the pool is known. */
interface ScannedContext {
  readonly services: {
    /** Prompt bytes of one hashed block. */
    blockBytes(): number;
  };
}

interface Entry<Context> {
  readonly route: PoolRoute;
  readonly context: Context;
}

/**
 * Chooses the pool of each request in a shard that serves several: by metadata, by header, by model, else the default.
 * `Context` is what the shard has for the streams of one pool.
 */
export class PoolChoice<Context extends ScannedContext> {
  readonly #pools = new Map<string, Entry<Context>>();
  #models = new Map<string, Context>();
  /** Beginnings of names, longest first. */
  #beginnings: { readonly text: string; readonly context: Context }[] = [];
  #fallback: string | undefined;
  #blockBytes: number | undefined;
  /** Dialects by which the model of a request is found before its pool is known. */
  readonly dialects: Dialects = createDialects(MODEL_PARSERS);

  /** Adds a pool, or replaces how requests find it. */
  add(route: PoolRoute, context: Context): void {
    this.#pools.set(route.name, { route, context });
    this.#index();
  }

  /**
   * Removes the pool from the choice. @param context of the pool that is meant: another one may have its name by now
   */
  remove(name: string, context: Context): void {
    if (this.#pools.get(name)?.context === context) this.#pools.delete(name);
    this.#index();
  }

  /** Names the pool of requests that nothing else says the pool of; undefined = they are refused. */
  setDefault(name: string | undefined): void {
    this.#fallback = name;
  }

  /** The pool that the proxy names, or a rejection if it is unknown; undefined = the proxy names none. */
  ofProxy({ headers, pool }: PoolHint): Context | Rejection | undefined {
    const name = pool || headers.get(POOL_HEADER);
    if (!name) return undefined;
    return this.#pools.get(name)?.context ?? unknownPool(name);
  }

  /** Whether a model can say the pool. */
  get readsModels(): boolean {
    return this.#models.size + this.#beginnings.length > 0;
  }

  /**
   * Prompt bytes of one hashed block in most of the pools that are chosen by model, for a body that is scanned before
   * its model is known; undefined = no such pool.
   */
  get blockBytes(): number | undefined {
    return this.#blockBytes;
  }

  /** The dialect of a path whose requests name a model; undefined when they name none. */
  dialectOf(path: string): Dialect | undefined {
    const dialect = this.dialects.find(path);
    return 'kind' in dialect || !dialect.namesModel || dialect.prompt === undefined ? undefined : dialect;
  }

  /** The pool of a model, else the default. @param model undefined or empty = the request names none */
  ofModel(model: string | undefined): Context | Rejection {
    if (!model) return this.byDefault();
    const context = this.#models.get(model) ?? this.#beginnings.find(({ text }) => model.startsWith(text))?.context;
    return context ?? this.#default() ?? noPoolOfModel(model);
  }

  /** The default pool, or a rejection when there is none. */
  byDefault(): Context | Rejection {
    return this.#default() ?? noPool();
  }

  #default(): Context | undefined {
    return this.#fallback === undefined ? undefined : this.#pools.get(this.#fallback)?.context;
  }

  #index(): void {
    this.#models = new Map();
    this.#beginnings = [];
    for (const { route, context } of this.#pools.values()) {
      for (const model of route.models) {
        if (model.endsWith('*')) this.#beginnings.push({ text: model.slice(0, -1), context });
        else this.#models.set(model, context);
      }
    }
    this.#beginnings.sort((a, b) => b.text.length - a.text.length);
    this.#blockBytes = this.#commonBlockBytes();
  }

  #commonBlockBytes(): number | undefined {
    const pools = new Map<number, number>();
    for (const { route, context } of this.#pools.values()) {
      if (route.models.length === 0) continue;
      const bytes = context.services.blockBytes();
      pools.set(bytes, (pools.get(bytes) ?? 0) + 1);
    }
    return [...pools].sort(([, a], [, b]) => b - a)[0]?.[0];
  }
}

/** The reader of a request, as the choice of its pool needs it. */
interface ChosenReader {
  take(headers: HeaderMap): void;
  model(): string | Rejection | undefined;
}

/**
 * Pool of a request by its head, or the reason of its refusal.
 * @param pools undefined = the pool has been chosen, or there is one only
 * @returns undefined = nothing is to be chosen, or the model decides when it has been read
 */
export function poolOfHead<Context extends ScannedContext>(
  pools: PoolChoice<Context> | undefined,
  { phase, headers, pool, endOfStream, requestBodyMode }: ProcessMessage,
  reader: ChosenReader,
): Context | Rejection | undefined {
  if (pools === undefined || phase !== Phase.requestHeaders || headers === NO_HEADERS) return undefined;
  const found = pools.ofProxy({ headers, pool });
  const bodyComes = !endOfStream && requestBodyMode !== BodyMode.none;
  if (found === undefined && bodyComes && pools.readsModels && pools.dialectOf(requestPath(headers)) !== undefined)
    return undefined;
  const chosen = found ?? pools.byDefault();
  // A refusal is found in the log by the id of its request.
  if ('kind' in chosen) reader.take(headers);
  return chosen;
}

/** Pool of a complete request by its model, or the reason of its refusal; undefined = the pool has been chosen. */
export function poolOfModel<Context extends ScannedContext>(
  pools: PoolChoice<Context> | undefined,
  reader: ChosenReader,
): Context | Rejection | undefined {
  if (pools === undefined) return undefined;
  const model = reader.model();
  return typeof model === 'object' ? model : pools.ofModel(model);
}
