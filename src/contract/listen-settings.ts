/** Implementation that carries ext_proc. `grpc-js` is the reference that `lean` is compared with. */
export type TransportName = 'lean' | 'grpc-js';

/** A Unix domain socket, for a proxy beside the picker. */
export interface SocketFile {
  readonly path: string;
  /** Permissions, such as 0o660. */
  readonly mode: number;
  /** Absent = the process's own. */
  readonly owner?: { readonly uid: number; readonly gid: number } | undefined;
}

/** A private key and its certificate chain, PEM. */
export interface KeyPair {
  readonly key: string;
  readonly cert: string;
}

export interface TlsMaterial extends KeyPair {
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined;
  readonly ciphers?: string | undefined;
  /** Clients must show a certificate of these authorities (PEM); absent = clients show none. */
  readonly clientCa?: string | undefined;
}

/** Addresses that the ports are opened on. */
export interface ListenAddresses {
  readonly grpc: string;
  readonly health: string;
  readonly metrics: string;
}

/** How a picker is reached. A pool beside the process's own has no socket and a port of its own at most. */
export interface ListenSettings {
  readonly addresses: ListenAddresses;
  readonly transport: TransportName;
  /** A Unix domain socket that ext_proc is served on as well, by the first shard; undefined = none. */
  readonly socket: SocketFile | undefined;
  /** Addresses and networks (CIDR) of proxies without budgets by address. */
  readonly trustedProxies: readonly string[];
  readonly grpcPort: number;
  readonly healthPort: number;
  readonly metricsPort: number;
  /** Names that the metrics port is asked by, besides addresses and names that are never public; `*` = any. */
  readonly metricsHosts: readonly string[];
  readonly tls: TlsMaterial | undefined;
  readonly metricsTls: Omit<TlsMaterial, 'minVersion'> | undefined;
  /**
   * Folder of the certificate: read again on SIGHUP, and when it changes if it is watched. Undefined = self-signed or
   * none.
   */
  readonly certificate: { readonly folder: string; readonly watched: boolean } | undefined;
}
