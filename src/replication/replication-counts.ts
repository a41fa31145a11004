import { BAD_MESSAGES, type BadMessage } from './wire.js';

/** Counters of replication. */
export interface ReplicationCounts {
  sentMessages: number;
  sentBytes: number;
  receivedMessages: number;
  receivedBytes: number;
  /** Messages that were refused, by the reason. */
  readonly badMessages: Record<BadMessage, number>;
  gaps: number;
  lostPlacements: number;
  /** Placements that were not worth telling within the share. */
  untoldPlacements: number;
  lostTurns: number;
  snapshotsSent: number;
  snapshotsTaken: number;
  /** Sessions that were told replicas as they joined, and those that this one was told. */
  sessionsSent: number;
  sessionsTaken: number;
  /** Tenants of peers that have given way to others at their bound. */
  forgottenTenants: number;
  /** Loads of peers on an endpoint that have given way to others at their bound. */
  forgottenLoads: number;
}

export function noCounts(): ReplicationCounts {
  return {
    sentMessages: 0,
    sentBytes: 0,
    receivedMessages: 0,
    receivedBytes: 0,
    badMessages: Object.fromEntries(BAD_MESSAGES.map((reason) => [reason, 0])) as Record<BadMessage, number>,
    gaps: 0,
    lostPlacements: 0,
    untoldPlacements: 0,
    lostTurns: 0,
    snapshotsSent: 0,
    snapshotsTaken: 0,
    sessionsSent: 0,
    sessionsTaken: 0,
    forgottenTenants: 0,
    forgottenLoads: 0,
  };
}
