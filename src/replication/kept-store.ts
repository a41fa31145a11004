/** Names of the values that survive the end of all replicas. */
export type KeptName = 'learned' | 'tenants';

/** Store of a group that survives the end of all its replicas. Every call may fail, and fails within seconds. */
export interface KeptStore {
  /** @returns undefined when nothing is kept */
  get(name: KeptName): Promise<Uint8Array | undefined>;
  put(name: KeptName, value: Uint8Array): Promise<void>;
}
