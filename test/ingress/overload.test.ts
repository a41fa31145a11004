import { describe, expect, it } from 'vitest';
import { requestBody, requestHeaders } from './envoy-messages.ts';
import { FakeShard, type ProxySide } from './shard-fakes.ts';

const PATH = { ':method': 'POST', ':path': '/v1/completions' };
const BODY = '{"model":"m","prompt":"hello"}';
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A shard whose decisions take 0.2 ms each. */
function slowShard(): FakeShard {
  const shard: FakeShard = new FakeShard({
    bounds: { maxStreams: 100_000 },
    schedule: () => {
      shard.clock += 0.2;
      return shard.place('10.0.0.1:8000');
    },
  });
  return shard;
}

/** Offers two requests in the time that one takes. */
async function overload(shard: FakeShard, ms: number): Promise<void> {
  const end = shard.clock + ms;
  let due = shard.clock;
  while (shard.clock < end) {
    for (; due <= shard.clock; due += 0.1) shard.open().say(requestHeaders(PATH), requestBody(BODY, true));
    await turn();
    shard.clock += 0.1;
  }
}

describe('an overload', () => {
  it('an overload of more than half a second leaves no more waiting than the thread serves in one turn', async () => {
    const shard = slowShard();
    // Half a second that may be a burst, as long to serve what came in it, and some more.
    await overload(shard, 1_500);
    // 128 that may wait in any case, and 16 that are taken every 200 ms.
    expect(shard.opener.load().waiting).toBeLessThanOrEqual(144);
    expect(shard.decisions.length).toBeGreaterThan(7_000);
  });

  it('an overload holds bytes of what waits, and gives them back when the proxy resets it', async () => {
    const shard = slowShard();
    const proxies: ProxySide[] = [];
    shard.clock += 1;
    const first = shard.open().say(requestHeaders(PATH));
    for (let i = 0; i < 100; i++) {
      shard.clock += 0.2;
      proxies.push(shard.open().say(requestHeaders(PATH)));
    }
    const { waiting, bufferedBytes } = shard.opener.load();
    expect([waiting > 0, bufferedBytes > 0]).toEqual([true, true]);
    for (const proxy of [first, ...proxies]) proxy.close(true);
    expect(shard.opener.load()).toMatchObject({ openStreams: 0, bufferedBytes: 0 });
    await turn();
    expect(shard.decisions).toEqual([]);
  });
});

describe('a stream that goes first', () => {
  it('a stream that goes first is decided at once while others wait for their turn', async () => {
    const shard = slowShard();
    await overload(shard, 1_000);
    const before = shard.decisions.length;
    expect(shard.opener.load().waiting).toBeGreaterThan(0);
    const first = shard.open();
    first.goesFirst = true;
    first.say(requestHeaders(PATH), requestBody(BODY, true));
    expect([shard.decisions.length, first.replies[0]?.kind]).toEqual([before + 1, 'requestHeaders']);
  });
});

describe('requests that are reset before their turn', () => {
  it('requests that are reset while they wait leave the queue at once and keep no other from it', () => {
    const shard = new FakeShard({ bounds: { maxStreams: 100_000, maxBufferedBytes: 1e9 } });
    shard.open().say(requestHeaders(PATH));
    shard.clock += 6;
    const waiting = Array.from({ length: 4_096 }, () => shard.open().say(requestHeaders(PATH)));
    expect(shard.opener.load().waiting).toBe(4_096);
    for (const proxy of waiting) proxy.close(true);
    expect(shard.opener.load().waiting).toBe(0);
    expect(shard.open().say(requestHeaders(PATH)).replies).toEqual([]);
  });

  it('header blocks of a flood of resets do not make the turn budget refuse others, however old they are', () => {
    const shard = new FakeShard();
    shard.clock = 10_000;
    const { turnAway } = shard.opener;
    for (let i = 0; i < 3_000; i++) {
      shard.clock++;
      expect(turnAway!(shard.clock - 300, false, true)).toBeUndefined();
    }
    expect(turnAway!(shard.clock, false, false)).toBeUndefined();
  });
});

describe('a stream that ends before its first message', () => {
  it('a stream that ends before its first message counts as a started and cancelled call, and as nothing else', () => {
    const shard = new FakeShard();
    shard.clock = 30;
    shard.opener.abandoned?.(10);
    expect(shard.recorder.calls).toEqual([['streamOpened'], ['streamClosed', 'Canceled', 0.02]]);
    expect(shard.opener.load()).toMatchObject({ openStreams: 0, bufferedBytes: 0 });
  });
});
