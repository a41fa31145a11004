import type { MetricsExposition } from '../telemetry/exposition.js';

/** Use of memory and time by a shard thread. */
export interface ShardUse {
  /** Open streams of its connections. */
  readonly streams: number;
  /** TLS connections whose handshake has not ended. */
  readonly handshakes: number;
  /** Connections that were closed before they were served, or while they were not in use, by the reason. */
  readonly refusals: Readonly<Record<string, number>>;
  /** Requests and connections that were refused because of what their address uses, by the reason. */
  readonly addressRefusals: Readonly<Record<string, number>>;
  /** Slots of memory that bodies hold. */
  readonly bodySlots: number;
  /** Bytes of unfinished messages, bodies and waiting replies. */
  readonly heldBytes: number;
  /** Time since its start in which the thread did not wait for work. */
  readonly busySeconds: number;
  /** Time in which garbage collections held the thread; part of `busySeconds`. */
  readonly collectionSeconds: number;
}

/** Registers the use of each shard. @param read by shard, as the shards have told within the last second */
export function addShardMetrics(exposition: MetricsExposition, read: () => ReadonlyMap<number, ShardUse>): void {
  const labels = ['shard'];
  const each = (figure: (use: ShardUse) => number) => () =>
    [...read()].map(([shard, use]) => ({ labels: { shard: String(shard) }, value: figure(use) }));
  exposition.addGauge({
    name: 'pointsman_shard_streams',
    help: 'Open streams of the connections of a shard.',
    labels,
    read: each(({ streams }) => streams),
  });
  exposition.addGauge({
    name: 'pointsman_shard_tls_handshakes',
    help: 'TLS connections of a shard whose handshake has not ended; at most 1024, and 10 s each.',
    labels,
    read: each(({ handshakes }) => handshakes),
  });
  exposition.addCounter({
    name: 'pointsman_shard_refused_connections_total',
    help: 'Connections that the picker closed before they were served, or while they were not in use, by the reason.',
    labels: ['shard', 'reason'],
    read: () => [...read()].flatMap(([shard, { refusals }]) => refused(String(shard), refusals)),
  });
  exposition.addCounter({
    name: 'pointsman_shard_address_refusals_total',
    help: 'Requests (streams, windows) and connections (resets, connections, unused) refused by address.',
    labels: ['shard', 'reason'],
    read: () => [...read()].flatMap(([shard, { addressRefusals }]) => refused(String(shard), addressRefusals)),
  });
  exposition.addGauge({
    name: 'pointsman_shard_body_slots',
    help: 'Slots of memory that the bodies of open streams hold.',
    labels,
    read: each(({ bodySlots }) => bodySlots),
  });
  exposition.addGauge({
    name: 'pointsman_shard_held_bytes',
    help: 'Bytes of unfinished messages, bodies and replies that wait for the proxy (--max-buffered-bytes).',
    labels,
    read: each(({ heldBytes }) => heldBytes),
  });
  exposition.addCounter({
    name: 'pointsman_shard_busy_seconds_total',
    help: 'Time in which the thread of a shard did not wait for work.',
    labels,
    read: each(({ busySeconds }) => busySeconds),
  });
  exposition.addCounter({
    name: 'pointsman_shard_collection_seconds_total',
    help: 'Time in which garbage collections held the thread of a shard; part of pointsman_shard_busy_seconds_total.',
    labels,
    read: each(({ collectionSeconds }) => collectionSeconds),
  });
}

function refused(shard: string, refusals: ShardUse['refusals']) {
  return Object.entries(refusals).map(([reason, value]) => ({ labels: { shard, reason }, value }));
}
