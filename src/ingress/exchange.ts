import type { Evictable } from '../flow-control/evictable-requests.js';
import type { DestinationTemplates } from './codec/destination.js';
import type { SharedLoad } from './stream-load.js';
import type { StreamServices } from './stream-services.js';
import type { ProcessStream } from './transport.js';
import type { TurnBudget } from './turn-budget.js';

/** What one shard gives to each of its streams. */
export interface StreamContext {
  readonly services: StreamServices;
  readonly load: SharedLoad;
  readonly gate: TurnBudget;
  readonly templates: DestinationTemplates;
}

/** One HTTP exchange, as its request and its response see it: where their answers go, and the ways in which it ends. */
export interface Exchange extends Evictable {
  readonly context: StreamContext;
  readonly stream: ProcessStream;
  /** When the stream was opened, by the services' clock. */
  readonly openedAt: number;
  /** The proxy has half-closed: nothing more will come. */
  readonly isHalfClosed: boolean;
  /** Set the exchange's share of the shard's held bytes. @returns false when the shard holds too much */
  hold(bytes: number): boolean;
  /** Nothing more is to be said. Whatever is held is released first: when the proxy hears of the end, nothing is. */
  finish(): void;
  /** The peer broke the protocol. */
  fail(why: string): void;
  /** Something went wrong that nobody expected: it ends this stream and no other. */
  broken(error: unknown): void;
  /** The picker has too much to do: answer with a 503. */
  turnAway(why: string): void;
}
