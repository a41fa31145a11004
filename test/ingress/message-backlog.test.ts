import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MessageBacklog } from '../../dist/src/ingress/message-backlog.js';
import { slabBytes } from '../../dist/src/request/slabs.js';
import { decodeReply, requestBody, requestHeaders } from './envoy-messages.ts';
import { FakeShard } from './shard-fakes.ts';

describe('the messages of a stream that waits', () => {
  it('waiting messages come out as they went in, whatever their sizes, until they are stopped', () => {
    const sizes = fc.array(fc.nat(20_000), { maxLength: 12 });
    fc.assert(
      fc.property(sizes, fc.nat(12), (lengths, stopAt) => {
        const backlog = new MessageBacklog();
        const messages = lengths.map((length, index) => Buffer.alloc(length, index + 1));
        for (const message of messages) {
          const copy = Buffer.concat([Buffer.from([9]), message]);
          backlog.add(copy, 1, copy.length);
          copy.fill(0xdd);
        }
        const bytes = lengths.reduce((sum, length) => sum + length, 0);
        expect(backlog.heldBytes).toBeGreaterThanOrEqual(bytes);
        const taken: Buffer[] = [];
        backlog.drain((buffer, from, to) => {
          taken.push(Buffer.from(buffer.subarray(from, to)));
          return taken.length < stopAt;
        });
        expect(taken).toEqual(messages.slice(0, Math.max(1, stopAt)));
        expect(backlog.heldBytes).toBe(0);
      }),
    );
  });

  it('waiting messages that are dropped leave their memory to the next ones', () => {
    const holdOne = () => {
      const backlog = new MessageBacklog();
      backlog.add(Buffer.alloc(100_000), 0, 100_000);
      backlog.drop();
      expect(backlog.heldBytes).toBe(0);
    };
    holdOne();
    const bytes = slabBytes();
    // Without their release more than a slab of 32 MiB.
    for (let i = 0; i < 400; i++) holdOne();
    expect(slabBytes()).toBe(bytes);
  });
});

describe('an overloaded shard', () => {
  it('an overloaded shard turns a stream away that is too old before anything is made for it', () => {
    const shard = new FakeShard();
    shard.clock = 10_000;
    expect(shard.opener.turnAway!(9_000, false, false)).toBeUndefined();
    const answers = Array.from({ length: 1_500 }, () => {
      shard.clock += 2;
      const answer = shard.opener.turnAway!(shard.clock - 300, false, false);
      return answer === undefined ? undefined : decodeReply(Buffer.from(answer));
    });
    const reply = answers.at(-1);
    expect([reply?.kind, reply?.status, reply?.headers['retry-after']]).toEqual(['immediate', 503, '1']);
    const refused = answers.filter((answer) => answer !== undefined).length;
    expect(shard.recorder.named('overloaded')).toHaveLength(refused);
    expect(shard.opener.load()).toMatchObject({ openStreams: 0, waiting: 0 });
  });

  it('an overloaded shard answers a stream that has grown too old in its queue, and releases what it holds', async () => {
    const shard = new FakeShard();
    shard.open().say(requestHeaders({ ':path': '/v1/chat/completions' }));
    shard.clock = 20;
    const late = shard.open().say(requestHeaders({ ':path': '/v1/chat/completions' }), requestBody('{}'));
    expect([shard.opener.load().waiting, shard.opener.load().bufferedBytes > 0]).toEqual([1, true]);
    shard.clock = 2_100;
    await new Promise((resolve) => setImmediate(resolve));
    expect([late.rejection?.status, late.ending]).toEqual([503, 'ended']);
    expect(shard.opener.load()).toMatchObject({ waiting: 0, bufferedBytes: 0 });
  });
});
