/** Connection of a full port, as the choice of one that gives way sees it. */
export interface PlacedConnection {
  /** Address of the client; undefined = a Unix domain socket. */
  readonly address: string | undefined;
  readonly streamCount: number;
  /** Streams that the client has opened so far. */
  readonly opened: number;
  /** Time at which anything last came. */
  readonly heardAt: number;
}

/**
 * The connection that gives its place to a new one: of those without a stream one of the address that has most of them,
 * and of these one that has never had a stream, or the one that has been silent for longest. Undefined = all are in use.
 */
export function idlest<Connection extends PlacedConnection>(connections: Iterable<Connection>): Connection | undefined {
  const byAddress = new Map<string | undefined, { count: number; idlest: Connection }>();
  for (const connection of connections) {
    if (connection.streamCount > 0) continue;
    const found = byAddress.get(connection.address);
    if (found === undefined) byAddress.set(connection.address, { count: 1, idlest: connection });
    else {
      found.count++;
      if (isIdler(connection, found.idlest)) found.idlest = connection;
    }
  }
  let most: { count: number; idlest: Connection } | undefined;
  for (const each of byAddress.values()) if (most === undefined || each.count > most.count) most = each;
  return most?.idlest;
}

function isIdler(one: PlacedConnection, other: PlacedConnection): boolean {
  const isNew = one.opened === 0;
  if (isNew !== (other.opened === 0)) return isNew;
  return one.heardAt < other.heardAt;
}
