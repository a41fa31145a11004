import { describe, expect, it } from 'vitest';
import { type Part, PartList } from '../../dist/src/picker/part.js';

/**
 * A list of parts by these names that notes each call; the part `failing` does not start, each drain takes `drainMs`.
 */
function noting(names: readonly string[], { failing = '', drainMs = 0 } = {}) {
  const calls: string[] = [];
  let now = 0;
  const part = (name: string): Part => ({
    start: async () => {
      calls.push(`start ${name}`);
      if (name === failing) throw new Error(`${name} is busy`);
    },
    drain: async (timeoutMs) => {
      calls.push(`drain ${name} ${timeoutMs}`);
      now += drainMs;
    },
    stop: async () => void calls.push(`stop ${name}`),
  });
  return { calls, list: new PartList(names.map(part), () => now) };
}

describe('a list of parts', () => {
  it('a list of parts starts the parts in their order', async () => {
    const { calls, list } = noting(['a', 'b', 'c']);
    await list.start();
    expect(calls).toEqual(['start a', 'start b', 'start c']);
  });

  it('a list of parts drains all parts in their order, then stops them in the reverse order', async () => {
    const { calls, list } = noting(['a', 'b']);
    await list.stop(250);
    expect(calls).toEqual(['drain a 250', 'drain b 250', 'stop b', 'stop a']);
  });

  it('a list of parts gives each part the drain time that the parts before it have left', async () => {
    const { calls, list } = noting(['a', 'b', 'c'], { drainMs: 150 });
    await list.stop(250);
    expect(calls.slice(0, 3)).toEqual(['drain a 250', 'drain b 100', 'drain c 0']);
  });

  it('a list of parts stops every part without a drain time when one does not start', async () => {
    const { calls, list } = noting(['a', 'b', 'c'], { failing: 'b' });
    await expect(list.start()).rejects.toThrow('b is busy');
    expect(calls).toEqual(['start a', 'start b', 'drain a 0', 'drain b 0', 'drain c 0', 'stop c', 'stop b', 'stop a']);
  });

  it('a list of parts drains again when it is told twice to stop, and stops each part once', async () => {
    const { calls, list } = noting(['a']);
    await Promise.all([list.stop(1_000), list.stop(0)]);
    expect(calls.toSorted()).toEqual(['drain a 0', 'drain a 1000', 'stop a']);
  });

  it('a list of parts leaves out parts that the configuration does not ask for', async () => {
    const calls: string[] = [];
    const list = new PartList([undefined, { start: () => void calls.push('start') }]);
    await list.start();
    await list.stop(0);
    expect(calls).toEqual(['start']);
  });
});
