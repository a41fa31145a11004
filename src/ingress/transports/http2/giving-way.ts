import type { ConnectionShare } from '../../client-shares.js';
import { UNUSED_MAX, UNUSED_MS } from './limits.js';

/** Connection of a full port, as the choice of one that gives way sees it. */
export interface PlacedConnection {
  readonly share: Pick<ConnectionShare, 'address' | 'isTrusted' | 'connections'>;
  readonly streamCount: number;
  /** Streams that the client has opened so far. */
  readonly opened: number;
  /** Times at which the first bytes came, and at which anything last came. */
  readonly openedAt: number;
  readonly heardAt: number;
}

/** Place of a client whose first bytes have come, and whose connection waits for its turn to begin. */
export class WaitingConnection implements PlacedConnection {
  readonly share: ConnectionShare;
  readonly streamCount = 0;
  readonly opened = 0;
  readonly openedAt: number;
  /** Ends it. */
  readonly destroy: () => void;

  /** @param openedAt time at which the first bytes came */
  constructor(share: ConnectionShare, openedAt: number, destroy: () => void) {
    this.share = share;
    this.openedAt = openedAt;
    this.destroy = destroy;
  }

  get heardAt(): number {
    return this.openedAt;
  }
}

/**
 * The connection that gives its place to a new one: of those without a stream one of the address that has most of them,
 * and of these one that has never had a stream, or the one that has been silent for longest. Trusted addresses give way
 * last. Undefined = all are in use.
 */
export function idlest<Connection extends PlacedConnection>(connections: Iterable<Connection>): Connection | undefined {
  const byAddress = new Map<string, { count: number; idlest: Connection }>();
  for (const connection of connections) {
    if (connection.streamCount > 0) continue;
    const { address, isTrusted } = connection.share;
    const found = byAddress.get(address);
    if (found === undefined) byAddress.set(address, { count: isTrusted ? 0 : 1, idlest: connection });
    else {
      if (!isTrusted) found.count++;
      if (isIdler(connection, found.idlest)) found.idlest = connection;
    }
  }
  let most: { count: number; idlest: Connection } | undefined;
  for (const each of byAddress.values()) if (most === undefined || each.count > most.count) most = each;
  return most?.idlest;
}

/**
 * Of an address without trust that has more than half of the connections, the one with the fewest streams; undefined =
 * there is none.
 */
export function ofCrowdingAddress<Connection extends PlacedConnection>(
  connections: ReadonlySet<Connection>,
): Connection | undefined {
  let fewest: Connection | undefined;
  for (const connection of connections) {
    const { isTrusted, connections: count } = connection.share;
    if (isTrusted || count <= connections.size / 2) continue;
    if (fewest === undefined || connection.streamCount < fewest.streamCount) fewest = connection;
  }
  return fewest;
}

/**
 * Connections that have had no stream for a second, beyond as many as an address without trust may have: a proxy opens
 * one for a request. Those of an address that came first stay.
 */
export function unusedBeyondBound<Connection extends PlacedConnection>(
  connections: Iterable<Connection>,
  now: number,
): Connection[] {
  const counts = new Map<string, number>();
  const beyond: Connection[] = [];
  for (const connection of connections) {
    const { address, isTrusted } = connection.share;
    if (isTrusted || connection.opened > 0 || now - connection.openedAt < UNUSED_MS) continue;
    const count = (counts.get(address) ?? 0) + 1;
    counts.set(address, count);
    if (count > UNUSED_MAX) beyond.push(connection);
  }
  return beyond;
}

function isIdler(one: PlacedConnection, other: PlacedConnection): boolean {
  const isNew = one.opened === 0;
  if (isNew !== (other.opened === 0)) return isNew;
  return one.heardAt < other.heardAt;
}
