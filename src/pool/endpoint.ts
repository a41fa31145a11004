/** One address and port of a model server. */
export interface Endpoint {
  /** Unique in the pool: `namespace/name`. */
  readonly id: string;
  readonly name: string;
  readonly namespace: string;
  /** IP literal (IPv6 without brackets): host names are resolved before they come here. */
  readonly address: string;
  readonly port: number;
  /** The name that the address was found under; absent = the address was given as such. */
  readonly hostName?: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
}

/** `ip:port`, IPv6 in brackets: the form of the destination header. */
export function endpointAddress(endpoint: Pick<Endpoint, 'address' | 'port'>): string {
  return endpoint.address.includes(':')
    ? `[${endpoint.address}]:${endpoint.port}`
    : `${endpoint.address}:${endpoint.port}`;
}

/** One slot's endpoint. A pair of slot and generation is never given out twice. */
export interface SlotAssignment {
  readonly slot: number;
  /** Counts the uses of the slot, from 1; wraps after 2^32 - 1 to 1. */
  readonly generation: number;
  readonly endpoint: Endpoint;
}

/** A model rewrite rule: which incoming model names it takes and what they become. */
export interface ModelRewrite {
  readonly name: string;
  /** Incoming model names; empty = every model (generic). */
  readonly models: readonly string[];
  readonly targets: readonly { readonly model: string; readonly weight?: number | undefined }[];
  /** Order among equals: the oldest wins. Milliseconds, or the position in the file. */
  readonly age: number;
}

/** Everything that discovery says about a pool at one time. */
export interface PoolState {
  readonly endpoints: readonly Endpoint[];
  /** Priority by objective name. */
  readonly objectives: ReadonlyMap<string, number>;
  readonly rewrites: readonly ModelRewrite[];
}

/** What a discovery plugin is to the control thread. */
export interface Discovery {
  /**
   * Load once (rejects when the source is unusable at start), then call `changed` after every later change.
   * Bad entries of a later load are reported through `report` and skipped; good ones apply.
   */
  start(changed: (state: PoolState) => void, report: (problem: string) => void): Promise<PoolState>;
  stop(): Promise<void>;
}
