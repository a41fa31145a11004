import type { Ticket } from '../scheduling/decision.js';

/** A running request that may be evicted for one of a higher band. */
export interface Evictable {
  /** Evicts the request, unless it has ended. */
  evictRequest(): void;
}

/** The evictable requests of one shard by the tickets of their charges. Tickets cannot be set by a client. */
export class EvictableRequests {
  readonly #byTicket = new Map<number, { readonly generation: number; readonly request: Evictable }>();

  get size(): number {
    return this.#byTicket.size;
  }

  hold(tickets: readonly Ticket[], request: Evictable): void {
    for (const { ticket, generation } of tickets) this.#byTicket.set(ticket, { generation, request });
  }

  /** Removes a request that has ended. A ticket that another request has by now stays with that request. */
  remove(tickets: readonly Ticket[]): void {
    for (const { ticket, generation } of tickets) {
      if (this.#byTicket.get(ticket)?.generation === generation) this.#byTicket.delete(ticket);
    }
  }

  /**
   * Evicts the request of a ticket and generation. Without effect when it has ended, also when another request has the
   * ticket.
   */
  evictRequest(ticket: number, generation: number): void {
    const found = this.#byTicket.get(ticket);
    if (found?.generation === generation) found.request.evictRequest();
  }
}
