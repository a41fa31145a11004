import type { MetricsExposition } from '../telemetry/exposition.js';

interface Kind {
  readonly name: string;
  readonly group: string;
}

/** The objects of one kind that a pool follows. */
interface FollowedKind {
  readonly kind: Kind;
  readonly watch: {
    readonly state: string;
    readonly synced: boolean;
    readonly silentMs: number;
    readonly rejected: number;
    readonly size: number;
  };
}

/** Counts of the watches of one kind, whichever pools follow it. */
interface WatchedKind {
  readonly kind: Kind;
  readonly counts: {
    readonly relists: ReadonlyMap<string, number>;
    readonly reconnects: ReadonlyMap<string, number>;
    readonly running: number;
  };
}

export interface ClusterMetricsSources {
  readonly requests: RequestCounts;
  readonly watches: { readonly kinds: readonly WatchedKind[] };
}

export interface KubernetesMetricsSources {
  readonly discovery: { readonly kinds: readonly FollowedKind[] };
  /** Undefined = reading is not restricted. */
  readonly reviews: () => Reviews | undefined;
  /** Undefined = there is no election. */
  readonly leader: () => boolean | undefined;
}

/** Answers about readers of the metrics, and the remembered ones. */
interface Reviews {
  readonly answers: Readonly<Record<string, number>>;
  readonly remembered: { readonly rights: number; readonly oldestMs: number };
}

/** Bound on the series of one counter; others are not counted. Kinds and status codes are few. */
const SERIES_MAX = 200;

/** Answers of the API server by resource and status. */
export class RequestCounts {
  readonly #counts = new Map<string, { readonly resource: string; readonly code: string; value: number }>();

  /** @param status 0 = no answer */
  add(path: string, status: number): void {
    const resource = resourceOf(path);
    const code = status === 0 ? 'none' : String(status);
    const key = `${resource} ${code}`;
    const before = this.#counts.get(key);
    if (before !== undefined) before.value++;
    else if (this.#counts.size < SERIES_MAX) this.#counts.set(key, { resource, code, value: 1 });
  }

  get samples() {
    return [...this.#counts.values()].map(({ resource, code, value }) => ({ labels: { resource, code }, value }));
  }
}

/** The plural in a path of the API; the group where it is asked for as a whole. */
function resourceOf(path: string): string {
  const [, root, ...segments] = path.split('?', 1)[0]!.split('/');
  const [group, , next, , plural] = root === 'api' ? ['', ...segments] : segments;
  if (next === undefined) return group ?? '';
  return next === 'namespaces' ? (plural ?? next) : next;
}

/** Registers what a pool follows in the cluster. */
export function addKubernetesMetrics(exposition: MetricsExposition, sources: KubernetesMetricsSources): void {
  const { discovery, reviews, leader } = sources;
  const gauge = (name: string, help: string, value: (one: FollowedKind['watch']) => number) =>
    exposition.addGauge({
      name: `pointsman_kubernetes_${name}`,
      help,
      labels: ['kind', 'group'],
      read: () =>
        discovery.kinds.map(({ kind, watch }) => ({
          labels: { kind: kind.name, group: kind.group },
          value: value(watch),
        })),
    });
  gauge('synced', '1 when there was a complete first state of the kind.', ({ synced }) => Number(synced));
  gauge('kind_served', '1 when the cluster has the kind and it may be read.', ({ state }) =>
    Number(state !== 'absent' && state !== 'forbidden'),
  );
  gauge(
    'last_heard_seconds',
    'Time since the API server was heard; up to 60 s is usual.',
    ({ silentMs }) => silentMs / 1000,
  );
  gauge('rejected_objects', 'Objects that are left out because they cannot be read.', ({ rejected }) => rejected);
  gauge('objects', 'Objects that are kept.', ({ size }) => size);
  exposition.addCounter({
    name: 'pointsman_metrics_access_total',
    help: 'Readers of the metrics port by what they were answered; stale = allowed by an expired review.',
    labels: ['answer'],
    read: () => Object.entries(reviews()?.answers ?? {}).map(([answer, value]) => ({ labels: { answer }, value })),
  });
  const remembered = (name: string, help: string, pick: (kept: Reviews['remembered']) => number) =>
    exposition.addGauge({
      name: `pointsman_metrics_access_${name}`,
      help,
      read: () => {
        const kept = reviews()?.remembered;
        return kept === undefined ? [] : [{ labels: {}, value: pick(kept) }];
      },
    });
  remembered('remembered', 'Rights of readers that are remembered, expired ones included.', ({ rights }) => rights);
  remembered(
    'age_seconds',
    'Time since the oldest remembered right was asked for; a right is used for 300 s, for 900 s while the API ' +
      'server is away.',
    ({ oldestMs }) => oldestMs / 1_000,
  );
  exposition.addGauge({
    name: 'pointsman_kubernetes_leader',
    help: '1 when this replica leads; absent without an election.',
    read: () => {
      const leads = leader();
      return leads === undefined ? [] : [{ labels: {}, value: Number(leads) }];
    },
  });
}

/** Registers the requests and watches of the process at its API server. */
export function addClusterMetrics(exposition: MetricsExposition, { requests, watches }: ClusterMetricsSources): void {
  exposition.addGauge({
    name: 'pointsman_kubernetes_watches',
    help: 'Watches of the kind; with --pools one for each namespace, which its pools share.',
    labels: ['kind', 'group'],
    read: () =>
      watches.kinds.map(({ kind, counts }) => ({
        labels: { kind: kind.name, group: kind.group },
        value: counts.running,
      })),
  });
  const counter = (name: string, help: string, pick: 'relists' | 'reconnects') =>
    exposition.addCounter({
      name: `pointsman_kubernetes_${name}_total`,
      help,
      labels: ['kind', 'group', 'reason'],
      read: () =>
        watches.kinds.flatMap(({ kind, counts }) =>
          [...counts[pick]].map(([reason, value]) => ({
            labels: { kind: kind.name, group: kind.group, reason },
            value,
          })),
        ),
    });
  counter('relists', 'First states that were asked for, by reason.', 'relists');
  counter('reconnects', 'Watches that broke off, by reason.', 'reconnects');
  exposition.addCounter({
    name: 'pointsman_kubernetes_requests_total',
    help: 'Answers of the API server by resource and status.',
    labels: ['resource', 'code'],
    read: () => requests.samples,
  });
}
