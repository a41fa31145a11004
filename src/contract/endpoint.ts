/** One address and port of a model server. */
export interface Endpoint {
  /** Unique in the pool: `namespace/name`. */
  readonly id: string;
  readonly name: string;
  /** Name of its pod, which several endpoints share when the pool has several ports; undefined = it has no pod. */
  readonly podName?: string | undefined;
  readonly namespace: string;
  /** IP literal (IPv6 without brackets): host names are resolved before they come here. */
  readonly address: string;
  readonly port: number;
  /** Factor on the value. */
  readonly hostName?: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  /**
   * Identity of the process behind the address: another process has another cache. Undefined = the address alone
   * identifies it.
   */
  readonly incarnation?: string | undefined;
  /** Takes no new requests and keeps its slot. */
  readonly draining?: boolean | undefined;
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

/** Changes of the slots since the change before. Apply `removed` before `set`. */
export interface SlotUpdate {
  /** Endpoints with a new slot, and endpoints with other labels or another state in their slot. */
  readonly set: readonly SlotAssignment[];
  /** Endpoints whose slot is free. */
  readonly removed: readonly SlotAssignment[];
}

/** A model rewrite rule: incoming model names, and their targets. */
export interface ModelRewrite {
  readonly name: string;
  /** Incoming model names; empty = every model (generic). */
  readonly models: readonly string[];
  readonly targets: readonly { readonly model: string; readonly weight?: number | undefined }[];
  /** Order among equals: the oldest wins. Milliseconds, or the position in the file. */
  readonly age: number;
}

/** Rule of a legacy InferenceModel for an incoming model name. */
export interface LegacyModel {
  /** Of requests that name no known objective. */
  readonly priority: number;
  /** Whether all its targets have weight 0: the model is not served. */
  readonly refused: boolean;
}

/** Properties of a pool from discovery, beside its endpoints. */
export interface PoolRules {
  /** Priority by objective name. */
  readonly objectives: ReadonlyMap<string, number>;
  readonly rewrites: readonly ModelRewrite[];
  /** By incoming model name. */
  readonly models?: ReadonlyMap<string, LegacyModel> | undefined;
  /** Protocol of the model servers, as `kubernetes.io/h2c`; undefined = not given. */
  readonly appProtocol?: string | undefined;
  /** Reason why there is no pool, in words; undefined = there is one. */
  readonly absent?: string | undefined;
}

/** State of a pool at one time, from discovery. */
export interface PoolState extends PoolRules {
  readonly endpoints: readonly Endpoint[];
}

/** Changes since the last update. */
export interface PoolChange {
  /** Endpoints that are new or differ. */
  readonly set: readonly Endpoint[];
  /** Ids of endpoints that are gone. */
  readonly removed: readonly string[];
  /** Undefined = as before. */
  readonly rules?: PoolRules | undefined;
}

export type PoolUpdate = PoolState | PoolChange;

/** Interface of a discovery plugin to the control thread. */
export interface Discovery {
  /**
   * Loads once and calls `changed` after every later change. Resolves to undefined when the first state comes later,
   * through `changed` as well, in full. Rejects when the source is unusable at start.
   * Bad entries of a later load are reported through `report` and skipped; good ones apply.
   */
  start(changed: (update: PoolUpdate) => void, report: (problem: string) => void): Promise<PoolState | undefined>;
  stop(): Promise<void>;
  /** Obstacle of the first state in words; empty or absent once it is there. */
  readonly awaited?: string;
}

/** A discovery whose start ends with its first state, and that tells whole states. */
export interface LoadedDiscovery extends Discovery {
  start(changed: (state: PoolState) => void, report: (problem: string) => void): Promise<PoolState>;
}
