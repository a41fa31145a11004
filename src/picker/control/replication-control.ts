import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { SlotAssignment } from '../../contract/endpoint.js';
import type { CoreInstance } from '../../core/memory.js';
import type { Logger } from '../../operations/log.js';
import type { ReplicaLink } from '../../replication/link.js';
import { steadyClock } from '../../replication/message-freshness.js';
import { messageKey } from '../../replication/messages.js';
import type { NatsLink } from '../../replication/nats-link.js';
import { noCounts, type ReplicationCounts } from '../../replication/replication-counts.js';
import { Replicator } from '../../replication/replicator.js';
import type { Part } from '../part.js';
import { KeptState, type OutlivingState } from './kept-state.js';
import { type KnownLoad, PoolReplica, type SharedState } from './pool-replica.js';

/** Interval between two ticks of the replicator while there is news. */
const TICK_MS = 5;
/** The same while there was none for CALM_TICKS ticks: the pool is idle, and a look costs a wake of the thread. */
const IDLE_TICK_MS = 20;
const CALM_TICKS = 20;
/** Time that the start waits for the prefix index and the sessions of a peer. */
const JOIN_MS_MAX = 5_000;
/** The same without a connection, and without a peer behind it: five tries to connect, five updates of a calm peer. */
const SILENT_MS_MAX = 1_000;

/** A replica among others. */
export interface ReplicaSettings {
  /** Address of NATS servers, without credentials. */
  readonly url: string;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly group: string;
  /** Unique in the group. */
  readonly replica: string;
  /**
   * Secret of the group, of which the seed of the block hashes and the key of its messages are made; the empty text =
   * none.
   */
  readonly hashKey: string;
  /** Whether JetStream keeps what must survive all replicas. */
  readonly jetStream: boolean;
  /** Share of one core that the exchange may take before its updates come less often, 0 to 1. */
  readonly cpuShare: number;
}

export interface ReplicationControlOptions {
  readonly settings: ReplicaSettings;
  readonly core: CoreInstance;
  readonly assignments: () => readonly SlotAssignment[];
  readonly hashSeed: bigint;
  readonly sharesIndex: boolean;
  readonly state: SharedState;
  readonly outliving: OutlivingState;
  /** Called when a peer says that an endpoint is out. */
  readonly hinted: (slot: number, generation: number) => void;
  readonly log: Logger;
}

/** State of replication as plain data. */
export interface ReplicationReport {
  readonly replica: string;
  readonly connected: boolean;
  readonly joined: boolean;
  readonly peers: Replicator['peers'];
  readonly counts: Readonly<ReplicationCounts>;
  /** Milliseconds between two updates of this replica. */
  readonly intervalMs: number;
  /** Blocks from which on every placement is told; 0 = all are. */
  readonly leastBlocks: number;
  /** Share of one core that the exchange takes. */
  readonly cpuShare: number;
}

/** Why a replica has not joined. */
function missing({ connected }: ReplicaLink, { livePeers }: Replicator): string {
  if (!connected) return 'NATS is not reached';
  return livePeers === 0 ? 'no peer is heard' : 'no peer has told all that it knows';
}

/** Gives the replicator its clock and its link. Control thread only. */
export class ReplicationControl implements Part {
  /** Reports the time that an update of a peer was under way, in milliseconds. */
  lag: (ms: number) => void = () => undefined;
  readonly #options: ReplicationControlOptions;
  readonly #log: Logger;
  readonly #pool: PoolReplica;
  #link: ReplicaLink | undefined;
  #replicator: Replicator | undefined;
  #kept: KeptState | undefined;
  #timer: NodeJS.Timeout | undefined;
  #problem = '';

  constructor(options: ReplicationControlOptions) {
    const { core, assignments, state, hinted } = options;
    this.#options = options;
    this.#log = options.log.child({ part: 'replication' });
    this.#pool = new PoolReplica({ core, assignments, state, hinted });
  }

  /**
   * Resolves when the prefix index and the sessions of a peer have been taken over, when nothing more can come, or
   * after 5 s.
   * @throws MissingPackage
   */
  async start(): Promise<void> {
    const { settings } = this.#options;
    const { NatsLink } = await import('../../replication/nats-link.js');
    const link = new NatsLink(settings);
    this.#kept = await this.#makeKept(link);
    const connected = Promise.withResolvers<void>();
    const replicator = this.#makeReplicator(link);
    this.#link = link;
    this.#replicator = replicator;
    this.#pool.endpointsChanged();
    const began = performance.now();
    let silentFrom = began;
    link.open({
      message: (bytes) => replicator.receive(bytes, performance.now()),
      connected: () => {
        this.#problem = '';
        silentFrom = performance.now();
        this.#log.info({ url: settings.url, group: settings.group, replica: settings.replica }, 'connected to NATS');
        replicator.connected(performance.now());
        connected.resolve();
      },
      disconnected: (reason) => this.#disconnected(reason),
      alone: () => replicator.alone(),
    });
    this.#tickAgain(replicator, 0);
    const mayCome = () => replicator.livePeers > 0 || performance.now() - silentFrom < SILENT_MS_MAX;
    while (!replicator.joined && mayCome() && performance.now() - began < JOIN_MS_MAX) await pause(TICK_MS);
    if (link.connected) await this.#kept?.start();
    else void connected.promise.then(() => this.#kept?.start());
    const waitedMs = Math.round(performance.now() - began);
    if (replicator.joined) this.#log.info({ peers: replicator.livePeers, waitedMs }, 'has joined its replicas');
    else this.#log.warn({ waitedMs }, `${missing(link, replicator)}: serves without what peers know`);
  }

  /** @param calm ticks without news so far */
  #tickAgain(replicator: Replicator, calm: number): void {
    const tick = () => this.#tickAgain(replicator, replicator.tick(performance.now()) ? 0 : calm + 1);
    this.#timer = setTimeout(tick, calm < CALM_TICKS ? TICK_MS : IDLE_TICK_MS).unref();
  }

  /** @throws MissingPackage */
  async #makeKept(link: NatsLink): Promise<KeptState | undefined> {
    const { settings, outliving: state } = this.#options;
    if (!settings.jetStream) return undefined;
    const { JetStreamStore } = await import('../../replication/jetstream-store.js');
    const store = new JetStreamStore(() => link.connection, settings.group);
    return new KeptState({ store, state, writes: () => this.#replicator?.isFirst === true, log: this.#log });
  }

  #makeReplicator(link: ReplicaLink): Replicator {
    const { settings, hashSeed, sharesIndex } = this.#options;
    const replicator = new Replicator({
      replica: settings.replica,
      epoch: Date.now(),
      seedCheck: seedCheck(hashSeed),
      sharesIndex,
      pool: this.#pool,
      link,
      key: messageKey(settings.group, settings.hashKey),
      wallMs: steadyClock(),
      cpuShare: settings.cpuShare,
      log: (level, text, details = {}) => this.#log[level](details, text),
    });
    replicator.lag = (ms) => this.lag(ms);
    return replicator;
  }

  /** Logs a reason once, not with every try. */
  #disconnected(reason: string): void {
    if (this.#problem === reason) return;
    this.#problem = reason;
    this.#log.warn({ url: this.#options.settings.url }, `no connection to NATS, decides without its peers: ${reason}`);
  }

  /** Follows the endpoints of the pool. */
  endpointsChanged(): void {
    this.#pool.endpointsChanged();
    this.#replicator?.endpointsChanged();
  }

  report(): ReplicationReport {
    return {
      replica: this.#options.settings.replica,
      connected: this.#link?.connected === true,
      joined: this.#replicator?.joined === true,
      peers: this.#replicator?.peers ?? [],
      counts: this.#replicator?.counts ?? noCounts(),
      intervalMs: this.#replicator?.intervalMs ?? 0,
      leastBlocks: this.#replicator?.leastBlocks ?? 0,
      cpuShare: this.#replicator?.cpuShare ?? 0,
    };
  }

  /** Load of every endpoint as it is known here. */
  loads(): readonly KnownLoad[] {
    return this.#pool.known();
  }

  /** Leaves the group, so that peers free the load of this replica at once. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#kept?.stop();
    this.#replicator?.leave();
    await this.#link?.close();
  }
}

/** Checksum that tells seeds apart without revealing them. */
function seedCheck(hashSeed: bigint): number {
  return createHash('sha256').update(`check ${hashSeed}`).digest().readUInt32LE();
}
