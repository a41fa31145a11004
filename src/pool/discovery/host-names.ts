import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { errorMessage } from '../../runtime/error-message.js';

/** Every address of a host name as IP texts; rejects when it does not resolve. */
export type ResolveHost = (hostName: string) => Promise<readonly string[]>;

export interface HostNamesOptions {
  /** Default dns.lookup, so that the hosts file and the search list count. */
  readonly resolve?: ResolveHost | undefined;
  /** Lifetime of an answer, in ms. Default 30,000. */
  readonly refreshMs?: number | undefined;
  /** Pause before a name without an address is tried again. Default 2,000. */
  readonly retryMs?: number | undefined;
  /** Longest wait of `watch` for unresolved names, in ms. Default 2,000. A later address is reported as a change. */
  readonly patienceMs?: number | undefined;
}

/** Lookups at one time: dns.lookup occupies the threads that also serve file reads (four by default). */
const LOOKUPS_MAX = 2;

interface Host {
  readonly hostName: string;
  address: string | undefined;
  /** The last lookup's complaint; undefined after a good one. */
  problem: string | undefined;
  asked: boolean;
}

/** The address of each watched host name, looked up again and again. */
export class HostNames {
  readonly #resolve: ResolveHost;
  readonly #refreshMs: number;
  readonly #retryMs: number;
  readonly #patienceMs: number;
  readonly #changed: () => void;
  readonly #report: (hostName: string, problem: string) => void;
  readonly #hosts = new Map<string, Host>();
  readonly #timers = new Map<Host, NodeJS.Timeout>();
  readonly #queue: Host[] = [];
  #lookups = 0;
  #onFirstAnswers: (() => void) | undefined;

  /**
   * `changed` is called after a name's address has changed, except while `watch` waits for it; `report` once for each
   * time that a name ceases to resolve.
   */
  constructor(options: HostNamesOptions, changed: () => void, report: (hostName: string, problem: string) => void) {
    this.#resolve = options.resolve ?? lookUp;
    this.#refreshMs = options.refreshMs ?? 30_000;
    this.#retryMs = options.retryMs ?? 2_000;
    this.#patienceMs = options.patienceMs ?? 2_000;
    this.#changed = changed;
    this.#report = report;
  }

  /** Watches exactly these names. Resolves when every new one has been asked for once, or patience has ended. */
  async watch(hostNames: ReadonlySet<string>): Promise<void> {
    for (const host of this.#hosts.values()) if (!hostNames.has(host.hostName)) this.#forget(host);
    for (const hostName of hostNames) {
      if (this.#hosts.has(hostName)) continue;
      const host: Host = { hostName, address: undefined, problem: undefined, asked: false };
      this.#hosts.set(hostName, host);
      this.#queue.push(host);
    }
    this.#pump();
    if (this.#allSettled()) return;
    await new Promise<void>((resolve) => {
      const patience = setTimeout(resolve, this.#patienceMs);
      this.#onFirstAnswers = () => {
        clearTimeout(patience);
        resolve();
      };
    });
    this.#onFirstAnswers = undefined;
    for (const host of this.#hosts.values()) if (!isSettled(host)) this.#reportProblem(host, 'no answer yet');
  }

  /** The name's address; undefined = none so far. */
  address(hostName: string): string | undefined {
    return this.#hosts.get(hostName)?.address;
  }

  stop(): void {
    for (const host of this.#hosts.values()) this.#forget(host);
    this.#onFirstAnswers?.();
  }

  #forget(host: Host): void {
    this.#hosts.delete(host.hostName);
    clearTimeout(this.#timers.get(host));
    this.#timers.delete(host);
    const queued = this.#queue.indexOf(host);
    if (queued >= 0) this.#queue.splice(queued, 1);
  }

  #allSettled(): boolean {
    return [...this.#hosts.values()].every(isSettled);
  }

  #pump(): void {
    while (this.#lookups < LOOKUPS_MAX) {
      const host = this.#queue.shift();
      if (host === undefined) return;
      this.#lookups += 1;
      void this.#ask(host);
    }
  }

  async #ask(host: Host): Promise<void> {
    let addresses: readonly string[] = [];
    let problem: string | undefined;
    try {
      addresses = (await this.#resolve(host.hostName)).filter((address) => isIP(address) !== 0);
      if (addresses.length === 0) problem = 'it has no address';
    } catch (error) {
      problem = errorMessage(error);
    }
    this.#lookups -= 1;
    if (this.#hosts.get(host.hostName) === host) this.#answer(host, addresses, problem);
    this.#pump();
  }

  #answer(host: Host, addresses: readonly string[], problem: string | undefined): void {
    const before = host.address;
    if (problem === undefined) host.address = chooseAddress(addresses, before);
    if (problem !== undefined && host.problem === undefined) this.#reportProblem(host, problem);
    host.problem = problem;
    host.asked = true;
    const wait = problem === undefined || host.address !== undefined ? this.#refreshMs : this.#retryMs;
    const timer = setTimeout(() => {
      this.#queue.push(host);
      this.#pump();
    }, wait);
    timer.unref();
    this.#timers.set(host, timer);
    if (this.#onFirstAnswers !== undefined) {
      if (this.#allSettled()) this.#onFirstAnswers();
    } else if (host.address !== before) this.#changed();
  }

  #reportProblem(host: Host, problem: string): void {
    host.problem = problem;
    const consequence =
      host.address === undefined ? 'it is left out until it does' : `${host.address} stays until it does again`;
    this.#report(host.hostName, `does not resolve (${problem}); ${consequence}`);
  }
}

/** Whether the name has been asked for, or waited for long enough once. */
function isSettled(host: Host): boolean {
  return host.asked || host.problem !== undefined;
}

/**
 * One address of a name: the present one while it is listed, else IPv4 before IPv6 and then the smallest text, so that
 * all replicas choose the same.
 */
export function chooseAddress(addresses: readonly string[], current: string | undefined): string | undefined {
  if (current !== undefined && addresses.includes(current)) return current;
  const rank = (address: string) => `${isIP(address)} ${address}`;
  return addresses.reduce<string | undefined>(
    (best, address) => (best === undefined || rank(address) < rank(best) ? address : best),
    undefined,
  );
}

async function lookUp(hostName: string): Promise<string[]> {
  return (await lookup(hostName, { all: true })).map(({ address }) => address);
}
