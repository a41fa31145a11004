import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeReply, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { ReplicaProcess } from '../replication/faults/replica-process.ts';
import { NatsServer, skipReason } from '../replication/nats-server.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, metric } from './serving.ts';

const ENDPOINTS = 4;
/** Tokens of each cache. */
const CACHE_TOKENS = 16_384;
const TURNS = 5;
const FIRST_TOKENS = 2_500;
const TURN_TOKENS = 20;
/** Agents that fit beside each other at their last turn, six at each endpoint. */
const FIT = ENDPOINTS * Math.floor(CACHE_TOKENS / (FIRST_TOKENS + (TURNS - 1) * TURN_TOKENS));
const CLIENTS = 1.5 * FIT;
/** Agents that each client runs, one after the other. */
const ROUNDS = 2;
const AGENTS = ROUNDS * CLIENTS;
const SERVICE_MS = 200;
const PAUSE_MS = 1_000;
/** Time between the begins of two clients. */
const APART_MS = 100;
/** Hit rate of four pickers over that of one. */
const HITS_MIN = 0.7;

const HOLDING = `featureGates: [flowControl]
flowControl:
  defaultRequestTTL: 600s
  sessions: {mode: on, capacityTokens: ${CACHE_TOKENS}, stretch: 0, maxWait: 60s, idleLease: 600s}
`;

/** Engines whose caches forget the agent that was used longest ago. */
class Engines {
  readonly #kept = new Map<string, Map<number, number>>();
  #hit = 0;
  #asked = 0;

  serve(endpoint: string, agent: number, tokens: number): void {
    const kept = this.#kept.get(endpoint) ?? new Map<number, number>();
    this.#kept.set(endpoint, kept);
    this.#hit += kept.get(agent) ?? 0;
    this.#asked += tokens;
    kept.delete(agent);
    kept.set(agent, tokens);
    for (const [oldest] of kept) if (sum(kept.values()) > CACHE_TOKENS) kept.delete(oldest);
  }

  get hitRate(): number {
    return this.#hit / this.#asked;
  }
}

function sum(numbers: Iterable<number>): number {
  return [...numbers].reduce((total, each) => total + each, 0);
}

/**
 * Plays the turns of one agent, each answered after SERVICE_MS, at the pickers in turn.
 * @returns turns that got an endpoint
 */
async function work(pickers: readonly ReplicaProcess[], engines: Engines, agent: number): Promise<number> {
  for (let i = 0; i < TURNS; i++) {
    const tokens = FIRST_TOKENS + i * TURN_TOKENS;
    const prompt = `agent ${agent} of ${AGENTS}. `
      .padEnd(64, '.')
      .repeat(Math.ceil(tokens / 16))
      .slice(0, 4 * tokens);
    const isLast = i === TURNS - 1;
    const { client } = pickers[(agent + i) % pickers.length]!;
    const call = ask(client, prompt, isLast ? { 'x-pointsman-session-end': '1' } : {});
    const reply = await new Promise<Buffer>((resolve, reject) => call.once('data', resolve).once('error', reject));
    const endpoint = decodeReply(reply).headers['x-gateway-destination-endpoint'];
    if (endpoint === undefined) return i;
    engines.serve(endpoint, agent, tokens);
    await pause(SERVICE_MS);
    call.write(responseHeaders({ ':status': '200', 'content-type': 'text/event-stream' }));
    call.write(responseBody('data: {}\n\n', false));
    call.write(responseBody('data: [DONE]\n\n', true));
    call.end();
    if (!isLast) await pause(PAUSE_MS);
  }
  return TURNS;
}

/** Plays clients, each with one agent after the other. @returns the engines, and turns of each agent */
async function play(pickers: readonly ReplicaProcess[]) {
  const engines = new Engines();
  const clients: Promise<readonly number[]>[] = [];
  const client = async (number: number) => {
    const turns: number[] = [];
    for (let i = 0; i < ROUNDS; i++) turns.push(await work(pickers, engines, number + i * CLIENTS));
    return turns;
  };
  for (let i = 0; i < CLIENTS; i++) {
    clients.push(client(i));
    await pause(APART_MS);
  }
  return { engines, turns: (await Promise.all(clients)).flat() };
}

async function figures(pickers: readonly ReplicaProcess[], name: string): Promise<readonly number[]> {
  return Promise.all(pickers.map(async ({ metricsPort }) => (await metric(metricsPort, name)) ?? Number.NaN));
}

describe.skipIf(skipReason !== '')(`held turns at four pickers${skipReason}`, () => {
  let nats: NatsServer;
  const started: ReplicaProcess[] = [];

  async function start(count: number, group: string): Promise<readonly ReplicaProcess[]> {
    const pickers: ReplicaProcess[] = [];
    for (let i = 0; i < count; i++) {
      const picker = await ReplicaProcess.create(`${group}-${i}`, nats.port, group, true, HOLDING);
      started.push(picker);
      pickers.push(picker);
      await picker.start();
    }
    return pickers;
  }

  beforeAll(async () => {
    nats = await NatsServer.start();
  });

  afterAll(async () => {
    for (const picker of started) await picker.close();
    await nats.stop();
  });

  it('four pickers that share hold turns, place them all, and keep seven tenths of the hits of one', async () => {
    const [single, four] = [await start(1, 'held-one'), await start(4, 'held-four')];
    // Both at one time: what slows one slows the other.
    const [alone, shared] = await Promise.all([play(single), play(four)]);
    const holds = await figures(four, 'pointsman_session_hold_seconds_count');
    expect(shared.turns).toEqual(Array.from({ length: AGENTS }, () => TURNS));
    expect(holds.every((count) => count > 0)).toBe(true);
    expect(await figures(four, 'pointsman_session_forced_total')).toEqual([0, 0, 0, 0]);
    await eventually('no turn is held and no cache is in use', async () => {
      const held = await figures(four, 'pointsman_session_held');
      const used = await figures(four, 'pointsman_session_used_ratio');
      return [...held, ...used].every((figure) => figure === 0);
    });
    expect(shared.engines.hitRate).toBeGreaterThanOrEqual(HITS_MIN * alone.engines.hitRate);
  }, 120_000);
});
