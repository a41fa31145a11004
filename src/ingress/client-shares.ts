import { BlockList } from 'node:net';
import type { ConnectionRefusals } from './connection-refusals.js';

/** Reasons for which something of a client is refused because of what its address uses. */
export type AddressRefusal = 'streams' | 'resets' | 'connections' | 'windows' | 'unused';

/** Meaning of each reason, and its remedy, for the log. */
export const ADDRESS_REFUSALS: Readonly<Record<AddressRefusal, string>> = {
  streams:
    'requests of an address were refused, because its open ones left too few places to other addresses: raise ' +
    '--max-streams, or name the proxy in --trusted-proxies if it is one',
  resets:
    'connections of an address were closed, because it resets streams before their turn: see who connects (network ' +
    'policies), or name the proxy in --trusted-proxies if it is one',
  connections:
    'connections of an address gave way to one of another address, because it held more than half of them: raise ' +
    '--max-connections, or name the proxy in --trusted-proxies if it is one',
  unused:
    'connections of an address were ended, because it has more than 64 without a request so far: see who connects ' +
    '(network policies), or name the proxy in --trusted-proxies if it is one',
  windows:
    'requests of a connection were refused, because it gives no room for the answers to the earlier ones: see who ' +
    'connects (network policies), or raise initial_stream_window_size of the proxy if it is one',
};

export interface ClientSharesOptions {
  /** Open streams of the shard; infinite = no bound. */
  readonly streamsMax: number;
  /** Addresses and networks (CIDR) whose clients have no budget by address. */
  readonly trusted?: readonly string[];
  /** Counts and logs what is refused by address. Absent = nothing does. */
  readonly refusals?: ConnectionRefusals<AddressRefusal> | undefined;
}

/** Part of the streams that is free, from which on down shares by connection and by address hold. */
const FREE_PART = 1 / 8;
/** Open streams that an address may have for each one that is free ("Dynamic queue length thresholds", Choudhury and
 * Hahne, 1998): n addresses that take all they can leave 1 of 7 n + 1 places free. */
const STREAMS_FOR_A_FREE_ONE = 7;
/**
 * Part of the time that the addresses may use together and still go first: the rest is for the others. The time of an
 * address is that of a clock: on a busy core it is longer than what its work takes.
 */
const FIRST_PART = 0.8;
/** Milliseconds that an address may use at once and still goes first, and those that it can owe. */
const CREDIT_MS_MAX = 10;
const DEBT_MS_MAX = 50;
/**
 * Bound on the time that one piece of work counts, in milliseconds: a piece is 16 KB at most, and takes longer only
 * when the thread is stopped meanwhile (a compiler or another process has its core), which is not its address's doing.
 */
const PIECE_MS_MAX = 2;
/** Time after which an address that has used no time is not active any more. */
const WINDOW_MS = 1_000;
/** Streams of an address that are reset before their turn: at once, a second, and those it must have room for again
 * before it may connect. */
const RESETS_MAX = 20_000;
const RESETS_PER_SECOND = 1_000;
const RESETS_TO_CONNECT = 1_000;
/** Addresses without a connection that are remembered for their resets and their time. */
const ABSENT_MAX = 1_024;

/** What the connections of one address use together. */
class AddressUse {
  readonly address: string;
  readonly isTrusted: boolean;
  connections = 0;
  /** Connections with streams. */
  busy = 0;
  streams = 0;
  /** Milliseconds of the thread that it may use and still goes first; below 0 = it has used more. */
  creditMs = CREDIT_MS_MAX;
  creditAt: number;
  /** Window of time in which it was last active. */
  window = -1;
  /** Resets that it may send, and when they were last counted. */
  resets = RESETS_MAX;
  resetsAt: number;
  isShut = false;

  constructor(address: string, isTrusted: boolean, now: number) {
    this.address = address;
    this.isTrusted = isTrusted;
    this.creditAt = now;
    this.resetsAt = now;
  }
}

/**
 * What the clients of a shard use of it, by connection and by address. Shares hold where one is missing: while all
 * connections come from one address nothing is counted but connections and streams.
 */
export class ClientShares {
  readonly streamsMax: number;
  readonly refusals: ConnectionRefusals<AddressRefusal> | undefined;
  readonly #trusted: BlockList;
  readonly #uses = new Map<string, AddressUse>();
  /** Addresses without a connection, oldest first. */
  readonly #absent = new Set<AddressUse>();
  /** Addresses with connections, and those of them that are not trusted. */
  #present = 0;
  #untrusted = 0;
  #shut = 0;
  /** Present window, and the addresses that were active in it and in the one before. */
  #window = 0;
  #active = 0;
  #lastActive = 0;
  connections = 0;
  streams = 0;
  /** Whether there are connections of several addresses, and not all are trusted. */
  isShared = false;

  constructor({ streamsMax, trusted = [], refusals }: ClientSharesOptions) {
    this.streamsMax = streamsMax;
    this.refusals = refusals;
    this.#trusted = blockList(trusted);
  }

  /** Whether several addresses have used time of late. */
  get isContended(): boolean {
    return this.isShared && Math.max(this.#active, this.#lastActive) > 1;
  }

  /**
   * Takes a connection that has sent its first bytes.
   * @param address of its client; undefined = a Unix domain socket
   * @param isVerified whether the client has proved who it is
   */
  join(address: string | undefined, isVerified: boolean, now: number): ConnectionShare {
    const use = this.#use(address, isVerified || address === undefined, now);
    this.#absent.delete(use);
    this.connections++;
    if (use.connections++ === 0) this.#count(use, 1);
    return new ConnectionShare(this, use);
  }

  /** Whether an address may not connect at present. */
  refuses(address: string | undefined, now: number): boolean {
    if (this.#shut === 0 || address === undefined) return false;
    const use = this.#uses.get(networkOf(address));
    if (use === undefined || !use.isShut) return false;
    const others = use.connections === 0 ? this.#present : this.#present - 1;
    if (others === 0) return false;
    this.#refillResets(use, now);
    if (use.resets < RESETS_TO_CONNECT) {
      this.refusals?.note('resets', { address });
      return true;
    }
    use.isShut = false;
    this.#shut--;
    return false;
  }

  /** For `ConnectionShare`: takes the end of a connection. */
  left(use: AddressUse): void {
    this.connections--;
    if (--use.connections > 0) return;
    this.#count(use, -1);
    this.#absent.add(use);
    const [oldest] = this.#absent;
    if (this.#absent.size <= ABSENT_MAX || oldest === undefined) return;
    this.#absent.delete(oldest);
    this.#uses.delete(oldest.address);
    if (oldest.isShut) this.#shut--;
  }

  /** For `ConnectionShare`: gives the address the time that has passed. */
  refill(use: AddressUse, now: number): void {
    const window = Math.trunc(now / WINDOW_MS);
    if (window !== this.#window) {
      this.#lastActive = window === this.#window + 1 ? this.#active : 0;
      this.#active = 0;
      this.#window = window;
    }
    if (use.window !== window) {
      use.window = window;
      this.#active++;
    }
    const part = FIRST_PART / Math.max(2, this.#active, this.#lastActive);
    use.creditMs = Math.min(CREDIT_MS_MAX, use.creditMs + (now - use.creditAt) * part);
    use.creditAt = now;
  }

  /** For `ConnectionShare`: counts a reset. @returns false when it is one too many */
  takeReset(use: AddressUse, now: number): boolean {
    if (use.resets < 1) this.#refillResets(use, now);
    if (use.resets >= 1) {
      use.resets--;
      return true;
    }
    if (!use.isShut) this.#shut++;
    use.isShut = true;
    this.refusals?.note('resets', { address: use.address });
    return false;
  }

  #refillResets(use: AddressUse, now: number): void {
    use.resets = Math.min(RESETS_MAX, use.resets + ((now - use.resetsAt) / 1_000) * RESETS_PER_SECOND);
    use.resetsAt = now;
  }

  #use(address: string | undefined, isVerified: boolean, now: number): AddressUse {
    // Clients that have proved who they are have no budget that others of their address could use up.
    const key = isVerified ? `trusted ${address}` : networkOf(address!);
    let use = this.#uses.get(key);
    if (use === undefined) {
      use = new AddressUse(key, isVerified || this.#trusts(address!), now);
      this.#uses.set(key, use);
    }
    return use;
  }

  #trusts(address: string): boolean {
    const plain = plainAddress(address);
    return this.#trusted.check(plain, isIpv6(plain) ? 'ipv6' : 'ipv4');
  }

  #count(use: AddressUse, change: number): void {
    this.#present += change;
    if (!use.isTrusted) this.#untrusted += change;
    this.isShared = this.#present > 1 && this.#untrusted > 0;
  }
}

/** Part of one connection in what its shard has, and in what its address has of that. */
export class ConnectionShare {
  readonly #shares: ClientShares;
  readonly #use: AddressUse;
  #streams = 0;

  constructor(shares: ClientShares, use: AddressUse) {
    this.#shares = shares;
    this.#use = use;
  }

  /** Address of the client, or the network of it that counts as one. */
  get address(): string {
    return this.#use.address;
  }

  get isTrusted(): boolean {
    return this.#use.isTrusted;
  }

  /** Connections of the address. */
  get connections(): number {
    return this.#use.connections;
  }

  /** Counts a stream that has been opened. */
  opened(): void {
    const use = this.#use;
    this.#shares.streams++;
    use.streams++;
    if (this.#streams++ === 0) use.busy++;
  }

  /** Counts streams that have ended. */
  ended(count = 1): void {
    const use = this.#use;
    if (count === 0) return;
    this.#shares.streams -= count;
    use.streams -= count;
    this.#streams -= count;
    if (this.#streams === 0) use.busy--;
  }

  /** Takes the end of the connection. Called once. */
  leave(): void {
    this.ended(this.#streams);
    this.#shares.left(this.#use);
  }

  /**
   * Whether a further stream is refused. While there are other connections, one has at most half of the streams. Near
   * their bound it has no more than the connections of its address have on average, and an address leaves room for
   * others.
   */
  get isCrowded(): boolean {
    const { streamsMax, streams, connections, isShared, refusals } = this.#shares;
    if (connections < 2) return false;
    if (this.#streams >= streamsMax / 2) return true;
    const free = streamsMax - streams;
    if (free > streamsMax * FREE_PART) return false;
    const use = this.#use;
    if (this.#streams >= streamsMax / Math.max(2, use.busy)) return true;
    if (!isShared || use.isTrusted || use.streams < STREAMS_FOR_A_FREE_ONE * free) return false;
    refusals?.note('streams', { address: use.address });
    return true;
  }

  /** Counts a stream that is refused because the answers to earlier ones have no room at the client. */
  noteShut(): void {
    this.#shares.refusals?.note('windows', { address: this.#use.address });
  }

  // Time of the thread.

  /** Takes the begin of a turn at `now`. @returns whether its time counts */
  begin(now: number): boolean {
    if (!this.#shares.isShared) return false;
    this.#shares.refill(this.#use, now);
    return true;
  }

  /** Counts the time of one piece of work. */
  spend(ms: number): void {
    this.#use.creditMs = Math.max(-DEBT_MS_MAX, this.#use.creditMs - Math.min(ms, PIECE_MS_MAX));
  }

  /** Whether its requests go before those of others, since its address uses less than its part of the time. */
  get goesFirst(): boolean {
    return this.#shares.isShared && this.#use.creditMs > 0;
  }

  /** Parts into which the turn of a connection is divided, so that its address has one turn. */
  get turnParts(): number {
    return this.#shares.isShared && this.#use.creditMs <= 0 ? Math.max(1, this.#use.busy) : 1;
  }

  /** Counts a stream that is reset before its turn. @returns false when it is one too many */
  takeReset(now: number): boolean {
    return !this.#shares.isShared || this.#use.isTrusted || this.#shares.takeReset(this.#use, now);
  }
}

/** A connection that is alone. */
export function unshared(): ConnectionShare {
  return new ClientShares({ streamsMax: Number.POSITIVE_INFINITY }).join(undefined, true, 0);
}

function blockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address, bits] = network.split('/') as [string, string?];
    const family = isIpv6(address) ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/**
 * Whether an address that is known to be one, of a socket or of a checked flag, is of IPv6. `isIPv6` of Node.js
 * compiles a pattern of all of them at its first use (10 ms of CPU time of each shard).
 */
function isIpv6(address: string): boolean {
  return address.includes(':');
}

/** An IPv4 address as such, also where the socket is one of IPv6. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}

/** What counts as one address: an IPv4 address, or a network of IPv6 with 64 bits, which is one client's as a rule. */
export function networkOf(address: string): string {
  const plain = plainAddress(address);
  if (!isIpv6(plain)) return plain;
  const [head, tail] = plain.replace(/%.*$/, '').split('::') as [string, string?];
  const groups = head === '' ? [] : head.split(':');
  const rest = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? [] : Array<string>(Math.max(0, 8 - groups.length - rest.length)).fill('0');
  const all = [...groups, ...zeros, ...rest].slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16));
  return `${all.join(':')}::/64`;
}
