import type { KeyPair } from '../../../contract/listen-settings.js';
import { threadClockMs } from '../../../runtime/pool-clock.js';
import { HeldBytes } from '../../byte-budget.js';
import { ClientShares } from '../../client-shares.js';
import {
  HEALTH_MESSAGE_BYTES,
  type HealthListener,
  type HealthListenOptions,
  type HealthSource,
  PROCESS_PATH,
  type StreamEntry,
  type Transport,
  type TransportOptions,
} from '../../transport.js';
import { within } from '../within.js';
import { type HealthMethods, healthMethods } from './health-methods.js';
import { Http2Server } from './server.js';
import type { Method } from './server-stream.js';

/** Streams of a connection beyond the bound, which are answered with a refusal. */
const REFUSED_STREAMS = 8_192;
/** Streams of a connection to the health port. */
const HEALTH_STREAMS_MAX = 128;
/** Connections to the health port: kubelets, and operators who check by hand. */
const HEALTH_CONNECTIONS_MAX = 256;
/** Bytes of health requests that are not complete. */
const HEALTH_HELD_BYTES_MAX = 16 * 1024 * 1024;
/** Bound on the silence of health watches: none. */
const NEVER_MS = Number.POSITIVE_INFINITY;
/** After the last stream of a drain, for its connections to end. */
const FLUSH_MS = 250;

/** ext_proc and gRPC health over an HTTP/2 connection of the project's own. */
export class LeanTransport implements Transport {
  #server: Http2Server | undefined;
  #health: HealthMethods | undefined;
  #streams = 0;
  #whenIdle: (() => void) | undefined;

  get streams(): number {
    return this.#server?.streams ?? 0;
  }

  get opened(): number {
    return this.#server?.opened ?? 0;
  }

  get handshakes(): number {
    return this.#server?.handshakes ?? 0;
  }

  async listen(options: TransportOptions, open: StreamEntry, health?: HealthSource): Promise<number> {
    this.#health = health === undefined ? undefined : healthMethods(health);
    const process: Method = {
      open,
      opensLate: true,
      turnAway: (arrivedAt, crowded, passes) => open.turnAway?.(arrivedAt, crowded, passes),
      came: () => this.#streams++,
      abandoned: (arrivedAt) => open.abandoned?.(arrivedAt),
      closed: () => this.#streamClosed(),
    };
    const server = new Http2Server({
      methods: new Map([[PROCESS_PATH, process], ...(this.#health?.methods ?? [])]),
      budget: options.budget,
      // One hostile client cannot hold all of it.
      heldBytesMax: Math.floor(options.budget.bytesMax / 2),
      messageBytesMax: options.maxReceiveBytes,
      replyBytesMax: options.maxSendBytes,
      streamsMax: options.streamsMax + REFUSED_STREAMS,
      shares: options.shares ?? new ClientShares({ streamsMax: options.streamsMax }),
      isVerified: options.tls?.clientCa !== undefined,
      stallMs: options.stallMs,
      behind: () => open.behind?.(),
      now: threadClockMs,
    });
    this.#server = server;
    const port = await server.listen(options);
    if (options.socket !== undefined) await server.listenOn(options.socket, options);
    return port;
  }

  replaceCertificate(pair: KeyPair): void {
    this.#server?.replaceCertificate(pair);
  }

  async drain(timeoutMs: number): Promise<void> {
    const ended = this.#server?.drain(timeoutMs);
    if (this.#streams > 0) await within(timeoutMs, new Promise<void>((resolve) => (this.#whenIdle = resolve)));
    this.#whenIdle = undefined;
    this.#health?.close();
    if (ended !== undefined) await within(FLUSH_MS, ended);
  }

  async close(): Promise<void> {
    this.#health?.close();
    await this.#server?.close();
    this.#server = undefined;
  }

  #streamClosed(): void {
    this.#streams--;
    if (this.#streams === 0) this.#whenIdle?.();
  }
}

/** Serves `grpc.health.v1.Health` alone (port 9003). Rejects when the port cannot be bound. */
export async function listenHealth(options: HealthListenOptions, health: HealthSource): Promise<HealthListener> {
  const { methods, close } = healthMethods(health);
  const server = new Http2Server({
    methods,
    budget: new HeldBytes(HEALTH_HELD_BYTES_MAX),
    heldBytesMax: HEALTH_HELD_BYTES_MAX,
    messageBytesMax: HEALTH_MESSAGE_BYTES,
    replyBytesMax: HEALTH_MESSAGE_BYTES,
    streamsMax: HEALTH_STREAMS_MAX,
    stallMs: NEVER_MS,
    now: threadClockMs,
  });
  const port = await server.listen({ ...options, reusePort: false, connectionsMax: HEALTH_CONNECTIONS_MAX });
  return {
    port,
    close: async () => {
      close();
      await server.close();
    },
  };
}
