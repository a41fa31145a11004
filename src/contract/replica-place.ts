/** Place of a replica among those that share a pool, by the order of their names. */
export interface ReplicaPlace {
  /** Replicas before this one. */
  readonly place: number;
  /** Replicas, this one included. */
  readonly replicas: number;
}
