import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { Restarts } from '../../dist/src/picker/shards/restarts.js';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { collect, dialPicker, firstReply, type ProxyClient } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, askAndEnd, metric, Setting, startPicker } from './serving.ts';

const ENDPOINTS = [{ name: 'server', port: 20_000 }];
const PROFILE = 'plugins:\n- {type: fault-maker}\n';
const PLUGIN = join(import.meta.dirname, 'faulty-plugin.js');
/** Enough for a shard, and little enough to be filled soon. */
const LIMITS = { maxOldGenerationSizeMb: 96 };
/** Beyond the time in which a stalled shard is noticed. */
const DEATHS = 'pointsman_shard_deaths_total';
const STALL_LIMIT_MS = 240_000;

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function dial(port: number): ProxyClient {
  const client = dialPicker(port);
  cleanups.push(() => client.close());
  return client;
}

async function start() {
  const setting = await Setting.create(ENDPOINTS, PROFILE);
  cleanups.push(() => setting.remove());
  const started = await startPicker([...setting.flags, '--shards=2', `--plugin=${PLUGIN}`], LIMITS);
  cleanups.push(() => started.picker.stop(0));
  return started;
}

/** A connection to each shard: a decision of each is seen by its thread. */
async function clientPerShard(port: number, metricsPort: number): Promise<readonly [ProxyClient, ProxyClient]> {
  const found = new Map<number, ProxyClient>();
  await eventually('both shards have a connection', async () => {
    const client = dial(port);
    const prompt = `find ${Math.random()}`;
    await askAndEnd(client, prompt);
    const page = (await (await fetch(`http://127.0.0.1:${metricsPort}/debug/decisions?limit=1`)).json()) as {
      decisions: { thread: number }[];
    };
    found.set(page.decisions[0]!.thread, client);
    return found.size === 2;
  });
  const [one, two] = found.values();
  return [one!, two!];
}

describe.each(['stall', 'memory'])('a shard whose fault is: %s', (fault) => {
  it(`a shard with the fault ${fault} loses its connections and is replaced, while the other shard answers`, {
    timeout: STALL_LIMIT_MS,
  }, async () => {
    const { picker, ports } = await start();
    const [faulty, sound] = await clientPerShard(ports.grpcPort, ports.metricsPort);
    const open = ask(faulty, 'open');
    await firstReply(open);
    const over = collect(open);
    const victim = collect(ask(faulty, 'fault', { 'x-fault': fault }));
    const answer = await askAndEnd(sound, 'meanwhile');
    expect(decodeReply(answer.replies[0]!).kind).toBe('requestHeaders');
    expect([(await over).code, (await victim).code]).toEqual([14, 14]);
    await eventually('its death is counted', async () => (await metric(ports.metricsPort, DEATHS)) === 1);
    await eventually('both shards listen', () => picker.shards.listening === 2);
    await eventually('every charge is released', async () => {
      return (await metric(ports.metricsPort, 'pointsman_ledger_entries')) === 0;
    });
    const again = await askAndEnd(sound, 'afterwards');
    expect(decodeReply(again.replies[0]!).kind).toBe('requestHeaders');
  });
});

describe('the restarts of shards', () => {
  it('restarts are counted for each shard: the first at once, later ones after twice the pause before, half a minute at most', () => {
    const restarts = new Restarts(() => 0);
    const pauses = Array.from({ length: 12 }, () => restarts.pauseOf(1));
    expect(pauses).toEqual([0, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000, 30_000]);
    expect([restarts.inARow(1), restarts.pauseOf(2), restarts.inARow(2)]).toEqual([12, 0, 1]);
  });

  it('restarts of a shard start anew when it has served for a minute, and not because it listened for a moment', () => {
    let now = 0;
    const restarts = new Restarts(() => now);
    const dies = (afterMs: number): number => {
      restarts.listens(1);
      now += afterMs;
      return restarts.pauseOf(1);
    };
    expect([dies(100), dies(100), dies(59_999), dies(60_000)]).toEqual([0, 200, 400, 0]);
  });
});
