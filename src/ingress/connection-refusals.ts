import { PacedReport } from '../runtime/paced-report.js';

/** Reasons for which a connection is closed by this side before it is served, or while it is not in use. */
export const REFUSALS = [
  'plain_text',
  'handshake_timeout',
  'handshake_displaced',
  'handshake_failed',
  'client_certificate',
  'connections',
  'idle',
] as const;
export type Refusal = (typeof REFUSALS)[number];

export type RefusalCounts<Reason extends string = Refusal> = Readonly<Record<Reason, number>>;

/** Meaning of each reason, and its remedy, for the log. */
export type RefusalTexts<Reason extends string = Refusal> = Readonly<Record<Reason, string>>;

/** What is known of a connection that was refused, or of which something was. */
export interface RefusedConnection {
  /** Address of the client; undefined = it is gone already. */
  readonly address: string | undefined;
  /** Error of the handshake. */
  readonly error?: string | undefined;
}

const COMMON = {
  handshake_timeout: 'no TLS handshake within 10 s of the connection: see who connects (network policies, probes)',
  handshake_displaced:
    'unfinished TLS handshakes gave way to newer ones, because as many as there may be were open: see who connects ' +
    '(network policies)',
  idle:
    'connections that were not in use gave way to new ones, because as many as there may be were open: see who holds ' +
    'them (network policies), or raise --max-connections',
};

export const EXT_PROC_REFUSALS: RefusalTexts = {
  ...COMMON,
  plain_text:
    'plain text on the TLS port of ext_proc, so the proxy fails its requests: let the proxy speak TLS (Istio: ' +
    'chart value ' +
    'provider.name=istio, or a DestinationRule with tls mode SIMPLE), or set --secure-serving=false (chart: ' +
    'router.epp.flags.secure-serving=false)',
  handshake_failed:
    'TLS handshakes failed: the proxy takes neither the certificate (--cert-path) nor the versions and suites ' +
    '(--tls-min-version, ' +
    '--tls-cipher-suites), or is no TLS client',
  client_certificate:
    'certificates of clients were refused: the proxy needs one of the authorities in --client-ca-file that is ' +
    'valid now',
  connections: 'connections were closed, because as many as there may be are open: raise --max-connections',
};

export const METRICS_REFUSALS: RefusalTexts = {
  ...COMMON,
  plain_text: 'plain text on the TLS port of the metrics: ask it with https, or leave out --metrics-cert-dir',
  handshake_failed:
    'TLS handshakes of the metrics port failed: the client does not take the certificate in --metrics-cert-dir',
  client_certificate:
    'certificates of clients were refused at the metrics port: they need one of the authorities in ' +
    '--metrics-client-ca-file',
  connections: 'connections to the metrics port were closed, because as many as there may be are open',
};

/** Connections that were refused: each is counted, and each reason has one line a minute in the log. */
export class ConnectionRefusals<Reason extends string = Refusal> {
  readonly #counts: Record<Reason, number>;
  readonly #reports: ReadonlyMap<Reason, PacedReport<RefusedConnection>>;

  /** @param warn takes a line for the log */
  constructor(texts: RefusalTexts<Reason>, warn: (text: string, details: object) => void) {
    const reasons = Object.keys(texts) as Reason[];
    this.#counts = Object.fromEntries(reasons.map((reason) => [reason, 0])) as Record<Reason, number>;
    this.#reports = new Map(
      reasons.map((reason) => [
        reason,
        // The field is called `peer` in the log since the first version.
        new PacedReport<RefusedConnection>(({ address, ...rest }, count) =>
          warn(texts[reason], { peer: address, ...rest, count }),
        ),
      ]),
    );
  }

  get counts(): RefusalCounts<Reason> {
    return this.#counts;
  }

  note(reason: Reason, details: RefusedConnection): void {
    this.#counts[reason]++;
    this.#reports.get(reason)!.note(details);
  }
}
