import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { bookmark, status } from './scripted-server.ts';

/** An object as a collection keeps it. */
export interface StoredObject {
  readonly metadata: { readonly name: string; readonly uid: string };
}

interface Event {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: object;
}

/** The objects of one kind, what happened to them, and who watches. */
class Collection {
  readonly objects = new Map<string, { readonly version: number; readonly object: StoredObject }>();
  readonly events: Event[] = [];
  readonly watches = new Set<ServerResponse>();
}

const line = (event: unknown) => `${JSON.stringify(event)}\n`;

/**
 * An API server in memory that keeps what happened, tells it to watches, and misbehaves on demand: it ends and breaks
 * watches, repeats events and forgets old versions.
 */
export class HistoryServer {
  readonly #server: Server;
  readonly #collections = new Map<string, Collection>();
  /** Names of the resources of a group and version, by path. */
  readonly #groups: ReadonlyMap<string, readonly string[]>;
  #version = 1;
  /** A page of a list never holds all. */
  large = false;
  #forgotten = 0;

  private constructor(server: Server, groups: ReadonlyMap<string, readonly string[]>) {
    this.#server = server;
    this.#groups = groups;
    server.on('request', (request, response) => this.#answer(request, response));
  }

  static async start(groups: ReadonlyMap<string, readonly string[]>): Promise<HistoryServer> {
    const made = new HistoryServer(createServer(), groups);
    await new Promise<void>((resolve) => made.#server.listen(0, '127.0.0.1', resolve));
    return made;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Creates or changes an object. */
  put(path: string, object: StoredObject): void {
    const { objects } = this.#at(path);
    const version = ++this.#version;
    const type = objects.has(object.metadata.uid) ? 'MODIFIED' : 'ADDED';
    objects.set(object.metadata.uid, { version, object });
    this.#tell(path, { version, type, object: versioned(object, version) });
  }

  delete(path: string, uid: string): void {
    const { objects } = this.#at(path);
    const before = objects.get(uid);
    if (before === undefined) return;
    objects.delete(uid);
    const version = ++this.#version;
    this.#tell(path, { version, type: 'DELETED', object: versioned(before.object, version) });
  }

  /** The objects of a collection as a list gives them. */
  list(path: string): object[] {
    return [...this.#at(path).objects.values()].map(({ version, object }) => versioned(object, version));
  }

  /** Ends every watch in order, or breaks it off. */
  cut(how: 'end' | 'break'): void {
    for (const { watches } of this.#collections.values()) {
      for (const response of watches) {
        if (how === 'end') response.end();
        else response.destroy();
      }
      watches.clear();
    }
  }

  /** Sends the last events of every collection once more. */
  repeat(count: number): void {
    for (const { events, watches } of this.#collections.values()) {
      const text = events.slice(-count).map(line).join('');
      for (const response of watches) response.write(text);
    }
  }

  /** Watches from any version up to now get 410. */
  forget(): void {
    this.#forgotten = ++this.#version;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #at(path: string): Collection {
    const found = this.#collections.get(path) ?? new Collection();
    this.#collections.set(path, found);
    return found;
  }

  #tell(path: string, event: Event): void {
    const { events, watches } = this.#at(path);
    events.push(event);
    for (const response of watches) response.write(line(event));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url!, 'http://server');
    const resources = this.#groups.get(pathname);
    if (resources !== undefined) {
      response.end(JSON.stringify({ resources: resources.map((name) => ({ name })) }));
      return;
    }
    if (!pathname.includes('/namespaces/')) status(404, 'NotFound')(request, response);
    else if (searchParams.has('watch')) this.#watch(pathname, searchParams, request, response);
    else {
      const metadata = { resourceVersion: String(this.#version), ...(this.large ? { continue: 'more' } : {}) };
      response.end(JSON.stringify({ metadata, items: this.list(pathname) }));
    }
  }

  #watch(path: string, query: URLSearchParams, request: IncomingMessage, response: ServerResponse): void {
    const collection = this.#at(path);
    const from = Number(query.get('resourceVersion') ?? 0);
    const first = query.has('sendInitialEvents');
    if (!first && from < this.#forgotten) {
      status(410, 'Expired')(request, response);
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    const events = first
      ? [...this.list(path).map((object) => ({ type: 'ADDED', object })), bookmark(this.#version, true)]
      : collection.events.filter(({ version }) => version > from);
    response.flushHeaders();
    response.write(events.map(line).join('') || '\n');
    collection.watches.add(response);
    response.on('close', () => collection.watches.delete(response));
  }
}

function versioned(object: StoredObject, version: number): object {
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
}
