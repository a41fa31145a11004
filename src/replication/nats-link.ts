import type * as Nats from '@nats-io/transport-node';
import type { Msg, NatsConnection, Status } from '@nats-io/transport-node';
import { errorMessage } from '../runtime/error-message.js';
import { optionalPackage } from '../runtime/optional-package.js';
import type { LinkEvents, ReplicaLink } from './link.js';

/** The client of NATS; this module is loaded only where replication is configured. */
const nats = optionalPackage<typeof Nats>('@nats-io/transport-node', 'replicas on NATS');

/** Pause between two tries to connect. */
const RECONNECT_MS = 200;
/** Interval between two pings; a connection that misses two is given up. */
const PING_MS = 1_000;
const PINGS_MISSED_MAX = 2;
const CONNECT_MS = 2_000;

export interface NatsLinkOptions {
  readonly url: string;
  /** Content of a credentials file; undefined = as the URL says. */
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  /** Name of the group: replicas of one group share. */
  readonly group: string;
  readonly replica: string;
}

/**
 * Replicas as subjects of core NATS: `pointsman.<group>.all` for messages to all, `pointsman.<group>.to.<replica>` for
 * those to one. Nothing is kept on the server. Without a connection messages are dropped, not queued: they would be
 * old.
 */
export class NatsLink implements ReplicaLink {
  readonly #options: NatsLinkOptions;
  readonly #all: string;
  #connection: NatsConnection | undefined;
  #connected = false;
  #closed = false;
  #retry: NodeJS.Timeout | undefined;

  constructor(options: NatsLinkOptions) {
    this.#options = options;
    this.#all = `pointsman.${token(options.group)}.all`;
  }

  /** The connection, while there is one. */
  get connection(): NatsConnection | undefined {
    return this.#connected ? this.#connection : undefined;
  }

  get connected(): boolean {
    return this.#connected;
  }

  open(events: LinkEvents): void {
    void this.#connect(events);
  }

  async #connect(events: LinkEvents): Promise<void> {
    const { url, user, password, replica } = this.#options;
    try {
      const connection = await nats.connect({
        servers: url,
        name: `pointsman ${replica}`,
        ...(user === undefined ? {} : { user }),
        ...(password === undefined ? {} : { pass: password }),
        noEcho: true,
        timeout: CONNECT_MS,
        maxReconnectAttempts: -1,
        reconnectTimeWait: RECONNECT_MS,
        pingInterval: PING_MS,
        maxPingOut: PINGS_MISSED_MAX,
        ignoreAuthErrorAbort: true,
      });
      if (this.#closed) return void connection.close();
      this.#serve(connection, events);
    } catch (error) {
      events.disconnected(errorMessage(error));
      if (!this.#closed) this.#retry = setTimeout(() => this.#connect(events), RECONNECT_MS).unref();
    }
  }

  #serve(connection: NatsConnection, events: LinkEvents): void {
    this.#connection = connection;
    const callback = (error: Error | null, message: Msg) => {
      if (error === null) this.#received(message, events);
    };
    const own = this.#subject(this.#options.replica);
    connection.subscribe(own, { callback });
    // Asked before this replica subscribes: the server answers when there is no subscriber.
    connection.publish(this.#all, undefined, { reply: own });
    connection.subscribe(this.#all, { callback });
    this.#connected = true;
    events.connected();
    void this.#follow(connection, events);
  }

  #received(message: Msg, events: LinkEvents): void {
    if (message.data.length > 0) events.message(message.data);
    else if (message.headers?.code === 503) events.alone();
  }

  async #follow(connection: NatsConnection, events: LinkEvents): Promise<void> {
    for await (const status of connection.status()) this.#note(status, events);
  }

  #note(status: Status, events: LinkEvents): void {
    if (status.type === 'disconnect' || status.type === 'staleConnection') {
      if (!this.#connected) return;
      this.#connected = false;
      events.disconnected('the connection broke');
    } else if (status.type === 'reconnect' && !this.#connected) {
      // After several tries that were refused it is told once for each of them.
      this.#connected = true;
      events.connected();
    }
  }

  broadcast(bytes: Uint8Array): void {
    if (this.#connected) this.#connection?.publish(this.#all, bytes);
  }

  send(replica: string, bytes: Uint8Array): void {
    if (this.#connected) this.#connection?.publish(this.#subject(replica), bytes);
  }

  #subject(replica: string): string {
    return `pointsman.${token(this.#options.group)}.to.${token(replica)}`;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#retry);
    if (this.#connected) await this.#connection?.flush().catch(() => undefined);
    this.#connected = false;
    await this.#connection?.close();
  }
}

/** A name as one token of a subject. */
function token(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, (character) => `%${character.codePointAt(0)!.toString(16)}`);
}
