import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { ReplicaProcess } from '../replication/faults/replica-process.ts';
import { NatsServer, skipReason } from '../replication/nats-server.ts';
import { eventually } from '../tools/gateway/client.ts';
import { askAndEnd, metric } from './serving.ts';

const CONVERSATIONS = 24;
const TURNS = 6;
const TURN = 'and then it says a little more of what it has to tell. '.repeat(10);

/** Caches of engines that keep everything: the longest prompt of each conversation, by endpoint. */
class Engines {
  readonly #longest = new Map<string, number>();
  #hit = 0;
  #asked = 0;

  serve(endpoint: string, conversation: string, characters: number): void {
    const key = `${endpoint} ${conversation}`;
    this.#hit += this.#longest.get(key) ?? 0;
    this.#asked += characters;
    this.#longest.set(key, characters);
  }

  get hitRate(): number {
    return this.#hit / this.#asked;
  }
}

async function indexesAreEqual(pickers: readonly ReplicaProcess[]): Promise<void> {
  await eventually('all know the prompts', async () => {
    const blocks = await Promise.all(
      pickers.map(({ metricsPort }) => metric(metricsPort, 'pointsman_prefix_index', 'what="blocks"')),
    );
    return blocks.every((count) => count === blocks[0]);
  });
}

/**
 * Hit rate of conversations whose turns go round robin over the pickers.
 * @param turnOver waits after each turn of all conversations
 */
async function hitRate(
  pickers: readonly ReplicaProcess[],
  name: string,
  turnOver: () => Promise<void> = async () => undefined,
): Promise<number> {
  const engines = new Engines();
  for (let turn = 1; turn <= TURNS; turn++) {
    for (let i = 0; i < CONVERSATIONS; i++) {
      const conversation = `${name} ${i} tells: `;
      const prompt = conversation + TURN.repeat(turn);
      const { replies } = await askAndEnd(pickers[(turn + i) % pickers.length]!.client, prompt);
      const endpoint = decodeReply(replies[0]!).headers['x-gateway-destination-endpoint']!;
      engines.serve(endpoint, conversation, prompt.length);
    }
    await turnOver();
  }
  return engines.hitRate;
}

describe.skipIf(skipReason !== '')(`four pickers behind round robin${skipReason}`, () => {
  let nats: NatsServer;
  const started: ReplicaProcess[] = [];

  async function start(count: number, group: string, more = ''): Promise<readonly ReplicaProcess[]> {
    const pickers: ReplicaProcess[] = [];
    for (let i = 0; i < count; i++) {
      const picker = await ReplicaProcess.create(`${group}-${i}`, nats.port, group, true, more);
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

  it('four that share keep 97 % of the hit rate of one picker, which four that do not share miss', async () => {
    const one = await hitRate(await start(1, 'one'), 'alone');
    const four = await start(4, 'four');
    const shared = await hitRate(four, 'shared', () => indexesAreEqual(four));
    for (const { proxy } of four) proxy.partition();
    const apart = await hitRate(four, 'apart');
    expect(shared).toBeGreaterThanOrEqual(0.97 * one);
    expect(apart).toBeLessThan(0.97 * one);
  }, 180_000);

  it('four that share recognise every later turn of an agent, whichever it comes to, and so does one that joins', async () => {
    const shadow = 'featureGates: [flowControl]\nflowControl: {sessions: {mode: shadow}}\n';
    const four = await start(4, 'sessions', shadow);
    const turnsOf = async (how: string) => {
      const ports = four.map(({ metricsPort }) => metricsPort);
      const counts = await Promise.all(ports.map((port) => metric(port, 'pointsman_session_turns_total', how)));
      return counts.reduce((sum: number, count) => sum + (count ?? 0), 0);
    };
    const ended = async () => {
      await indexesAreEqual(four);
      await eventually('all know that the turns have ended', async () => {
        const ports = four.map(({ metricsPort }) => metricsPort);
        const peers = await Promise.all(ports.map((port) => metric(port, 'pointsman_endpoint_peer_requests')));
        return peers.every((count) => count === 0);
      });
    };
    await hitRate(four, 'agents', ended);
    expect(await turnsOf('how="new"')).toBe(CONVERSATIONS);
    expect(await turnsOf('how="prompt"')).toBe(CONVERSATIONS * (TURNS - 1));
    // A fifth one knows them from its start.
    const late = await ReplicaProcess.create('sessions-late', nats.port, 'sessions', true, shadow);
    started.push(late);
    await late.start();
    for (let i = 0; i < CONVERSATIONS; i++)
      await askAndEnd(late.client, `agents ${i} tells: ${TURN.repeat(TURNS + 1)}`);
    expect(await metric(late.metricsPort, 'pointsman_session_turns_total', 'how="prompt"')).toBe(CONVERSATIONS);
  }, 180_000);
});
