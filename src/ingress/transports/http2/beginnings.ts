import { networkOf } from '../../client-shares.js';

/** Connections that begin in one turn of the event loop: each takes some 40 µs, and makes work for the collector. */
const BEGUN_MAX = 16;
/** The same of those that have waited for their turn. */
const BEGUN_LATE_MAX = 4;
/** First bytes of waiting connections that are held; beyond them a connection begins at once. */
const HELD_BYTES_MAX = 4 * 1024 * 1024;

/** A client that has sent its first bytes. */
export interface Beginner {
  /** Address of the client; undefined = a Unix domain socket. */
  readonly address: string | undefined;
  /** Bytes that it holds while it waits. */
  readonly heldBytes: number;
  /** Called at its turn, once. A client that has left meanwhile is called, too. */
  begin(): void;
}

/**
 * Lets some connections begin in each turn of the event loop, so that a crowd of new ones does not hold those that are
 * in use. The rest waits in the order of arrival; an address none of whose clients wait goes before it.
 */
export class Beginnings {
  readonly #defer: (run: () => void) => void;
  /** Waiting clients, oldest first, with the networks that count as one address. */
  readonly #waiting = new Map<Beginner, string>();
  /** Waiting clients of each network. */
  readonly #crowds = new Map<string, number>();
  #heldBytes = 0;
  #begun = 0;
  #isTurnOpen = false;

  /** @param defer runs something behind the reading of the sockets */
  constructor(defer: (run: () => void) => void = (run) => void setImmediate(run)) {
    this.#defer = defer;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** @returns whether the connection begins now; otherwise `begin` will be called in a later turn */
  enter(beginner: Beginner): boolean {
    const { address, heldBytes } = beginner;
    this.#openTurn();
    if (address === undefined || this.#heldBytes + heldBytes > HELD_BYTES_MAX) return true;
    const network = networkOf(address);
    const crowd = this.#crowds.get(network) ?? 0;
    if (crowd === 0 && this.#begun < BEGUN_MAX) {
      this.#begun++;
      return true;
    }
    this.#waiting.set(beginner, network);
    this.#crowds.set(network, crowd + 1);
    this.#heldBytes += heldBytes;
    return false;
  }

  #openTurn(): void {
    if (this.#isTurnOpen) return;
    this.#isTurnOpen = true;
    this.#defer(this.#nextTurn);
  }

  readonly #nextTurn = (): void => {
    this.#isTurnOpen = false;
    this.#begun = 0;
    for (const [beginner, network] of this.#waiting) {
      if (this.#begun === BEGUN_LATE_MAX) break;
      this.#begun++;
      this.#leave(beginner, network);
      beginner.begin();
    }
    if (this.#waiting.size > 0) this.#openTurn();
  };

  #leave(beginner: Beginner, network: string): void {
    this.#waiting.delete(beginner);
    this.#heldBytes -= beginner.heldBytes;
    const crowd = this.#crowds.get(network)! - 1;
    if (crowd > 0) this.#crowds.set(network, crowd);
    else this.#crowds.delete(network);
  }
}
