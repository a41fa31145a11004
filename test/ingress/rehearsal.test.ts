import { describe, expect, it } from 'vitest';
import { rehearsal } from '../../dist/src/ingress/rehearsal/rehearsal.js';
import { slotsInUse } from '../../dist/src/request/body-memory.js';
import { FakeShard } from './shard-fakes.ts';

/** More pieces than all scenes of a rehearsal have. */
const PIECES = 400;

async function play(shard: FakeShard, pieces: number): Promise<Generator<void, never>> {
  const scenes = rehearsal(shard.opener);
  for (let i = 0; i < pieces; i++) {
    scenes.next();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return scenes;
}

describe('the rehearsal', () => {
  it('a rehearsal plays whole exchanges, streams that are reset before they begin, and refusals', async () => {
    const shard = new FakeShard();
    await play(shard, PIECES);
    expect(shard.decisions.length).toBeGreaterThan(100);
    const statuses = new Set(shard.recorder.calls.filter(([name]) => name === 'streamClosed').map(([, code]) => code));
    expect([...statuses]).toEqual(expect.arrayContaining(['OK', 'Canceled']));
    expect(shard.recorder.calls.some(([name]) => name === 'overloaded')).toBe(true);
  });

  it('a rehearsal that ends at any piece holds no stream, no byte and no slot', async () => {
    for (let pieces = 1; pieces < 120; pieces += 7) {
      const shard = new FakeShard();
      const scenes = await play(shard, pieces);
      scenes.return(undefined as never);
      await new Promise((resolve) => setImmediate(resolve));
      expect([pieces, shard.opener.load()]).toEqual([
        pieces,
        { openStreams: 0, bufferedBytes: 0, silentStreams: 0, waiting: 0 },
      ]);
      expect(slotsInUse()).toBe(0);
    }
  });
});
