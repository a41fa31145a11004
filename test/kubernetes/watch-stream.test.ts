import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { readWatch, type WatchEvent } from '../../dist/src/kubernetes/watch-stream.js';

const PIECES = 6;
const piece = (number: number) => `${JSON.stringify({ type: 'MODIFIED', object: { number } })}\n`;

/** A burst of events whose reading takes some time each, and the events of each turn of the event loop. */
async function burst(eventMs: number): Promise<{ readonly inTurns: readonly number[]; readonly seen: unknown[] }> {
  const stream = new PassThrough();
  const inTurns: number[] = [];
  const seen: unknown[] = [];
  let inTurn = 0;
  const read = readWatch(stream as unknown as IncomingMessage, {
    events: (events: readonly WatchEvent[]) => {
      seen.push(...events.map(({ object }) => (object as { number: number }).number));
      if (inTurn++ === 0) {
        setImmediate(() => {
          inTurns.push(inTurn);
          inTurn = 0;
        });
      }
      const until = performance.now() + eventMs;
      while (performance.now() < until);
    },
    heard: () => undefined,
    silenceMs: () => 60_000,
  });
  for (let number = 0; number < PIECES; number++) stream.write(piece(number));
  stream.end();
  await read;
  await nextTurn();
  return { inTurns, seen };
}

describe('a burst of watch events', () => {
  it('a burst whose events take long leaves turns of the event loop to others, and none of it is lost', async () => {
    const { inTurns, seen } = await burst(9);
    expect(inTurns).toEqual(Array.from({ length: PIECES }, () => 1));
    expect(seen).toEqual(Array.from({ length: PIECES }, (_, number) => number));
  });

  it('a burst of quick events is read in one turn', async () => {
    expect((await burst(0)).inTurns).toEqual([PIECES]);
  });
});
