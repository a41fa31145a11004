// The requests of a comparison: conversations that grow turn by turn, over a few system prompts, in a fixed order.
import { seededRandom } from '../../dist/src/runtime/seeded-random.js';
import type { Request } from './ext-proc.ts';
import type { Load } from './model-servers.ts';

/** Conversations that take turns. */
const CONVERSATIONS = 24;
const TURNS = 10;
const SYSTEM_PROMPTS = 4;
const WORDS = 'alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau'.split(
  ' ',
);

interface Conversation {
  readonly messages: { readonly role: string; readonly content: string }[];
  readonly session: string;
  turn: number;
}

/** One request of the workload, and whether it opens its conversation. */
export interface WorkloadRequest extends Request {
  readonly conversation: number;
  readonly opens: boolean;
}

/**
 * Makes requests one after the other. The first turn of a conversation may go to one endpoint only, so that both
 * pickers believe the same endpoint to hold its prompt; later turns are free.
 */
export class Workload {
  readonly #random: () => number;
  readonly #addresses: readonly string[];
  readonly #conversations: Conversation[] = [];
  readonly #systems: readonly string[];
  #started = 0;
  #next = 0;

  constructor(seed: number, addresses: readonly string[]) {
    this.#random = seededRandom(BigInt(seed));
    this.#addresses = addresses;
    this.#systems = Array.from({ length: SYSTEM_PROMPTS }, () => this.#text(200));
    for (let i = 0; i < CONVERSATIONS; i++) this.#conversations.push(this.#conversation());
  }

  next(): WorkloadRequest {
    const number = this.#next++ % CONVERSATIONS;
    if (this.#conversations[number]!.turn === TURNS) this.restart(number);
    const conversation = this.#conversations[number]!;
    const opens = conversation.turn === 0;
    if (!opens) conversation.messages.push({ role: 'assistant', content: this.#text(30 + this.#below(60)) });
    conversation.messages.push({ role: 'user', content: this.#text(20 + this.#below(80)) });
    conversation.turn++;
    return {
      path: '/v1/chat/completions',
      headers: [['x-session-id', conversation.session]],
      body: JSON.stringify({ model: 'm', messages: conversation.messages, max_tokens: 100 }),
      subset: opens ? [this.#addresses[this.#started++ % this.#addresses.length]!] : undefined,
      conversation: number,
      opens,
    };
  }

  /** Begins a conversation anew: what the two pickers believe about it may differ. */
  restart(number: number): void {
    this.#conversations[number] = this.#conversation();
  }

  /** Signals without two equal numbers, so that hardly any scores are equal. */
  loads(): readonly Load[] {
    const order = this.#addresses.map((_, position) => ({ position, key: this.#random() }));
    order.sort((a, b) => a.key - b.key);
    const rank = new Map(order.map(({ position }, place) => [position, place]));
    return this.#addresses.map((_, position) => ({
      waiting: rank.get(position)!,
      running: this.#below(20),
      kvUsage: Math.round(this.#random() * 9_000) / 10_000,
    }));
  }

  #conversation(): Conversation {
    const system = this.#systems[this.#below(SYSTEM_PROMPTS)]!;
    return { messages: [{ role: 'system', content: system }], session: `s${this.#below(1e9)}`, turn: 0 };
  }

  #text(words: number): string {
    return Array.from({ length: words }, () => `${WORDS[this.#below(WORDS.length)]}${this.#below(1000)}`).join(' ');
  }

  #below(bound: number): number {
    return Math.floor(this.#random() * bound);
  }
}
