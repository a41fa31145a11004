import { PacedReport } from '../runtime/paced-report.js';
import type { ExchangePace } from './exchange-pace.js';
import { ROWS_MAX } from './peer-rows.js';
import { PEERS_MAX } from './peer-view.js';
import { TENANTS_MAX } from './spent-tenants.js';

/** Bound on the names of replicas whose other seed was reported. */
const OTHER_SEEDS_MAX = 64;

export type ReplicationLog = (level: 'info' | 'warn', text: string, details?: object) => void;

/** Log lines of the exchange between replicas: peers can cause any number of them, so each kind is paced. */
export class ReplicationReports {
  readonly #unreadable: PacedReport<string>;
  readonly #crowded: PacedReport<string>;
  readonly #forgottenTenants: PacedReport<string>;
  readonly #forgottenLoads: PacedReport<string>;
  readonly #heard: PacedReport<{ readonly replica: string; readonly epoch: number }>;
  readonly #silent: PacedReport<string>;
  readonly #costly: PacedReport<ExchangePace>;
  readonly #untold: PacedReport<ExchangePace>;
  readonly #otherSeed: PacedReport<string>;
  readonly #otherSeeds = new Set<string>();

  constructor(log: ReplicationLog) {
    this.#unreadable = new PacedReport((reason, count) =>
      log('warn', `a message cannot be read: ${reason}`, { count }),
    );
    const tooMany = `more than ${PEERS_MAX} other replicas are heard: the load of further ones does not count`;
    this.#crowded = new PacedReport((replica, count) => log('warn', tooMany, { replica, count }));
    const tenants =
      `replicas tell of more than ${TENANTS_MAX} tenants: some of what those told least lately use is not counted ` +
      'here; set replication.hashKeyFile if strangers can publish, or have fewer tenants';
    this.#forgottenTenants = new PacedReport((replica, count) => log('warn', tenants, { replica, count }));
    const loads =
      `replicas tell of load in more than ${ROWS_MAX} places (replicas × endpoints): some of it does not count here; ` +
      'set replication.hashKeyFile if strangers can publish, or make groups of replicas';
    this.#forgottenLoads = new PacedReport((replica, count) => log('warn', loads, { replica, count }));
    this.#heard = new PacedReport(
      (peer, count) => log('info', 'a replica is heard', { ...peer, ...more(count) }),
      PEERS_MAX,
    );
    this.#silent = new PacedReport(
      (replica, count) => log('warn', 'a replica is silent: its load no longer counts', { replica, ...more(count) }),
      PEERS_MAX,
    );
    const seed = 'a replica hashes blocks with another seed, so its prompts are not shared: give all the same hashKey';
    this.#otherSeed = new PacedReport(
      (replica, count) => log('warn', seed, { replica, ...more(count) }),
      OTHER_SEEDS_MAX,
    );
    const remedy = 'raise it, or make groups of replicas';
    this.#costly = new PacedReport(({ usedShare, intervalMs }) =>
      log('warn', `sharing with replicas takes more CPU than --replication-cpu-percent: ${remedy}`, {
        cpuShare: usedShare,
        intervalMs,
      }),
    );
    this.#untold = new PacedReport(({ usedShare, leastBlocks }) =>
      log(
        'warn',
        'short prompts are not told to other replicas, so that sharing stays within --replication-cpu-percent: ' +
          `they lose cache hits; ${remedy}`,
        { cpuShare: usedShare, leastBlocks },
      ),
    );
  }

  unreadable(reason: string, nowMs: number): void {
    this.#unreadable.note(reason, nowMs);
  }

  crowded(replica: string, nowMs: number): void {
    this.#crowded.note(replica, nowMs);
  }

  /** @param replica whose tenants have taken the place of others */
  forgottenTenants(replica: string, nowMs: number): void {
    this.#forgottenTenants.note(replica, nowMs);
  }

  /** @param replica whose loads have taken the place of others */
  forgottenLoads(replica: string, nowMs: number): void {
    this.#forgottenLoads.note(replica, nowMs);
  }

  heard(replica: string, epoch: number, nowMs: number): void {
    this.#heard.note({ replica, epoch }, nowMs);
  }

  silent(replica: string, nowMs: number): void {
    this.#silent.note(replica, nowMs);
  }

  /** Reports an exchange that takes more than its share, or leaves out placements to stay within. */
  cost(pace: ExchangePace, nowMs: number): void {
    if (pace.isOver) this.#costly.note(pace, nowMs);
    else if (pace.leastBlocks > 0) this.#untold.note(pace, nowMs);
  }

  /** Reports each replica once, as far as their names are remembered. */
  otherSeed(replica: string, nowMs: number): void {
    if (this.#otherSeeds.has(replica)) return;
    if (this.#otherSeeds.size < OTHER_SEEDS_MAX) this.#otherSeeds.add(replica);
    this.#otherSeed.note(replica, nowMs);
  }
}

/** The number of what a line of the log stands for, where that is not one. */
function more(count: number): object {
  return count === 1 ? {} : { count };
}
