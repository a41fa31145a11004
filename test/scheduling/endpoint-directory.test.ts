import { describe, expect, it } from 'vitest';
import { EndpointDirectory } from '../../dist/src/scheduling/endpoint-directory.js';
import { endpointOf } from './hook-pool.ts';

/** Names of the endpoints of one pick by its profile, as a request that picks the slot alone has them. */
function namesOf(directory: EndpointDirectory, slot: number, profile: string): string[] | undefined {
  return directory
    .solePicks(slot, profile)
    ?.get(profile)
    ?.map(({ endpoint }) => endpoint.id);
}

describe('a directory of endpoints', () => {
  it('a directory of endpoints has the same picks for all requests of one profile that pick an endpoint alone', () => {
    const directory = new EndpointDirectory();
    directory.apply([{ slot: 3, generation: 1, endpoint: endpointOf(3) }], []);
    expect(directory.solePicks(3, 'a')).toBe(directory.solePicks(3, 'a'));
    expect(directory.solePicks(3, 'a')!.get('a')).toBe(directory.alone(3));
    expect([...directory.solePicks(3, 'b')!.keys()]).toEqual(['b']);
    expect(directory.alone(3)).toEqual([directory.at(3)]);
  });

  it('a directory of endpoints forgets the picks of an endpoint that has left its slot', () => {
    const directory = new EndpointDirectory();
    directory.apply([{ slot: 3, generation: 1, endpoint: endpointOf(3) }], []);
    const before = namesOf(directory, 3, 'a');
    directory.apply([{ slot: 3, generation: 2, endpoint: endpointOf(4) }], []);
    const after = namesOf(directory, 3, 'a');
    directory.apply([], [3]);
    expect([before, after]).toEqual([[endpointOf(3).id], [endpointOf(4).id]]);
    expect([directory.alone(3), directory.solePicks(3, 'a')]).toEqual([undefined, undefined]);
  });

  it('a directory of endpoints finds an IPv6 address with and without brackets, on every port', () => {
    const directory = new EndpointDirectory();
    directory.apply([{ slot: 3, generation: 1, endpoint: { ...endpointOf(3), address: 'fd00::1' } }], []);
    for (const address of ['[fd00::1]:8000', '[fd00::1]', 'fd00::1']) expect(directory.resolve([address])).toEqual([3]);
    for (const address of ['[fd00::1x', 'xfd00::1]', '[fd00::1]:8001'])
      expect(directory.resolve([address])).toEqual([]);
  });
});
