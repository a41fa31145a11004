import { describe, expect, it } from 'vitest';
import { readPoolsFile } from '../../dist/src/config/pools-file.js';

const read = (content: object, own?: string, max = 4) =>
  readPoolsFile(JSON.stringify(content), 'pools.yaml', { own, max });

describe('a pools file', () => {
  it('a pools file gives each pool its bounds', () => {
    const { pools } = read({ pools: [{ name: 'a', endpointsFile: 'a.yaml' }] });
    expect(pools).toEqual([{ name: 'a', endpointsFile: 'a.yaml', models: [], maxEndpoints: 64, indexBlocks: 262_144 }]);
  });

  it.each([
    [[{ name: 'a' }, { name: 'a' }], 'pools[1].name: "a" belongs to another pool already'],
    [[{ name: 'own' }], 'pools[0].name: "own" belongs to another pool already'],
    [
      [
        { name: 'a', models: ['m'] },
        { name: 'b', models: ['n', 'm'] },
      ],
      'pools[1].models[1]: "m" belongs to another pool already',
    ],
    [
      [
        { name: 'a', port: 9012 },
        { name: 'b', port: 9012 },
      ],
      'pools[1].port: 9012 belongs to another pool already',
    ],
    [
      [{ name: 'a', endpointsFile: 'a', inferencePool: { name: 'p' } }],
      'pools[0].inferencePool: endpointsFile and inferencePool exclude each other',
    ],
    [[{ name: '../a' }], 'pools[0].name: must be 1 to 63 letters'],
    [Array.from({ length: 5 }, (_, i) => ({ name: `p${i}` })), '5 pools are above --max-pools=4: raise the flag'],
    [
      [{ name: 'a', models: Array.from({ length: 257 }, (_, i) => `${i}-*`) }],
      '257 models end with *, at most 256 may',
    ],
  ])('a pools file with %j is refused with the field', (pools, text) => {
    expect(() => read({ pools }, 'own')).toThrow(text);
  });

  it('a pools file whose default is no pool is refused, and the own pool may be it', () => {
    expect(() => read({ default: 'x', pools: [] })).toThrow('default: there is no pool "x": name one of pools');
    expect(read({ default: 'own', pools: [] }, 'own').default).toBe('own');
  });
});
