import type { Decider } from '../core/decider.js';
import type { EndpointDirectory } from './endpoint-directory.js';
import type { Charge, PickedEndpoint } from './types.js';

export interface ChargeOptions {
  readonly decider: Decider;
  readonly directory: EndpointDirectory;
  readonly estimateOutput: { readonly ratio: number; readonly maxTokens: number | undefined } | undefined;
  readonly nowMs: () => number;
  /** A charge could not be released because a dead thread holds the lock: try `again` soon. */
  readonly later: (again: () => boolean) => void;
  /** An endpoint was ejected. */
  readonly ejected: (endpoint: PickedEndpoint) => void;
}

/** An entry of the ledger: which slot it charges, and the ticket that names it. */
export interface LedgerTicket {
  readonly slot: number;
  readonly slotGeneration: number;
  /** 0 = nothing is charged. */
  readonly ticket: number;
  readonly generation: number;
}

/** What one pick holds in the ledger. */
export class LedgerCharge implements Charge {
  readonly #options: ChargeOptions;
  readonly #blockTokens: number;
  readonly #held: LedgerTicket;
  #ticket: number;
  #grownBlocks = 0;
  #prefilled = false;
  #reported = false;

  constructor(options: ChargeOptions, held: LedgerTicket, blockTokens: number) {
    this.#options = options;
    this.#held = held;
    this.#ticket = held.ticket;
    this.#blockTokens = blockTokens;
  }

  prefillDone(): void {
    if (this.#prefilled || this.#ticket === 0) return;
    this.#prefilled = true;
    // With output counted, the estimate stays until the end (inflight-load-producer).
    if (this.#options.estimateOutput === undefined) {
      this.#options.decider.prefillDone(this.#ticket, this.#held.generation);
    }
  }

  grow(tokens: number): void {
    const blocks = Math.floor(tokens / this.#blockTokens);
    if (blocks <= this.#grownBlocks || this.#ticket === 0) return;
    this.#grownBlocks = blocks;
    this.#options.decider.grow(this.#ticket, this.#held.generation, blocks);
  }

  release(): void {
    const ticket = this.#ticket;
    if (ticket === 0) return;
    this.#ticket = 0;
    const { generation } = this.#held;
    const { decider, later } = this.#options;
    if (!decider.release(ticket, generation)) later(() => decider.release(ticket, generation));
  }

  outcome(result: 'success' | 'failure'): void {
    const { slot, slotGeneration } = this.#held;
    if (this.#reported || slot < 0) return;
    this.#reported = true;
    const { decider, nowMs, directory, ejected } = this.#options;
    const out = decider.noteOutcome(slot, slotGeneration, result === 'failure', nowMs());
    const endpoint = out ? directory.at(slot) : undefined;
    if (endpoint !== undefined) ejected(endpoint);
  }
}

/**
 * What a request with several picks holds: the endpoint that answers it to the end, those that work for it beforehand
 * until the first token.
 */
export class StagedCharge implements Charge {
  readonly #answer: Charge;
  readonly #before: readonly Charge[];

  constructor(answer: Charge, before: readonly Charge[]) {
    this.#answer = answer;
    this.#before = before;
  }

  prefillDone(): void {
    for (const charge of this.#before) charge.release();
    this.#answer.prefillDone();
  }

  grow(tokens: number): void {
    this.#answer.grow(tokens);
  }

  release(): void {
    for (const charge of this.#before) charge.release();
    this.#answer.release();
  }

  /** The status is that of the endpoint that answers; it tells nothing for sure about the others. */
  outcome(result: 'success' | 'failure'): void {
    this.#answer.outcome(result);
  }
}
