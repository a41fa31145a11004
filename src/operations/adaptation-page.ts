import type { ShownAdaptation } from '../adaptation/shown-adaptation.js';
import type { Route } from './telemetry/metrics-server.js';

/** `GET /debug/adaptation`: what has been learned, who decides and why, as JSON. */
export function adaptationRoute(read: () => ShownAdaptation): Route {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(`${JSON.stringify(read(), undefined, 2)}\n`);
  };
}
