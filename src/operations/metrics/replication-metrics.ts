import type { MetricsExposition } from '../telemetry/exposition.js';

/** Values of the replication metrics. */
export interface ReplicationFigures {
  readonly connected: boolean;
  readonly peers: readonly {
    readonly replica: string;
    readonly live: boolean;
    readonly silentMs: number;
    readonly lagMs: number;
  }[];
  readonly counts: {
    readonly sentMessages: number;
    readonly sentBytes: number;
    readonly receivedMessages: number;
    readonly receivedBytes: number;
    /** By the reason. */
    readonly badMessages: Readonly<Record<string, number>>;
    readonly gaps: number;
    readonly lostPlacements: number;
    readonly untoldPlacements: number;
    readonly lostTurns: number;
    readonly snapshotsSent: number;
    readonly snapshotsTaken: number;
    readonly sessionsSent: number;
    readonly sessionsTaken: number;
    readonly forgottenTenants: number;
    readonly forgottenLoads: number;
  };
  readonly intervalMs: number;
  readonly leastBlocks: number;
  readonly cpuShare: number;
}

type Counts = Omit<ReplicationFigures['counts'], 'badMessages'>;

/** Present value of a counter of replicas that the picker follows for the last minute; undefined = it is none. */
export function followedCount(name: string, counts: ReplicationFigures['counts'] | undefined): number | undefined {
  if (name === 'pointsman_replication_forgotten_tenants_total') return counts?.forgottenTenants ?? 0;
  if (name === 'pointsman_replication_forgotten_loads_total') return counts?.forgottenLoads ?? 0;
  if (name !== 'pointsman_replication_bad_messages_total') return undefined;
  return Object.values(counts?.badMessages ?? {}).reduce((sum, count) => sum + count, 0);
}

/** Registers the metrics of replicas that share placements and load. */
export function addReplicationMetrics(exposition: MetricsExposition, read: () => ReplicationFigures): void {
  addGauges(exposition, read);
  const counter = (name: string, help: string, pick: (counts: Counts) => number) =>
    exposition.addCounter({
      name: `pointsman_replication_${name}_total`,
      help,
      read: () => [{ labels: {}, value: pick(read().counts) }],
    });
  const bothWays = (name: string, help: string, sent: keyof Counts, received: keyof Counts) =>
    exposition.addCounter({
      name: `pointsman_replication_${name}_total`,
      help,
      labels: ['direction'],
      read: () => [
        { labels: { direction: 'sent' }, value: read().counts[sent] },
        { labels: { direction: 'received' }, value: read().counts[received] },
      ],
    });
  bothWays('messages', 'Messages to and from other replicas.', 'sentMessages', 'receivedMessages');
  bothWays('bytes', 'Bytes of messages to and from other replicas.', 'sentBytes', 'receivedBytes');
  bothWays(
    'snapshots',
    'Prefix indexes sent to and taken over from other replicas.',
    'snapshotsSent',
    'snapshotsTaken',
  );
  bothWays(
    'sessions',
    'Sessions told to other replicas as they joined, and told by one of them as this one did.',
    'sessionsSent',
    'sessionsTaken',
  );
  counter('gaps', 'Gaps in the updates of other replicas.', ({ gaps }) => gaps);
  exposition.addCounter({
    name: 'pointsman_replication_bad_messages_total',
    help: 'Messages of other replicas that were refused, by the reason.',
    labels: ['reason'],
    read: () => Object.entries(read().counts.badMessages).map(([reason, value]) => ({ labels: { reason }, value })),
  });
  counter(
    'lost_placements',
    'Placed prompts that were not sent to other replicas: the ring of a shard was full.',
    ({ lostPlacements }) => lostPlacements,
  );
  counter(
    'untold_placements',
    'Placed prompts that were left out so that the exchange stays within --replication-cpu-percent.',
    ({ untoldPlacements }) => untoldPlacements,
  );
  counter(
    'lost_turns',
    'Turns of sessions that were not sent to other replicas: the ring was full.',
    ({ lostTurns }) => lostTurns,
  );
  counter(
    'forgotten_tenants',
    'Tenants of other replicas that gave way to others at the bound of 100,000: some of their tokens are not counted.',
    ({ forgottenTenants }) => forgottenTenants,
  );
  counter(
    'forgotten_loads',
    'Loads of other replicas on an endpoint that gave way at the bound of 262,144: they do not count.',
    ({ forgottenLoads }) => forgottenLoads,
  );
}

function addGauges(exposition: MetricsExposition, read: () => ReplicationFigures): void {
  exposition.addGauge({
    name: 'pointsman_replication_connected',
    help: '1 = connected to NATS.',
    read: () => [{ labels: {}, value: Number(read().connected) }],
  });
  exposition.addGauge({
    name: 'pointsman_replication_peers',
    help: 'Other replicas that were heard within the last 0.7 s.',
    read: () => [{ labels: {}, value: read().peers.filter(({ live }) => live).length }],
  });
  exposition.addGauge({
    name: 'pointsman_replication_interval_seconds',
    help: 'Time between two updates for other replicas; longer while the exchange takes its share of a core.',
    read: () => [{ labels: {}, value: read().intervalMs / 1000 }],
  });
  exposition.addGauge({
    name: 'pointsman_replication_least_blocks',
    help: 'New blocks from which on every placed prompt is told; shorter ones by lot, in proportion. 0 = all are told.',
    read: () => [{ labels: {}, value: read().leastBlocks }],
  });
  exposition.addGauge({
    name: 'pointsman_replication_cpu_share',
    help: 'Share of one core that the exchange with other replicas takes.',
    read: () => [{ labels: {}, value: read().cpuShare }],
  });
  const ofPeer = (name: string, help: string, pick: (peer: ReplicationFigures['peers'][number]) => number) =>
    exposition.addGauge({
      name: `pointsman_replication_peer_${name}_seconds`,
      help,
      labels: ['replica'],
      read: () => read().peers.map((peer) => ({ labels: { replica: peer.replica }, value: pick(peer) / 1000 })),
    });
  ofPeer('lag', 'Time that the last update of a replica was under way, by both clocks.', ({ lagMs }) => lagMs);
  ofPeer('silence', 'Time since the last update of a replica.', ({ silentMs }) => Math.max(0, silentMs));
}
