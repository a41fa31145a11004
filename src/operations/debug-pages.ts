import type { ServerResponse } from 'node:http';
import type { ShownAdaptation } from '../adaptation/shown-adaptation.js';
import type { Endpoint } from '../contract/endpoint.js';
import type { DecisionLog } from '../core/decision-log.js';
import { didYouMean } from '../runtime/nearest-name.js';
import { poolClockMs } from '../runtime/pool-clock.js';
import type { Route } from './telemetry/metrics-server.js';
import type { RequestStory } from './why/request-story.js';

const DECISIONS_DEFAULT = 100;
const DECISIONS_MAX = 1000;

/** `GET /debug/adaptation`: the learned costs, the active arm and its reason, as JSON. */
export function adaptationRoute(read: () => ShownAdaptation): Route {
  return (_request, response) => answerJson(response, read());
}

/** `GET /debug/replicas`: peers, and the load of every endpoint by both sides, as JSON. */
export function replicasRoute(read: () => unknown): Route {
  return (_request, response) => answerJson(response, read());
}

/** `GET /debug/flow-control`: waiting requests and their reasons, as JSON. Prompts appear by their size only. */
export function flowControlRoute(report: () => unknown): Route {
  return (_request, response) => answerJson(response, report());
}

/**
 * `GET /debug/decisions?limit=n`: the last decisions as JSON, newest first. A request with several profiles has one
 * decision for each; all but the first are marked `further`. Prompts appear by their size only.
 */
export function decisionsRoute(
  log: DecisionLog,
  endpointOf: (slot: number) => Endpoint | undefined,
  profileOf: (profile: number) => string | undefined,
): Route {
  return (request, response) => {
    const asked = Number(
      new URL(request.url ?? '/', 'http://localhost').searchParams.get('limit') ?? DECISIONS_DEFAULT,
    );
    if (!Number.isInteger(asked) || asked < 1 || asked > DECISIONS_MAX) {
      return plain(response, 400, `limit: must be a whole number from 1 to ${DECISIONS_MAX}\n`);
    }
    const decisions = log
      .recent(asked)
      .map(({ slot, profile, best: _best, columns: _columns, series: _series, ...record }) => ({
        ...record,
        profile: profileOf(profile) ?? profile,
        endpoint: slot === undefined ? undefined : (endpointOf(slot)?.id ?? `slot ${slot}`),
      }));
    answerJson(response, { decisions });
  };
}

/** Wall clock of a time of the pool clock, in milliseconds. */
export function wallClockMs(poolMs: number): number {
  return Date.now() - (poolClockMs() - poolMs);
}

/** Bound on the characters of a wanted request id; longer texts are no ids. */
const ID_CHARACTERS_MAX = 1024;

/** Sources in which requests are looked for. */
interface Stories {
  /** @param pool name of the pool that decided; undefined = any */
  tell(id: string, pool: string | undefined): RequestStory | undefined;
}

/**
 * `GET /debug/requests/{x-request-id}`: why the request went where it went, as JSON. Prompts appear by their size only.
 */
export function requestRoute(stories: Stories): Route {
  return (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    const id = decoded(pathname.slice(REQUESTS_PATH.length));
    if (id === undefined || id === '' || id.length > ID_CHARACTERS_MAX) {
      return plain(response, 400, `name a request: GET ${REQUESTS_PATH}{x-request-id}\n`);
    }
    const story = stories.tell(id, searchParams.get('pool') ?? undefined);
    if (story === undefined) {
      return plain(response, 404, `no decision about request ${id} is kept: --decision-log-size says how many are\n`);
    }
    answerJson(response, story);
  };
}

/** `GET /debug/pools`: the pools of the process, as JSON. @param problem reason why their file is not in effect */
export function poolsRoute(read: () => unknown, problem: () => string | undefined): Route {
  return (_request, response) => answerJson(response, { pools: read(), problem: problem() ?? null });
}

/** Bound on the pools that an answer names. */
const POOLS_NAMED_MAX = 8;

/** Error for a request that names none of the pools. `pointsman top` and others repeat it. */
export function noSuchPool(name: string, pools: readonly string[]): string {
  const listed = pools.slice(0, POOLS_NAMED_MAX).join(', ');
  const others = `; there ${pools.length === 1 ? 'is' : 'are'} ${listed}`;
  const hint = didYouMean(name, pools) || (pools.length > POOLS_NAMED_MAX ? '; see /debug/pools' : others);
  return `${NO_SUCH_POOL} ${JSON.stringify(name)}${hint}`;
}

/** Beginning of the text about an unknown pool. */
export const NO_SUCH_POOL = 'there is no pool';

/** Path of the pages of single requests. */
export const REQUESTS_PATH = '/debug/requests/';

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function plain(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(text);
}

/** State of a configured plugin, or a message in the place of it. */
export interface PluginState {
  readonly name: string;
  readonly type: string;
  readonly state?: unknown;
  readonly message?: string;
}

/** `GET /debug/plugins/state`: every configured plugin by its name, with its state, in llm-d-router's form. */
export function pluginStateRoute(read: () => readonly PluginState[]): Route {
  return (_request, response) => {
    const plugins = Object.fromEntries(read().map((plugin) => [plugin.name, plugin]));
    answerJson(response, { timestamp: new Date().toISOString(), plugins });
  };
}

function answerJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(`${JSON.stringify(value, undefined, 2)}\n`);
}
