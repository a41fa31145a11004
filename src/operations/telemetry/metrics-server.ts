import { constants } from 'node:crypto';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Server as TlsServer } from 'node:tls';
import { addressFlags, listenHost } from '../../ingress/transports/listener.js';
import { errorMessage } from '../../runtime/error-message.js';
import { readPlainText, SECRET_BYTES_MAX } from '../../runtime/plain-file.js';
import { type MetricsText, PageSlice } from './merged-pages.js';
import { localPages, type MayRead, readerOf } from './page-access.js';
import { clusterDomains, crossSiteProblem, HostNames } from './page-origin.js';

/** Answers one path of the metrics port. */
export type Route = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** Bound on the TLS handshakes of a server that have not ended. */
export interface HandshakeBound {
  /** Unfinished handshakes at one time. */
  readonly unfinishedMax: number;
  /** Closes the unfinished ones. */
  close(): void;
}

export interface MetricsServerOptions {
  readonly host: string;
  readonly port: number;
  /** The metrics page; asked for with every `GET /metrics`. */
  readonly exposition: () => Promise<MetricsText>;
  /** PEM; absent = plain text. `clientCa` asks every client for a certificate. */
  readonly tls?:
    | {
        readonly key: string;
        readonly cert: string;
        readonly ciphers?: string | undefined;
        readonly clientCa?: string | undefined;
      }
    | undefined;
  /**
   * Bounds the handshakes of the server with `tls`, of which so many may be established. Absent = handshakes count as
   * connections.
   */
  readonly boundHandshakes?: ((server: TlsServer, connectionsMax: number) => HandshakeBound) | undefined;
  /** Further paths (debug pages). A path that ends with `/` answers everything below it too. */
  readonly routes?: ReadonlyMap<string, Route> | undefined;
  /** Paths with an effect: each answers to POST and to no other method. */
  readonly actions?: ReadonlyMap<string, Route> | undefined;
  /** Asked before every answer; undefined = as `localPages`, or every owner of a certificate of `tls.clientCa`. */
  readonly mayRead?: MayRead | undefined;
  /** Host names that the port answers to, besides those of `HostNames`; undefined = none. */
  readonly hosts?: readonly string[] | undefined;
  /** Milliseconds until a connection must have sent the head of a request. Default `HEADERS_TIMEOUT_MS`. */
  readonly headersTimeoutMs?: number | undefined;
  /** Reports a failed page. */
  readonly report: (problem: string) => void;
  /** Reports a request that was refused by its host or its origin. */
  readonly refused?: ((details: RefusedPage) => void) | undefined;
}

/** A request that may come from a page of another site. */
export interface RefusedPage {
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly reason: string;
}

export interface MetricsServer {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * To be logged at the start when `--metrics-endpoint-auth` is on, no API server can be asked, and no other proof is
 * needed.
 */
export const OPEN_METRICS_WARNING =
  'every client that reaches the port can read /metrics: --metrics-endpoint-auth asks Kubernetes, and there is none; ' +
  'use --metrics-auth-token-file, or --metrics-cert-dir with --metrics-client-ca-file, to close it, or ' +
  '--metrics-endpoint-auth=false to silence this; all other pages answer this machine alone';

/** For the log: what to do about refused pages. */
export const REFUSED_PAGES =
  'requests to the metrics port were refused by their Host or Origin: name a host that the port is asked by with ' +
  '--metrics-hosts';

const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';
const CONNECTIONS_MAX = 64;
const REQUEST_TIMEOUT_MS = 30_000;
/** Silent connections would otherwise hold all places of `CONNECTIONS_MAX` for `REQUEST_TIMEOUT_MS`. */
const HEADERS_TIMEOUT_MS = 5_000;

/** Beginning of llm-d-router's names. promtool takes its "d" for the unit of days. */
const ROUTER_NAMES = /^(# (?:HELP|TYPE) )?llm_d_/gm;
/** Gauges of prom-client with the ending of a counter, each the sum of the metric without that ending. */
const NODE_TOTALS = /^(?:# (?:HELP|TYPE) )?nodejs_active_(?:handles|requests|resources)_total[ {].*\n/gm;

/**
 * Serves `GET /metrics`, with `?names=prometheus` under the names of `prometheusNames`.
 * @throws with one line that names the flag when the port cannot be bound.
 */
export async function startMetricsServer(options: MetricsServerOptions): Promise<MetricsServer> {
  const port = { options, hosts: hostNames(options) };
  const listener: RequestListener = (request, response) => {
    answer(port, request, response).catch((error: unknown) => {
      options.report(`${pathOf(request)} failed: ${errorMessage(error)}`);
      if (!response.headersSent) response.writeHead(500, { 'content-type': 'text/plain' });
      response.end();
    });
  };
  const headersTimeout = options.headersTimeoutMs ?? HEADERS_TIMEOUT_MS;
  // Node looks for expired connections at this interval only.
  const limits: ServerOptions = {
    headersTimeout,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: headersTimeout / 4,
  };
  const secure = options.tls && tlsServer(options.tls, limits, listener);
  const server = secure ?? createServer(limits, listener);
  const handshakes = secure && options.boundHandshakes?.(secure, CONNECTIONS_MAX);
  server.maxConnections = CONNECTIONS_MAX + (handshakes?.unfinishedMax ?? 0);
  await listen(server, options.host, options.port);
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        handshakes?.close();
      }),
  };
}

function tlsServer(
  tls: NonNullable<MetricsServerOptions['tls']>,
  limits: ServerOptions,
  listener: RequestListener,
): Server & TlsServer {
  const { key, cert, ciphers, clientCa } = tls;
  const client = clientCa === undefined ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: true };
  const secureOptions = constants.SSL_OP_NO_RENEGOTIATION;
  return createTlsServer({ ...limits, key, cert, minVersion: 'TLSv1.2', secureOptions, ciphers, ...client }, listener);
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new Error(`cannot serve metrics on port ${port}: ${bindProblem(host, error)}`));
    });
    server.listen({ ...listenHost(host), port }, resolve);
  });
}

function bindProblem(host: string, { code, message }: NodeJS.ErrnoException): string {
  if (code === 'EADDRNOTAVAIL') {
    return `this machine has no address ${host}; choose another with ${addressFlags('metrics-port')}`;
  }
  const reason = code === 'EADDRINUSE' ? 'the port is already in use (address already in use)' : message;
  return `${reason}; choose another with --metrics-port`;
}

/** What an answer is made of. */
interface ServedPort {
  readonly options: MetricsServerOptions;
  /** Undefined = readers prove themselves, by a token or a certificate, so that a name gives no right. */
  readonly hosts: HostNames | undefined;
}

/** A page that rebinds its name has no token of this port, and expects a certificate that this port cannot show. */
function hostNames({ hosts, mayRead, tls }: MetricsServerOptions): HostNames | undefined {
  return mayRead === undefined && tls === undefined ? new HostNames(hosts ?? [], resolverDomains()) : undefined;
}

function resolverDomains(): readonly string[] {
  try {
    return clusterDomains(readPlainText('/etc/resolv.conf', SECRET_BYTES_MAX));
  } catch {
    // A machine without a resolver is in no cluster.
    return [];
  }
}

async function answer(
  { options, hosts }: ServedPort,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = pathOf(request);
  const action = options.actions?.get(path);
  const methods = action === undefined ? ['GET', 'HEAD'] : ['POST'];
  if (!methods.includes(request.method ?? '')) {
    response.setHeader('allow', methods.join(', '));
    return plain(response, 405, `${request.method} is not served here: use ${methods.join(' or ')}\n`);
  }
  const problem = siteProblem(request, hosts);
  if (problem !== undefined) {
    const { host, origin } = request.headers;
    options.refused?.({ host, origin, reason: problem });
    return plain(response, 403, `${problem}\n`);
  }
  const [name, route] = action === undefined ? routeOf(options.routes, path) : ([path, action] as const);
  const { status, reason } = await access(options)(readerOf(request, name));
  if (status !== 200) {
    if (status === 401) response.setHeader('www-authenticate', 'Bearer');
    return plain(response, status, `${reason}\n`);
  }
  if (route) return route(request, response);
  if (path !== '/metrics') return plain(response, 404, 'not found\n');
  return answerMetrics(options, request, response);
}

function siteProblem({ headers, method }: IncomingMessage, hosts: HostNames | undefined): string | undefined {
  if (hosts?.has(headers.host) === false) {
    return `the port is not known by the host ${JSON.stringify(headers.host)}: name it with --metrics-hosts`;
  }
  return crossSiteProblem(headers, method === 'POST');
}

async function answerMetrics(
  options: MetricsServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const names = new URL(request.url ?? '/', 'http://localhost').searchParams.get('names');
  if (names !== null && names !== 'prometheus') {
    return plain(response, 400, `names: expected "prometheus" or nothing, got ${JSON.stringify(names)}\n`);
  }
  const isHead = request.method === 'HEAD';
  const exposition = isHead ? undefined : await options.exposition();
  response.writeHead(200, { 'content-type': CONTENT_TYPE });
  if (exposition === undefined) {
    response.end();
    return;
  }
  const slice = new PageSlice();
  for await (const piece of names === null ? exposition.pieces() : prometheusNames(exposition)) {
    if (response.destroyed) return;
    if (!response.write(piece)) await drained(response);
    await slice.share();
  }
  response.end();
}

/**
 * The page under names that `promtool check metrics` accepts: `llm_d_…` is `pointsman_…`, and the three sums of
 * prom-client that it objects to are left out.
 */
async function* prometheusNames(page: MetricsText): AsyncGenerator<string> {
  let rest = '';
  for await (const piece of page.pieces()) {
    const text = rest + piece;
    const end = text.lastIndexOf('\n') + 1;
    rest = text.slice(end);
    yield renamed(text.slice(0, end));
  }
  if (rest !== '') yield renamed(`${rest}\n`);
}

function renamed(lines: string): string {
  return lines.replace(ROUTER_NAMES, '$1pointsman_').replace(NODE_TOTALS, '');
}

/** The route of a path, and its own path, by which access is asked for: there are few of them. */
function routeOf(routes: MetricsServerOptions['routes'], path: string): readonly [string, Route | undefined] {
  const exact = routes?.get(path);
  if (exact !== undefined) return [path, exact];
  for (const [name, route] of routes ?? []) if (name.endsWith('/') && path.startsWith(name)) return [name, route];
  return [path, undefined];
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '/').split('?', 1)[0]!;
}

/** Whether a reader may see the page. A client with a certificate of `clientCa` has proved that in the handshake. */
function access({ mayRead, tls }: MetricsServerOptions): MayRead {
  return mayRead ?? (tls?.clientCa === undefined ? localPages : () => ({ status: 200, reason: '' }));
}

function plain(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(text);
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });
}
