import type { RequestResult } from '../core/decision-data.js';
import type { AnswerSign } from '../core/types.js';
import type { AnswerMeasures, Charge, PickedEndpoint, Ticket } from '../scheduling/decision.js';

/** Receives the costs of dispatched requests. */
export interface QueueAccount {
  progress(handle: number, outputTokens: number): void;
  end(handle: number, outputTokens: number): void;
  /** Returns the payment of an evicted request to its flow. */
  refund(handle: number): void;
}

/** Output tokens between two progress reports (docs/internals/flow-control.md). */
const PROGRESS_TOKENS = 64;

/** The charge of a dispatched request; its flow pays for the tokens that are really generated. */
export class QueuedCharge implements Charge {
  readonly #charge: Charge;
  readonly #account: QueueAccount;
  readonly #handle: number;
  #tokens = 0;
  #told = 0;
  #ended = false;

  constructor(charge: Charge, account: QueueAccount, handle: number) {
    this.#charge = charge;
    this.#account = account;
    this.#handle = handle;
  }

  get tickets(): readonly Ticket[] {
    return this.#charge.tickets ?? [];
  }

  evicted(): void {
    this.#charge.evicted?.();
    if (this.#ended) return;
    this.#ended = true;
    this.#account.refund(this.#handle);
  }

  prefillDone(): void {
    this.#charge.prefillDone();
  }

  grow(tokens: number): void {
    this.#charge.grow(tokens);
    this.#tokens = tokens;
    if (tokens < this.#told + PROGRESS_TOKENS) return;
    this.#told = tokens;
    this.#account.progress(this.#handle, tokens);
  }

  expects(sign: AnswerSign, limit: number | undefined): void {
    this.#charge.expects?.(sign, limit);
  }

  heard(): void {
    this.#charge.heard?.();
  }

  stepped(ms: number): void {
    this.#charge.stepped?.(ms);
  }

  answered(answer: AnswerMeasures): void {
    this.#charge.answered?.(answer);
    this.#tokens = answer.outputTokens ?? this.#tokens;
  }

  outcome(result: RequestResult): void {
    this.#charge.outcome(result);
  }

  servedBy(served: string, picks: readonly PickedEndpoint[], result: RequestResult): void {
    this.#charge.servedBy(served, picks, result);
  }

  release(): void {
    this.#charge.release();
    if (this.#ended) return;
    this.#ended = true;
    this.#account.end(this.#handle, this.#tokens);
  }
}
