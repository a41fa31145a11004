import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Script = (request: IncomingMessage, response: ServerResponse) => void;

/** An API server that answers each request by the next entry of a script, for what a real one does not do on demand. */
export class ScriptedServer {
  readonly #server: Server;
  readonly #script: Script[] = [];
  /** Path and query of every request. */
  readonly requests: URL[] = [];
  readonly tokens: (string | undefined)[] = [];

  private constructor(server: Server) {
    this.#server = server;
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      this.requests.push(new URL(request.url!, 'http://server'));
      this.tokens.push(request.headers.authorization);
      const next = this.#script.shift();
      // After the script's end a watch stays open and quiet.
      if (next === undefined) response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
      else next(request, response);
    });
  }

  static async start(...script: Script[]): Promise<ScriptedServer> {
    const server = createServer();
    const scripted = new ScriptedServer(server);
    scripted.#script.push(...script);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return scripted;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  answer(...script: Script[]): void {
    this.#script.push(...script);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** An object of any kind, as a watch sends it. */
export function object(name: string, version: number, more: object = {}, uid = `uid-${name}`) {
  return { metadata: { name, namespace: 'llm', uid, resourceVersion: String(version) }, ...more };
}

export const added = (name: string, version: number, more?: object) => ({
  type: 'ADDED',
  object: object(name, version, more),
});
export const deleted = (name: string, version: number) => ({ type: 'DELETED', object: object(name, version) });
export const bookmark = (version: number, end = false) => ({
  type: 'BOOKMARK',
  object: {
    metadata: {
      resourceVersion: String(version),
      ...(end ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}),
    },
  },
});
export const errorEvent = (code: number, reason: string, details: object = {}) => ({
  type: 'ERROR',
  object: { kind: 'Status', code, reason, message: reason, details },
});

const line = (event: unknown) => `${JSON.stringify(event)}\n`;

/** A watch that sends these events and stays open, or ends. */
export function watch(events: readonly unknown[], then: 'stays' | 'ends' | 'breaks' = 'stays'): Script {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write(events.map(line).join('') || '\n', () => {
      if (then === 'ends') response.end();
      else if (then === 'breaks') response.destroy();
    });
  };
}

/** A watch that breaks off inside the last event. */
export function cutWatch(events: readonly unknown[]): Script {
  return (_request, response) => {
    const text = events.map(line).join('');
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write(text.slice(0, -20), () => response.destroy());
  };
}

export function status(code: number, reason = '', more: object = {}, headers: Record<string, string> = {}): Script {
  return (_request, response) => {
    const body = { kind: 'Status', status: 'Failure', code, reason, message: reason, ...more };
    response.writeHead(code, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  };
}

export function json(body: unknown): Script {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  };
}
