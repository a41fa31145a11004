import type { Flag } from './flag.js';
import { SERVE_FLAGS } from './flag-table.js';

type FlagName = keyof typeof SERVE_FLAGS;

/** A flag of llm-d-router, and its effect here. */
export interface RouterFlag {
  /** Release from which on llm-d-router has it. */
  readonly since: RouterRelease;
  /** What it does here; as in llm-d-router, without effect, or refused when set. */
  readonly effect: string;
}

/** Releases of llm-d-router that flags are known of: that of August 2026, and what is merged or proposed after it. */
export type RouterRelease = 'August 2026' | 'next';

const SAME = 'as there';

/**
 * Flags of llm-d-router that act here, by name: `SAME`, or how they differ. Flags without effect and refused flags are
 * distinguished by their group in the table of flags.
 */
const ACTING: Readonly<Partial<Record<FlagName, readonly [RouterRelease, string]>>> = {
  'allow-experimental-plugins': ['August 2026', SAME],
  'cert-path': ['August 2026', SAME],
  'config-file': ['August 2026', 'as there, and followed when it changes'],
  'config-text': ['August 2026', SAME],
  'disable-endpoint-subset-filter': ['August 2026', SAME],
  'drain-timeout': ['August 2026', 'as there; within it new requests are served for `--lame-duck`'],
  'emit-endpoint-scores': ['August 2026', SAME],
  'enable-cert-reload': ['August 2026', SAME],
  'enable-grpc-stream-metrics': ['August 2026', SAME],
  'endpoint-selector': ['August 2026', SAME],
  'endpoint-target-ports': ['August 2026', SAME],
  'fairness-id-metric-label-limit': ['next', 'as there; without it 24 combinations of names are shown, not 1000 ids'],
  'feature-gates': ['next', SAME],
  'grpc-health-port': ['August 2026', SAME],
  'grpc-max-recv-msg-size': ['August 2026', SAME],
  'grpc-max-send-msg-size': ['August 2026', SAME],
  'grpc-port': ['August 2026', SAME],
  'ha-enable-leader-election': ['August 2026', 'as there; without an API server the leader stays leader'],
  'metrics-cert-dir': ['August 2026', SAME],
  'metrics-client-ca-file': ['August 2026', SAME],
  'metrics-endpoint-auth': ['August 2026', SAME],
  'metrics-port': ['August 2026', SAME],
  'metrics-staleness-threshold': ['August 2026', 'as there, and three intervals of scrapes at least'],
  'pool-group': ['August 2026', 'as there, and inference.networking.x-k8s.io'],
  'pool-name': ['August 2026', SAME],
  'pool-namespace': ['August 2026', SAME],
  'refresh-metrics-interval': ['August 2026', SAME],
  'secure-serving': ['August 2026', SAME],
  'tls-cipher-suites': ['August 2026', SAME],
  'tls-min-version': ['August 2026', SAME],
  tracing: ['August 2026', 'as there, once a variable of OpenTelemetry names an exporter'],
  v: ['August 2026', SAME],
  'zap-encoder': ['August 2026', SAME],
  'zap-log-level': ['August 2026', SAME],
};

/** Flags without effect, and refused ones, that llm-d-router has had only since its next release. */
const LATER: readonly FlagName[] = ['plugin-state-staleness-threshold', 'watch-config-file'];

/** Metric names of engines, which llm-d-router refuses too. */
const REFUSED: readonly FlagName[] = [
  'total-queued-requests-metric',
  'total-running-requests-metric',
  'kv-cache-usage-percentage-metric',
  'lora-info-metric',
  'cache-info-metric',
];

/**
 * Every flag that llm-d-router is known to have, by name in alphabetical order. A flag that is not among them ends the
 * start, as a flag of Pointsman that is misspelt does.
 */
export const ROUTER_FLAGS: ReadonlyMap<string, RouterFlag> = new Map(
  [
    ...Object.entries(ACTING).map(([name, [since, effect]]) => [name, { since, effect }] as const),
    ...inertFlags(),
    ...REFUSED.map((name) => [name, { since: 'August 2026', effect: 'refused when it is set, as there' }] as const),
  ].sort(([a], [b]) => (a < b ? -1 : 1)),
);

function inertFlags(): readonly (readonly [string, RouterFlag])[] {
  return (Object.entries(SERVE_FLAGS) as [FlagName, Flag<unknown>][]).flatMap(([name, { inert }]) => {
    if (inert === undefined) return [];
    const since: RouterRelease = LATER.includes(name) ? 'next' : 'August 2026';
    return [[name, { since, effect: `none: ${inert.why}` }] as const];
  });
}
