import type { Ticket } from '../scheduling/decision.js';

/** A running request that may be ended for one of a higher band. */
export interface Evictable {
  /** End it, unless it is over. */
  evictRequest(): void;
}

/** The running requests of one shard, by the tickets of their charges: nothing that a client sends names them. */
export class EvictableRequests {
  readonly #byTicket = new Map<number, { readonly generation: number; readonly request: Evictable }>();

  get size(): number {
    return this.#byTicket.size;
  }

  hold(tickets: readonly Ticket[], request: Evictable): void {
    for (const { ticket, generation } of tickets) this.#byTicket.set(ticket, { generation, request });
  }

  /** A request is over. A ticket that another one has by now stays with that one. */
  letGo(tickets: readonly Ticket[]): void {
    for (const { ticket, generation } of tickets) {
      if (this.#byTicket.get(ticket)?.generation === generation) this.#byTicket.delete(ticket);
    }
  }

  /** End the request of a ticket. One that is over, and one that came after it, hear nothing. */
  evictRequest(ticket: number, generation: number): void {
    const found = this.#byTicket.get(ticket);
    if (found?.generation === generation) found.request.evictRequest();
  }
}
