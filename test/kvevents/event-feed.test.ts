import { afterEach, describe, expect, it, vi } from 'vitest';
import type { SlotAssignment } from '../../dist/src/contract/endpoint.js';
import { EventFeed, type EventFeedSettings } from '../../dist/src/kvevents/event-feed.js';
import { eventually } from '../tools/gateway/client.ts';
import { cleared, EnginePublisher, removed, run, stored } from './engine-publisher.ts';
import { eventPool } from './pool.ts';

const closers: (() => unknown)[] = [];

afterEach(() => {
  for (const close of closers.splice(0).reverse()) close();
});

const portOf = (address: string) => Number(/:(\d+)$/.exec(address)![1]);

function assignment(slot: number, name = `pod-${slot}`, address = '127.0.0.1', port = 8_000 + slot): SlotAssignment {
  return {
    slot,
    generation: 1,
    endpoint: { id: `default/${name}`, name, namespace: 'default', address, port, labels: {} },
  };
}

async function engine(address?: string, connects = false): Promise<EnginePublisher> {
  const publisher = await EnginePublisher.start(address, connects);
  closers.push(() => publisher.close());
  return publisher;
}

function feed(settings: Partial<EventFeedSettings>) {
  const pool = eventPool();
  const problems: string[] = [];
  const placed: [slot: number, isPlaced: boolean][] = [];
  const defaults: EventFeedSettings = {
    blockTokens: 4,
    bind: undefined,
    connect: undefined,
    topicFilter: 'kv@',
    model: undefined,
    speculativeTtlMs: undefined,
    tierPrices: { host: 0.5, disk: 0.5, remote: 0.5 },
  };
  const made = new EventFeed({
    settings: { ...defaults, ...settings },
    publishes: ({ labels }) => labels.silent === undefined,
    index: pool.index,
    chain: pool.chain,
    blocksMost: 1_000,
    placed: (slot, isPlaced) => placed.push([slot, isPlaced]),
    report: (problem) => problems.push(problem),
  });
  closers.push(() => made.close());
  const holds = (slot: number, blocks: number, tokens = run(0, 40)) =>
    eventually(`slot ${slot} holds ${blocks} blocks`, () => pool.matched(tokens)[slot] === blocks);
  return { ...pool, made, problems, placed, holds, counts: made.counts };
}

/** A feed that follows one engine, whose first message has arrived. */
async function following(replays: boolean) {
  const publisher = await engine();
  const connect = {
    port: portOf(publisher.address),
    replayPort: replays ? portOf(publisher.replayAddress) : undefined,
  };
  const followed = feed({ connect });
  followed.made.setEndpoints([assignment(0)]);
  // A subscriber misses what is published before it has joined, and that is no gap: send until it hears.
  await eventually('the subscription', async () => {
    await publisher.send([cleared]);
    return followed.counts.messages > 0;
  });
  return { ...followed, publisher };
}

/** Message that stores blocks `from` up to `to` of one long prompt. */
const blocks = (from: number, to: number) => [
  stored(run(from + 1, to - from), from === 0 ? null : from, run(from * 4, (to - from) * 4), 4),
];

describe('the events of an endpoint', () => {
  it('the events of an endpoint tell on which medium a block lies, which its worth follows', async () => {
    const { publisher, made, worth } = await following(false);
    await publisher.send([...blocks(0, 4), stored([1, 2, 3, 4], null, [], 4, null, 'CPU')]);
    await eventually('the blocks on the GPU', () => worth(run(0, 16)) === 4);
    await publisher.send([removed([3, 4], 'GPU')]);
    await eventually('two blocks in the host', () => worth(run(0, 16)) === 3);
    expect(Object.fromEntries(made.readings()[0]!.placed)).toEqual({ gpu: 2, host: 4, disk: 0, remote: 0 });
  });

  it('the events of an endpoint with blocks of another size name the setting that fits them, once', async () => {
    const { publisher, problems, counts } = await following(false);
    await publisher.send([stored([1], null, run(0, 6), 6), stored([2], 1, run(6, 6), 6)]);
    await eventually('the blocks', () => counts.storedBlocks === 2);
    expect(problems).toEqual([
      'default/pod-0: its blocks have 6 tokens and those of the index 4: a match ends at the last whole one of them',
    ]);
  });

  it('the events of an endpoint that cannot be used are told by their number and its noun', () => {
    const { counts, problems } = feed({});
    counts.drop('malformed');
    counts.drop('no room');
    expect(problems).toEqual([
      expect.stringMatching(/^dropped 1 message that cannot be read: /),
      'found no room for the blocks of 1 event: raise --index-blocks',
    ]);
  });

  it('the events of an endpoint are in the index soon after they were published', async () => {
    const { publisher, holds, made } = await following(false);
    expect(made.readings()).toMatchObject([{ slot: 0, state: 'live', blocks: 0 }]);
    await publisher.send(blocks(0, 3));
    await publisher.send(blocks(3, 5));
    await holds(0, 5);
    expect(made.readings()).toMatchObject([{ slot: 0, state: 'live', blocks: 5 }]);
    expect(made.ages()).toEqual([{ slot: 0, ageMs: expect.any(Number) }]);
  });

  it.each([false, true])(
    'the events of an endpoint that were lost are fetched again (topic in the answers: %s)',
    async (topicInReplay) => {
      const { publisher, holds, counts } = await following(true);
      publisher.topicInReplay = topicInReplay;
      await publisher.send(blocks(0, 2));
      await holds(0, 2);
      const complete = counts.replays.complete;
      const missing = publisher.next;
      await publisher.send(blocks(2, 4), true);
      await publisher.send(blocks(4, 6), true);
      await publisher.send(blocks(6, 8));
      await holds(0, 8);
      expect(publisher.asked.at(-1)).toBe(missing);
      expect(counts.replays.complete).toBe(complete + 1);
      expect(counts.gaps).toBe(1);
      await publisher.send(blocks(8, 9));
      await holds(0, 9);
    },
  );

  it('the events of an endpoint that were lost for good leave nothing behind that may be wrong', async () => {
    const { publisher, holds, counts } = await following(false);
    await publisher.send(blocks(0, 2));
    await holds(0, 2);
    await publisher.send([cleared], true);
    await publisher.send([stored([90], null, run(400, 4), 4)]);
    await holds(0, 1, run(400, 4));
    await holds(0, 0);
    expect(counts.gaps).toBe(1);
  });

  it('the events of an endpoint that the engine does not keep any more are given up', async () => {
    const { publisher, holds } = await following(true);
    await publisher.send(blocks(0, 2));
    await holds(0, 2);
    await publisher.send([cleared], true);
    publisher.forgetBefore(publisher.next);
    await publisher.send([stored([90], null, run(400, 4), 4)]);
    await holds(0, 1, run(400, 4));
    await holds(0, 0);
  });

  it('the events of an endpoint of a restarted engine count from the beginning', async () => {
    const { publisher, holds, counts } = await following(false);
    await publisher.send(blocks(0, 2));
    await holds(0, 2);
    publisher.next = 0;
    await publisher.send([stored([90], null, run(400, 4), 4)]);
    await holds(0, 1, run(400, 4));
    await holds(0, 0);
    expect(counts.restarts).toBe(1);
  });

  it('the blocks of an endpoint whose process has ended are gone before an event of the next one comes', async () => {
    const { publisher, holds, made, matched, index } = await following(false);
    await publisher.send(blocks(0, 2));
    await holds(0, 2);
    const forgotten = vi.spyOn(index, 'clearEndpoint');
    made.restarted(0, 1, 'ended');
    expect(forgotten.mock.calls).toEqual([[0, 'engine-restarted']]);
    expect(matched(run(0, 40))[0]).toBe(0);
    expect(made.readings()[0]?.blocks).toBe(0);
    publisher.next = 0;
    await publisher.send([stored([90], null, run(400, 4), 4)]);
    await holds(0, 1, run(400, 4));
    made.restarted(0, 1, 'started');
    expect(matched(run(400, 4))[0]).toBe(1);
  });

  it('blocks of an endpoint with a later start time are gone, unless its events have shown the restart', async () => {
    const { publisher, holds, made, matched } = await following(false);
    await publisher.send(blocks(0, 2));
    await holds(0, 2);
    publisher.next = 0;
    await publisher.send([stored([90], null, run(400, 4), 4)]);
    await holds(0, 1, run(400, 4));
    made.restarted(0, 1, 'started');
    expect(matched(run(400, 4))[0]).toBe(1);
    made.restarted(0, 1, 'started');
    expect(matched(run(400, 4))[0]).toBe(0);
  });

  it('the events of an endpoint end with the endpoint', async () => {
    const { publisher, holds, made, counts } = await following(false);
    await publisher.send(blocks(0, 2));
    await holds(0, 2);
    made.setEndpoints([]);
    expect(made.readings()).toEqual([]);
    const before = counts.messages;
    await publisher.send(blocks(2, 4));
    made.setEndpoints([{ ...assignment(0), generation: 2 }]);
    await eventually('the new subscription', async () => {
      await publisher.send([stored([90], null, run(400, 4), 4)]);
      return counts.messages > before;
    });
    expect(made.readings()[0]?.blocks).toBe(1);
  });

  it('the events of an endpoint of data-parallel ranks come from a port of their own', async () => {
    const [zero, one] = [await engine(), await engine()];
    const difference = portOf(one.address) - portOf(zero.address);
    const [low, rank] = difference > 0 ? [zero, one] : [one, zero];
    const { made, holds } = feed({ connect: { port: portOf(low.address), replayPort: undefined } });
    made.setEndpoints([assignment(0, `pod-rank-${Math.abs(difference)}`)]);
    await eventually('the subscription', async () => {
      await rank.send(blocks(0, 2));
      return made.counts.messages > 0;
    });
    await holds(0, 2);
  });

  it('the events of an endpoint are not followed where the configuration leaves the endpoint out', () => {
    const { made } = feed({ connect: { port: 1, replayPort: undefined } });
    const silent = assignment(1);
    made.setEndpoints([assignment(0), { ...silent, endpoint: { ...silent.endpoint, labels: { silent: '' } } }]);
    expect(made.readings().map(({ slot }) => slot)).toEqual([0]);
  });
});

describe('an endpoint that tells nothing', () => {
  it('an endpoint that tells nothing is named until its first event, and again when its process ends', async () => {
    const { publisher, made } = await following(false);
    expect(made.silent()).toEqual([]);
    made.setEndpoints([assignment(0), assignment(1)]);
    expect(made.silent().map(({ slot }) => slot)).toEqual([1]);
    made.restarted(0, 1, 'ended');
    expect(made.silent().map(({ slot }) => slot)).toEqual([0, 1]);
    expect(made.readings()[0]?.state).toBe('waiting');
    publisher.next = 0;
    await publisher.send([cleared]);
    await eventually('the event', () => made.silent().every(({ slot }) => slot !== 0));
  });

  it('an endpoint that tells nothing keeps what was sent to it, until an event takes its place', async () => {
    const publisher = await engine();
    const connect = { port: portOf(publisher.address), replayPort: undefined };
    const { made, index, chain, matched, placed, problems, holds } = feed({ connect, speculativeTtlMs: 20 });
    made.setEndpoints([assignment(0)]);
    made.judgeByPlacements(assignment(0));
    expect(made.readings()[0]?.state).toBe('untold');
    expect(placed).toEqual([[0, true]]);
    const { blocks: sent } = chain.chain({ ids: Uint32Array.from(run(0, 40)), features: [] }, 'm', undefined, 4);
    index.store(0, undefined, sent);
    const hashes = BigUint64Array.from({ length: sent }, (_, block) => chain.hash(block));
    made.speculated(0, 1, hashes);
    made.setEndpoints([assignment(0), assignment(1)]);
    made.speculated(1, 1, hashes);
    await eventually('the end of what was sent after it', () => made.counts.expired === hashes.length);
    expect(matched(run(0, 40))[0]).toBe(10);
    await eventually('the first event', async () => {
      await publisher.send(blocks(0, 2));
      return made.counts.messages > 0;
    });
    await holds(0, 2);
    expect(placed).toEqual([
      [0, true],
      [0, false],
    ]);
    expect(made.readings()[0]?.state).toBe('live');
    expect(problems).toEqual(['default/pod-0: its engine tells of its blocks now']);
  });

  it('an endpoint that tells nothing and leaves is no longer judged by what was sent', () => {
    const { made, placed } = feed({ connect: { port: 1, replayPort: undefined } });
    made.setEndpoints([assignment(0)]);
    made.judgeByPlacements({ ...assignment(0), generation: 2 });
    expect(placed).toEqual([]);
    made.judgeByPlacements(assignment(0));
    made.setEndpoints([]);
    expect(placed).toEqual([
      [0, true],
      [0, false],
    ]);
  });
});

describe('engines that connect by themselves', () => {
  async function listening() {
    const listener = feed({ bind: 'tcp://127.0.0.1:*' });
    await listener.made.start();
    listener.made.setEndpoints([assignment(0), assignment(1)]);
    const connect = async (topic: string) => {
      const publisher = await engine(listener.made.address!, true);
      publisher.topic = topic;
      return publisher;
    };
    return { ...listener, connect };
  }

  it.each(['kv@127.0.0.1:8001@m', 'kv@pod-1@m'])(
    'engines that connect by themselves say in the topic %s who they are',
    async (topic) => {
      const { connect, holds, counts } = await listening();
      const publisher = await connect(topic);
      await eventually('the connection', async () => {
        await publisher.send(blocks(0, 2));
        return counts.messages > 0;
      });
      await holds(1, 2);
    },
  );

  it('engines that connect by themselves are live from their first event on, also when they hold nothing', async () => {
    const { connect, made, counts } = await listening();
    expect(made.readings().map(({ state }) => state)).toEqual(['waiting', 'waiting']);
    const publisher = await connect('kv@pod-1@m');
    await eventually('the connection', async () => {
      await publisher.send([cleared]);
      return counts.messages > 0;
    });
    expect(made.readings().map(({ state }) => state)).toEqual(['waiting', 'live']);
  });

  it.each(['kv@127.0.0.1@m', 'kv@somebody@m', 'kv@'])(
    'engines that connect by themselves under the topic %s could be anybody',
    async (topic) => {
      const { connect, counts } = await listening();
      const publisher = await connect(topic);
      await eventually('the count', async () => {
        await publisher.send(blocks(0, 2));
        return (counts.dropped.get('unknown endpoint') ?? 0) > 0;
      });
      expect(counts.messages).toBe(0);
    },
  );

  it('engines that connect by themselves cannot be listened to on an address that is taken', async () => {
    const { made } = await listening();
    const second = feed({ bind: made.address! });
    await expect(second.made.start()).rejects.toThrow('kvEventsConfig.zmqEndpoint');
  });
});

describe('blocks that were sent to an endpoint', () => {
  it('blocks that were sent to an endpoint count as held for a while, longer when it tells of them', async () => {
    const { made, chain, index, matched, holds, counts, publisher } = await (async () => {
      const sending = await engine();
      const made = feed({ connect: { port: portOf(sending.address), replayPort: undefined }, speculativeTtlMs: 1_000 });
      made.made.setEndpoints([assignment(0)]);
      await eventually('the subscription', async () => {
        await sending.send([stored([1], null, run(0, 4), 4)]);
        return made.counts.messages > 0;
      });
      return { ...made, publisher: sending };
    })();
    expect(publisher.next).toBeGreaterThan(0);
    chain.chain({ ids: Uint32Array.from(run(0, 12)), features: [] }, 'm', undefined, 4);
    const hashes = chain.hashes(0, 3);
    index.insert(0, 3);
    made.speculated(0, 1, hashes);
    expect(matched(run(0, 12))[0]).toBe(3);
    await holds(0, 1, run(0, 12));
    expect([counts.speculated, counts.expired]).toEqual([3, 2]);
  });

  it('blocks that were sent to an endpoint of an endpoint that is gone are left alone', async () => {
    const { made, counts } = feed({ speculativeTtlMs: 1 });
    made.setEndpoints([{ ...assignment(0), generation: 2 }]);
    made.speculated(0, 1, BigUint64Array.of(1n));
    made.speculated(1, 1, BigUint64Array.of(1n));
    made.speculated(0, 2, BigUint64Array.of(1n));
    await eventually('the expiry', () => counts.expired === 1);
    expect(counts.speculated).toBe(3);
  });
});
