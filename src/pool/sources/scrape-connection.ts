import { connect, isIP, type Socket, type TcpNetConnectOpts } from 'node:net';
import { connect as connectTls, createSecureContext, type SecureContext } from 'node:tls';
import type { PageBuffers } from './page-buffers.js';
import { ResponseParser } from './response-parser.js';
import { ScrapeFault } from './scrape-fault.js';

/** TLS settings for https servers. One for all connections, because parsing certificates is expensive. */
export interface ScrapeTls {
  readonly secureContext: SecureContext;
  readonly rejectUnauthorized: boolean;
}

/** PEM texts and whether any certificate of the server is taken. */
export interface ScrapeTlsOptions {
  readonly insecureSkipVerify: boolean;
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** Throws when a text is no PEM, or key and certificate do not belong together. */
export function scrapeTls({ insecureSkipVerify, ca, cert, key }: ScrapeTlsOptions): ScrapeTls {
  return { secureContext: createSecureContext({ ca, cert, key }), rejectUnauthorized: !insecureSkipVerify };
}

export interface ScrapeAddress {
  /** IP literal (IPv6 without brackets) or host name. */
  readonly host: string;
  /** Name that the server's certificate must be for; absent = `host`. */
  readonly serverName?: string | undefined;
  readonly port: number;
  readonly path: string;
  /** Present = https. */
  readonly tls: ScrapeTls | undefined;
}

/** Bound on the redirects to one page. */
const REDIRECTS_MAX = 3;

/** State that the connections of a thread share. */
export interface ScrapeMeans {
  /** Told the time that reading pages took. */
  readonly spent: (ms: number) => void;
  readonly buffers: PageBuffers;
  readonly pageBytesMax: number;
  /** Filled and read within one callback, so that one is enough for all sockets of a thread. */
  readonly readBuffer: Buffer;
}

/**
 * A keep-alive connection to one endpoint that asks for one page at a time: only what a scrape needs of HTTP/1.1,
 * because scraping is the hot path of the control thread. It connects on demand and again after a failure. A page that
 * has moved on its server is asked for in its other place until a request fails.
 */
export class ScrapeConnection {
  readonly #address: ScrapeAddress;
  readonly #means: ScrapeMeans;
  readonly #done: (page: Uint8Array) => void;
  readonly #failed: (fault: ScrapeFault) => void;
  /** Scheme, host and port as the server sees them. */
  readonly #origin: string;
  #path: string;
  #request: Buffer;
  /** Redirects since the last page. */
  #redirects = 0;
  readonly #parser: ResponseParser;
  #socket: Socket | undefined;
  #waiting = false;
  /** Whether the request went out on a connection that had served before: its server may have closed it since. */
  #onUsed = false;
  #served = 0;

  /** Every `request` is answered by one call: `done` with the page (valid during the call) or `failed`. */
  constructor(
    address: ScrapeAddress,
    means: ScrapeMeans,
    done: (page: Uint8Array) => void,
    failed: (fault: ScrapeFault) => void,
  ) {
    this.#address = address;
    this.#means = means;
    this.#done = done;
    this.#failed = failed;
    const host = address.host.includes(':') ? `[${address.host}]` : address.host;
    const scheme = address.tls === undefined ? 'http' : 'https';
    this.#origin = `${scheme}://${address.serverName ?? host}:${address.port}`;
    this.#path = address.path;
    this.#request = requestFor(this.#path, this.#origin);
    this.#parser = new ResponseParser(means.buffers, means.pageBytesMax);
  }

  /** Asks for the page. Not to be called before the request before is answered. */
  request(): void {
    this.#waiting = true;
    this.#onUsed = this.#socket !== undefined && this.#served > 0;
    this.#socket ??= this.#connect();
    this.#socket.write(this.#request);
  }

  /** Ends the request under way, without a call to `done` or `failed`. */
  close(): void {
    this.#waiting = false;
    this.#drop();
    this.#askAsTold();
  }

  #askFor(path: string): void {
    if (path === this.#path) return;
    this.#path = path;
    this.#request = requestFor(path, this.#origin);
  }

  #askAsTold(): void {
    this.#redirects = 0;
    this.#askFor(this.#address.path);
  }

  /** Asks for the place that a redirect tells, from the next request on. False = it cannot be followed. */
  #follow({ location }: ScrapeFault): boolean {
    if (location === undefined || this.#redirects === REDIRECTS_MAX) return false;
    const path = pathOn(this.#origin, this.#path, location);
    if (path === undefined) return false;
    this.#redirects += 1;
    this.#askFor(path);
    return true;
  }

  #connect(): Socket {
    const { host, port, tls, serverName } = this.#address;
    this.#served = 0;
    const options: TcpNetConnectOpts = {
      host,
      port,
      noDelay: true,
      onread: {
        buffer: this.#means.readBuffer,
        callback: (bytes, buffer) => this.#timed(socket, bytes, buffer as Buffer),
      },
    };
    const socket: Socket =
      tls === undefined ? connect(options) : connectTls({ ...options, ...tls, ...serverNameOf(serverName ?? host) });
    let reached = false;
    socket.on(tls === undefined ? 'connect' : 'secureConnect', () => {
      reached = true;
    });
    socket.on('error', (error) => this.#lost(socket, new ScrapeFault(reached ? 'closed' : 'connect', error.message)));
    socket.on('end', () => this.#ended(socket));
    socket.on('close', () => this.#ended(socket));
    return socket;
  }

  #drop(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#parser.reset();
    socket?.destroy();
  }

  #timed(socket: Socket, length: number, buffer: Buffer): boolean {
    const began = performance.now();
    const more = this.#read(socket, length, buffer);
    this.#means.spent(performance.now() - began);
    return more;
  }

  #read(socket: Socket, length: number, buffer: Buffer): boolean {
    if (socket !== this.#socket) return true;
    if (!this.#waiting) {
      // Answer without a request.
      this.#drop();
      return true;
    }
    try {
      if (this.#parser.push(buffer, length)) this.#complete();
    } catch (error) {
      this.#lost(socket, asFault(error));
    }
    return true;
  }

  #ended(socket: Socket): void {
    if (socket !== this.#socket) return;
    if (!this.#waiting) {
      this.#drop();
      return;
    }
    try {
      if (this.#parser.end()) this.#complete();
    } catch (error) {
      this.#lost(socket, asFault(error));
    }
  }

  #complete(): void {
    this.#waiting = false;
    this.#served += 1;
    this.#redirects = 0;
    try {
      this.#done(this.#parser.page);
    } finally {
      if (this.#parser.keepAlive) this.#parser.reset();
      else this.#drop();
    }
  }

  #lost(socket: Socket, fault: ScrapeFault): void {
    if (socket !== this.#socket) return;
    const retry = this.#waiting && this.#onUsed && fault.kind === 'closed' && this.#parser.untouched;
    const waiting = this.#waiting;
    this.#waiting = false;
    this.#drop();
    if (retry || (waiting && this.#follow(fault))) {
      this.request();
      return;
    }
    this.#askAsTold();
    if (waiting) this.#failed(fault);
  }
}

function requestFor(path: string, origin: string): Buffer {
  const host = origin.slice(origin.indexOf('//') + 2);
  const lines = [`GET ${path} HTTP/1.1`, `Host: ${host}`, 'User-Agent: pointsman', 'Accept: text/plain;version=0.0.4'];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

/** Path of a redirect's place, from the path that was asked for; undefined = it is on another server, or no place. */
function pathOn(origin: string, path: string, location: string): string | undefined {
  const asked = `${origin}${path}`;
  if (!URL.canParse(location, asked)) return undefined;
  const place = new URL(location, asked);
  return place.origin === new URL(asked).origin ? `${place.pathname}${place.search}` : undefined;
}

/** Server name for TLS: a name is sent to the server and checked; an IP address is only checked. */
function serverNameOf(host: string): { readonly servername?: string } {
  return isIP(host) === 0 ? { servername: host } : {};
}

function asFault(error: unknown): ScrapeFault {
  return error instanceof ScrapeFault ? error : new ScrapeFault('scan', String(error));
}
