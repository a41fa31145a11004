import { describe, expect, it } from 'vitest';
import { playWhenQuiet, type QuietPlay, type Traffic } from '../../dist/src/picker/shards/play-when-quiet.js';

const PIECE_MS = 0.5;

/** A thread on which a piece takes `PIECE_MS`, and whose traffic is given by the clock. */
class QuietThread {
  now = 0;
  /** Times at which pieces were played, and at which plays were ended. */
  readonly pieces: number[] = [];
  readonly ended: number[] = [];
  /** Pieces between two pauses, the most of them. */
  longest = 0;
  #slice = 0;

  readonly traffic: (now: number) => Traffic;

  constructor(traffic: (now: number) => Traffic) {
    this.traffic = traffic;
  }

  play(bounds: Partial<QuietPlay> = {}) {
    return playWhenQuiet(() => this.#make(), {
      traffic: () => this.traffic(this.now),
      now: () => this.now,
      pause: async (ms) => {
        this.longest = Math.max(this.longest, this.#slice);
        this.#slice = 0;
        this.now += Math.max(1, ms);
      },
      timeMs: 100,
      quietMs: 50,
      giveUpMs: 1_000,
      ...bounds,
    });
  }

  *#make(): Generator<void, never> {
    try {
      for (;;) {
        this.pieces.push(this.now);
        this.#slice++;
        this.now += PIECE_MS;
        yield;
      }
    } finally {
      this.ended.push(this.now);
    }
  }
}

describe('a play in quiet times', () => {
  it('the play begins at once and takes slices of 2 ms, with turns for the sockets between', async () => {
    const thread = new QuietThread(() => 7);
    const { pieces, usedMs } = await thread.play();
    expect([pieces, usedMs, thread.longest]).toEqual([200, 100, 4]);
    expect([thread.pieces[0], thread.ended.length]).toEqual([1, 1]);
  });

  it('traffic ends what is under way within one slice, and the play begins anew after a quiet time', async () => {
    const thread = new QuietThread((now) => (now >= 60 && now < 200 ? now : 0));
    const { usedMs } = await thread.play();
    expect(usedMs).toBe(100);
    expect(thread.ended).toHaveLength(2);
    expect(thread.ended[0]).toBeLessThan(64);
    expect(thread.pieces.find((at) => at > 64)).toBeGreaterThanOrEqual(250);
  });

  it('the play does not begin while streams are open', async () => {
    const thread = new QuietThread((now) => (now < 300 ? 'busy' : 0));
    await thread.play();
    expect(thread.pieces[0]).toBeGreaterThanOrEqual(350);
  });

  it('the play is given up when the traffic does not end', async () => {
    const thread = new QuietThread((now) => now);
    expect(await thread.play()).toEqual({ pieces: 0, usedMs: 0 });
    expect(thread.now).toBeGreaterThanOrEqual(1_000);
  });

  it('the end of the shard ends the play', async () => {
    const thread = new QuietThread((now) => (now < 60 ? 0 : 'ended'));
    await thread.play();
    expect([thread.ended.length, thread.now < 64]).toEqual([1, true]);
  });
});
