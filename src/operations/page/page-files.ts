import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import type { Route } from '../telemetry/metrics-server.js';
import type { ConfigurationShown } from './snapshot.js';

const TYPES = {
  'index.html': 'text/html; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'page.css': 'text/css; charset=utf-8',
} as const;

type PageFile = keyof typeof TYPES;

/** The page runs its own script and style and talks to this port; nothing else. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
};

/** Folder of the built page, beside the compiled program. */
const FOLDER = new URL('../../../page/', import.meta.url);

/** `GET /ui/`: the files of the page. */
export const pageFiles: Route = async (request, response) => {
  const name = (request.url ?? '/ui/').split('?', 1)[0]!.slice('/ui/'.length) || 'index.html';
  if (!isPageFile(name)) return notFound(response);
  const bytes = await readFile(new URL(name, FOLDER));
  response.writeHead(200, { ...HEADERS, 'content-type': TYPES[name], 'content-length': bytes.length });
  response.end(request.method === 'HEAD' ? undefined : bytes);
};

function isPageFile(name: string): name is PageFile {
  return Object.hasOwn(TYPES, name);
}

function notFound(response: ServerResponse): void {
  response.writeHead(404, { 'content-type': 'text/plain' });
  response.end('not found: the page is /ui/\n');
}

/** `GET /ui/configuration`: the running configuration with its warnings, as JSON. */
export function configurationRoute(read: () => ConfigurationShown): Route {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });
    response.end(JSON.stringify(read()));
  };
}
