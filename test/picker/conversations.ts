import { Agent } from 'node:http';
import { DEFAULT_PLUGINS, DEFAULT_PROFILES } from '../../dist/src/config/default-configuration.js';
import type { RequestStory } from '../../dist/src/operations/why/request-story.js';
import { startGateway } from '../../dist/tools/gateway/gateway.js';
import { startModelServer } from '../../dist/tools/simulator/server/model-server.js';
import { ask } from '../tools/gateway/client.ts';
import { Setting, startPicker } from './serving.ts';

const SHIPPED = `plugins:\n${DEFAULT_PLUGINS}${DEFAULT_PROFILES}`;

export interface Conversations {
  readonly servers: number;
  readonly conversations: number;
  readonly turns: number;
  /** Requests at a time, of all conversations. */
  readonly atOnce: number;
  readonly seed: number;
}

/** A turn as it went. */
export interface Turn {
  readonly server: string;
  /** The picker's story of its decision. */
  readonly story: RequestStory;
}

/** A conversation as it went. */
export type Served = readonly Turn[];

/**
 * Conversations through a picker with the shipped default, behind the embedded gateway, over simulated servers of 256
 * slots. The conversations go on in any order; one says its next turn when a place of `atOnce` is free and its last
 * turn is answered.
 * @returns the turns of each conversation
 */
export async function converse({ servers, conversations, turns, atOnce, seed }: Conversations): Promise<Served[]> {
  const stops: (() => Promise<unknown>)[] = [];
  const random = seeded(seed);
  try {
    const fleet = await Promise.all(
      Array.from({ length: servers }, (_, i) =>
        startModelServer({ name: `server-${i}`, answerLength: { min: 8, max: 40 } }),
      ),
    );
    stops.push(...fleet.map((server) => server.stop));
    const setting = await Setting.create(
      fleet.map(({ name, address, port }) => ({ name, address, port })),
      SHIPPED,
    );
    stops.push(() => setting.remove());
    const { picker, ports } = await startPicker([...setting.flags, '--shards=1', '--allow-explain-header']);
    stops.push(() => picker.stop(0));
    const gateway = await startGateway({ port: 0, picker: { host: '127.0.0.1', port: ports.grpcPort } });
    stops.push(gateway.stop);
    const storyOf = async (id: string) => {
      const page = await fetch(`http://127.0.0.1:${ports.metricsPort}/debug/requests/${id}`);
      return (await page.json()) as RequestStory;
    };
    const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
    stops.push(async () => agent.destroy());
    const open = Array.from({ length: conversations }, (_, i) => new Conversation(i, random));
    const talk = async () => {
      for (;;) {
        const free = open.filter(({ busy, served }) => !busy && served.length < turns);
        if (free.length === 0) {
          if (!open.some(({ served }) => served.length < turns)) return;
          await new Promise((resolve) => setTimeout(resolve, 5));
          continue;
        }
        await free[Math.floor(random() * free.length)]!.say(gateway.port, agent, storyOf);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, talk));
    return open.map(({ served }) => served);
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

class Conversation {
  readonly served: Turn[] = [];
  busy = false;
  readonly #messages: { role: string; content: string }[] = [];
  readonly #number: number;
  readonly #random: () => number;

  constructor(number: number, random: () => number) {
    this.#number = number;
    this.#random = random;
  }

  async say(port: number, agent: Agent, storyOf: (id: string) => Promise<RequestStory>): Promise<void> {
    this.busy = true;
    this.#messages.push({ role: 'user', content: this.#words() });
    const body = JSON.stringify({ model: 'm', messages: this.#messages });
    const id = `conversation-${this.#number}-${this.served.length}`;
    const headers = { 'x-request-id': id, 'x-pointsman-explain': '1' };
    const answer = await ask(port, { body, headers }, agent);
    if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.body}`);
    const { choices } = JSON.parse(answer.body.toString()) as { choices: { message: { content: string } }[] };
    this.#messages.push({ role: 'assistant', content: choices[0]!.message.content });
    this.served.push({ server: String(answer.headers['x-inference-pod']), story: await storyOf(id) });
    this.busy = false;
  }

  /** 150 to 650 tokens of its own. */
  #words(): string {
    const bytes = 600 + Math.floor(this.#random() * 2_000);
    return `${this.#number}.${this.served.length} is what I ask. `.repeat(Math.ceil(bytes / 20)).slice(0, bytes);
  }
}

/** Conversations of which a turn after the first was served by another server than the turn before. */
export function moved(conversations: readonly Served[]): number {
  return conversations.filter((served) => new Set(served.map(({ server }) => server)).size > 1).length;
}

/** Numbers in [0, 1) with a seed (a linear congruential generator; Numerical Recipes). */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
