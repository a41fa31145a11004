import { describe, expect, it } from 'vitest';
import { EventStream } from '../../dist/src/kvevents/event-stream.js';
import { payload, removed, run, stored } from './engine-publisher.ts';
import { eventPool } from './pool.ts';

/** Message n stores block n + 1 of one long prompt. */
const message = (number: number) => payload(stored([number + 1], number === 0 ? null : number, run(number * 4, 4), 4));

function stream() {
  const pool = eventPool();
  const made = new EventStream(pool.blocks(), pool.counts);
  const receive = (number: number, bytes = message(number)) => made.receive(number, bytes, 'm');
  return { ...pool, made, receive, held: () => pool.matched(run(0, 400))[0] };
}

describe('the messages of one engine', () => {
  it('the messages of one engine begin with number 0', () => {
    const { receive, counts } = stream();
    expect(receive(0)).toEqual({ kind: 'done' });
    expect(receive(1)).toEqual({ kind: 'done' });
    expect(counts.messages).toBe(2);
  });

  it('the messages of one engine of which number 1 is heard first lack number 0', () => {
    const { receive } = stream();
    expect(receive(1)).toEqual({ kind: 'gap', from: 0 });
  });

  it('the messages of one engine that begin later lack what came before', () => {
    const { receive } = stream();
    expect(receive(7)).toEqual({ kind: 'gap', from: 0 });
  });

  it('the messages of one engine are applied once, however often they come', () => {
    const { receive, counts, held } = stream();
    for (const number of [0, 1, 1]) expect(receive(number)).toEqual({ kind: 'done' });
    expect(counts.messages).toBe(2);
    expect(held()).toBe(2);
  });

  it('the messages of one engine lack what is missing in their numbers, which a replay brings', () => {
    const { receive, made, held, counts } = stream();
    receive(0);
    expect(receive(4)).toEqual({ kind: 'gap', from: 1 });
    for (const number of [0, 1, 2, 3, 4, 5]) made.replay(number, message(number), 'm');
    expect(receive(4)).toEqual({ kind: 'done' });
    expect(receive(5)).toEqual({ kind: 'done' });
    expect(receive(6)).toEqual({ kind: 'done' });
    expect(held()).toBe(7);
    expect(counts.messages).toBe(7);
  });

  it('the messages of one engine that the engine has forgotten leave nothing that may be wrong', () => {
    const { receive, made, matched } = stream();
    receive(0);
    expect(receive(9).kind).toBe('gap');
    made.replay(8, payload(stored([50], null, run(800, 4), 4)), 'm');
    expect(matched(run(0, 4))[0]).toBe(0);
    expect(matched(run(800, 4))[0]).toBe(1);
  });

  it('lost events without a source are given up, with what they might have removed', () => {
    const { receive, made, held, matched } = stream();
    receive(0);
    expect(receive(9).kind).toBe('gap');
    made.giveUp(9);
    expect(receive(9, payload(stored([50], null, run(800, 4), 4)))).toEqual({ kind: 'done' });
    expect(held()).toBe(0);
    expect(matched(run(800, 4))[0]).toBe(1);
  });

  it('the messages of one engine that count anew come from an engine that was restarted: what it held is gone', () => {
    const { receive, counts, held } = stream();
    for (const number of [0, 1, 2]) receive(number);
    expect(receive(0, payload(removed([77])))).toEqual({ kind: 'done' });
    expect(held()).toBe(0);
    expect(counts.restarts).toBe(1);
    receive(1, message(0));
    expect(held()).toBe(1);
  });

  const UNREADABLE = Buffer.from([0xc1]);

  it('a message that cannot be read is counted and dropped, and what the endpoint holds stays', () => {
    const { receive, held, dropped, counts } = stream();
    receive(0);
    expect(receive(1, UNREADABLE)).toEqual({ kind: 'done' });
    expect(held()).toBe(1);
    expect(dropped()).toEqual({ malformed: 1 });
    expect(receive(2, payload(stored([2], 1, run(4, 4), 4)))).toEqual({ kind: 'done' });
    expect([held(), counts.clears, counts.gaps]).toEqual([2, 0, 0]);
  });

  it('messages that cannot be read show neither a restart nor a loss, whatever their numbers', () => {
    const { receive, held, dropped, counts } = stream();
    for (const number of [0, 1, 2]) receive(number);
    for (const number of [0, 2 ** 40, 1, 77, 3, 4, 5, 900])
      expect(receive(number, UNREADABLE)).toEqual({ kind: 'done' });
    expect([held(), counts.clears, counts.restarts, dropped()]).toEqual([3, 0, 0, { malformed: 8 }]);
    // The engine's own messages of these numbers count as before.
    for (const number of [3, 4, 5, 6]) expect(receive(number)).toEqual({ kind: 'done' });
    expect(held()).toBe(7);
  });

  it('a loss before a message that cannot be read shows at the next one', () => {
    const { receive } = stream();
    receive(0);
    expect(receive(3, UNREADABLE)).toEqual({ kind: 'done' });
    expect(receive(4)).toEqual({ kind: 'gap', from: 1 });
  });

  it('a message that cannot be read in a replay removes nothing', () => {
    const { receive, made, held, counts } = stream();
    receive(0);
    expect(receive(4)).toEqual({ kind: 'gap', from: 1 });
    made.replay(1, message(1), 'm');
    made.replay(2, UNREADABLE, 'm');
    made.replay(3, payload(stored([50], null, run(800, 4), 4)), 'm');
    expect([held(), counts.clears]).toEqual([2, 0]);
  });
});
