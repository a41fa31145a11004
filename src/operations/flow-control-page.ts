import type { Route } from './telemetry/metrics-server.js';

/** `GET /debug/flow-control`: what waits and why, as JSON. Nothing of a prompt is in it but its size. */
export function flowControlRoute(report: () => unknown): Route {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(`${JSON.stringify(report(), undefined, 2)}\n`);
  };
}
