/** Reasons why a reported block is not in the prefix index. */
export type DropReason =
  /** The block before it is not known: its message was lost, or came before the picker. */
  | 'unknown parent'
  /** The engine has blocks of more sizes than are followed. */
  | 'block size'
  /** The tokens are missing, or not as many as the blocks hold. */
  | 'tokens'
  /** The engine does not say which adapter the blocks belong to. */
  | 'unnamed adapter'
  /** Blocks whose model neither the topic nor the configuration names. */
  | 'unnamed model'
  /** A cache of another kind (sliding window, state space …), from which no prefix can be taken. */
  | 'cache kind'
  /** The endpoint has as many blocks in the tables of the index as the bound allows. */
  | 'no room'
  /** An event of a kind that is not known. */
  | 'unknown event'
  /** A message that cannot be read. */
  | 'malformed'
  /** A topic that names no endpoint of the pool. */
  | 'unknown endpoint';

/** Counters of the event feed since the start. */
export class EventCounts {
  readonly #noted: (reason: DropReason) => void;

  /** @param noted called for each drop */
  constructor(noted: (reason: DropReason) => void = () => undefined) {
    this.#noted = noted;
  }

  messages = 0;
  storedBlocks = 0;
  removedBlocks = 0;
  clears = 0;
  gaps = 0;
  restarts = 0;
  speculated = 0;
  expired = 0;
  readonly replays = { complete: 0, incomplete: 0, failed: 0 };
  readonly dropped = new Map<DropReason, number>();

  drop(reason: DropReason, count = 1): void {
    this.#noted(reason);
    this.dropped.set(reason, (this.dropped.get(reason) ?? 0) + count);
  }
}
