/** What a link reports. All of it on the control thread. */
export interface LinkEvents {
  readonly message: (bytes: Uint8Array) => void;
  /** Messages of the time before may be lost. */
  readonly connected: () => void;
  readonly disconnected: (reason: string) => void;
  /** No other replica listens. */
  readonly alone: () => void;
}

/** The way to the other replicas. Messages may be lost; those of one sender arrive in order, as long as nothing breaks. */
export interface ReplicaLink {
  readonly connected: boolean;
  /** Begins to connect, and goes on trying for good. */
  open(events: LinkEvents): void;
  /** To all others. Dropped without a connection. */
  broadcast(bytes: Uint8Array): void;
  /** To one replica. Dropped without a connection. */
  send(replica: string, bytes: Uint8Array): void;
  close(): Promise<void>;
}
