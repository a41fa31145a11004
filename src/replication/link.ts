/** Reports of a link, all on the control thread. */
export interface LinkEvents {
  readonly message: (bytes: Uint8Array) => void;
  /** Called with each new connection; earlier messages may be lost. */
  readonly connected: () => void;
  readonly disconnected: (reason: string) => void;
  /** Called when no other replica listens. */
  readonly alone: () => void;
}

/** Connection to the other replicas. Messages may be lost; over one connection those of one sender arrive in order. */
export interface ReplicaLink {
  readonly connected: boolean;
  /** Connects, and tries again after every failure until `close`. */
  open(events: LinkEvents): void;
  /** Sends a message to all other replicas. Drops it without a connection. */
  broadcast(bytes: Uint8Array): void;
  /** Sends a message to one replica. Drops it without a connection. */
  send(replica: string, bytes: Uint8Array): void;
  close(): Promise<void>;
}
