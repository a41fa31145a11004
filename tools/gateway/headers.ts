import type { IncomingMessage } from 'node:http';
import { ADD_IF_ABSENT, type Header, type HeaderMutation } from './messages.js';

/**
 * Headers that concern one connection only (RFC 9110 §7.6.1), and the announcement of trailers, which this gateway
 * drops.
 */
const HOP_BY_HOP = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'transfer-encoding', 'upgrade'],
  'trailer',
]);

/** Set by the gateway itself; a picker may not change where a request is routed by them (as in Envoy's default). */
const ROUTING = new Set([':authority', ':method', ':scheme', ':status', 'host']);

/** Header of the picked endpoint. */
export const DESTINATION = 'x-gateway-destination-endpoint';

/** The headers of a client's request as Envoy shows them to a processor. */
export function requestHeaders(request: IncomingMessage, requestId: string): Header[] {
  const headers: Header[] = [
    [':method', request.method!],
    [':path', request.url!],
    [':authority', request.headers.host ?? ''],
    [':scheme', 'http'],
    ...endToEnd(request).filter(([name]) => name !== 'host' && name !== 'expect'),
  ];
  if (request.headers['x-forwarded-proto'] === undefined) headers.push(['x-forwarded-proto', 'http']);
  if (request.headers['x-request-id'] === undefined) headers.push(['x-request-id', requestId]);
  return headers;
}

/** The headers of a model server's answer as Envoy shows them to a processor. */
export function responseHeaders(response: IncomingMessage): Header[] {
  return [[':status', String(response.statusCode)], ...endToEnd(response)];
}

function endToEnd(message: IncomingMessage): Header[] {
  const headers: Header[] = [];
  for (let index = 0; index < message.rawHeaders.length; index += 2) {
    const name = message.rawHeaders[index]!.toLowerCase();
    if (!HOP_BY_HOP.has(name)) headers.push([name, message.rawHeaders[index + 1]!]);
  }
  return headers;
}

/** Applies what the picker wants changed. Set headers overwrite, except with the action "add if absent". */
export function mutate(headers: readonly Header[], mutation: HeaderMutation): Header[] {
  let changed = headers.filter(([name]) => !mutation.remove.includes(name) || name.startsWith(':'));
  for (const { name, value, action } of mutation.set) {
    if (ROUTING.has(name)) continue;
    const present = changed.some(([other]) => other === name);
    if (present && action === ADD_IF_ABSENT) continue;
    changed = changed.filter(([other]) => other !== name);
    changed.push([name, value]);
  }
  return changed;
}

/** Value of a header, or the empty string. */
export function headerValue(headers: readonly Header[], name: string): string {
  return headers.find(([other]) => other === name)?.[1] ?? '';
}

/** Headers for node:http: pseudo headers out, names and values in one flat list. */
export function plainHeaders(headers: readonly Header[]): string[] {
  return headers.filter(([name]) => !name.startsWith(':')).flat();
}

/** `ip:port` or `[ip6]:port` of a destination; undefined when it is neither. */
export function parseDestination(destination: string): { host: string; port: number } | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]+)):(\d{1,5})$/.exec(destination.trim());
  if (match === null) return undefined;
  const port = Number(match[3]);
  return port > 0 && port < 65_536 ? { host: (match[1] ?? match[2])!, port } : undefined;
}
