import type { ServerResponse } from 'node:http';
import type { ShownAdaptation } from '../adaptation/shown-adaptation.js';
import type { DecisionLog } from '../core/decision-log.js';
import type { Endpoint } from '../pool/endpoint.js';
import type { Route } from './telemetry/metrics-server.js';

const DECISIONS_DEFAULT = 100;
const DECISIONS_MAX = 1000;

/** `GET /debug/adaptation`: the learned costs, the active arm and its reason, as JSON. */
export function adaptationRoute(read: () => ShownAdaptation): Route {
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
      response.writeHead(400, { 'content-type': 'text/plain' });
      response.end(`limit: must be a whole number from 1 to ${DECISIONS_MAX}\n`);
      return;
    }
    const decisions = log.recent(asked).map(({ slot, profile, ...record }) => ({
      ...record,
      profile: profileOf(profile) ?? profile,
      endpoint: slot === undefined ? undefined : (endpointOf(slot)?.id ?? `slot ${slot}`),
    }));
    answerJson(response, { decisions });
  };
}

/** What is known of a configured plugin. */
export interface PluginState {
  readonly name: string;
  readonly type: string;
  readonly state: unknown;
}

/** `GET /debug/plugins/state`: every configured plugin with its state, in llm-d-router's form. */
export function pluginStateRoute(read: () => readonly PluginState[]): Route {
  return (_request, response) => answerJson(response, { plugins: read() });
}

function answerJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(`${JSON.stringify(value, undefined, 2)}\n`);
}
