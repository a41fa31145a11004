import { describe, expect, it } from 'vitest';
import { decodeEvents } from '../../dist/src/kvevents/decode.js';
import { cleared, packed, payload, removed, stored } from './engine-publisher.ts';

const [U63, U64] = [2n ** 63n, 2n ** 64n];
const only = (...events: readonly unknown[]) => decodeEvents(payload(...events)).events[0];
const plain = {
  kind: 'stored',
  hashes: [7n],
  parent: undefined,
  tokens: Uint32Array.of(1, 2),
  blockTokens: 2,
  tier: 'gpu',
  adapter: undefined,
  extras: [],
  group: undefined,
  groupKind: undefined,
};

describe('events of engines', () => {
  it('events of engines come as lists', () => {
    const { events, unknown } = decodeEvents(payload(stored([7], null, [1, 2], 2), removed([7, 8]), cleared));
    expect(unknown).toBe(0);
    expect(events).toEqual([
      plain,
      { kind: 'removed', hashes: [7n, 8n], tier: 'gpu', group: undefined },
      { kind: 'cleared' },
    ]);
  });

  it('events of engines come as maps, in a batch that is a map', () => {
    const event = {
      type: 'BlockStored',
      block_hashes: [7],
      parent_block_hash: 6,
      token_ids: [1, 2],
      block_size: 2,
      event_version: 1,
    };
    const batch = packed({ ts: 1.5, events: [event, { type: 'AllBlocksCleared' }], data_parallel_rank: null });
    expect(decodeEvents(batch).events).toEqual([{ ...plain, parent: 6n }, { kind: 'cleared' }]);
  });

  it('events of engines name blocks by whole numbers of 64 bits, signed or not, or by the last eight bytes of a digest', () => {
    const digest = Buffer.from('00000000000000000000000000000000000000000000000080000000000000ff', 'hex');
    expect(only(removed([U63 + 5n, -1, -(2n ** 60n)]))).toMatchObject({
      hashes: [U63 + 5n, U64 - 1n, U64 - 2n ** 60n],
    });
    expect(only(stored([digest], null, [1, 2], 2))).toMatchObject({ hashes: [0x80000000000000ffn] });
  });

  it('events of engines begin a prompt when the parent is nothing, or 0', () => {
    expect(only(stored([7], 0, [1, 2], 2))).toEqual(plain);
  });

  it('events of engines tell the tier, the adapter and the group of a cache', () => {
    expect(only(stored([7], null, [1, 2], 2, 3, 'CPU_PINNED', 'sql', null, 1, 'sliding_window', 128))).toMatchObject({
      tier: 'host',
      adapter: 'sql',
      group: 1,
      groupKind: 'sliding_window',
    });
    expect(only(removed([7], 'DISK', 2))).toMatchObject({ tier: 'disk', group: 2 });
  });

  it.each([
    ['GPU', 'gpu'],
    ['CPU', 'host'],
    ['CPU_PINNED', 'host'],
    ['DISK', 'disk'],
    ['STORAGE', 'disk'],
    ['FS', 'disk'],
    ['OBJ', 'remote'],
    ['EXTERNAL', 'remote'],
    ['LATER_THAN_THIS', 'remote'],
  ])('events of engines tell of blocks on the medium %s: %s', (medium, tier) => {
    expect(only(removed([7], medium))).toMatchObject({ tier });
  });

  it('events of engines tell of blocks of another locality, and of more than is read', () => {
    const event = {
      type: 'BlockStored',
      block_hashes: [7],
      token_ids: [1, 2],
      block_size: 2,
      medium: 'CPU',
      locality: 'REMOTE',
      event_version: 7,
      session_id: ['a', { b: 1 }],
      ownership: 'bucket',
      extra_keys: [[{ type: 'lora', name: 'sql' }]],
      not_known_yet: new Uint8Array(3),
    };
    const removal = { type: 'BlockRemoved', block_hashes: [7], locality: 'LOCAL', ownership: 4, session_id: null };
    expect(decodeEvents(payload(event, removal, { type: 'LaterEvent', anything: 1 }))).toEqual({
      events: [
        { ...plain, tier: 'remote', owner: 'bucket', adapter: 'sql', extras: [{ names: [], salt: undefined }] },
        { kind: 'removed', hashes: [7n], tier: 'gpu', owner: undefined, group: undefined },
      ],
      unknown: 1,
    });
  });

  it.each([
    ['EXTERNAL', 'LOCAL', 'disk'],
    ['CPU', 'local', 'host'],
    ['STORAGE', 'REMOTE', 'remote'],
    ['EXTERNAL', undefined, 'remote'],
  ])('events of engines tell of blocks on the medium %s with locality %s: %s', (medium, locality, tier) => {
    const event = { type: 'BlockRemoved', block_hashes: [7], medium, locality };
    expect(only(event)).toMatchObject({ tier });
  });

  it('events of engines may belong to an adapter that they do not name', () => {
    expect(only(stored([7], null, [1, 2], 2, 3))).toMatchObject({ adapter: { unnamed: true } });
  });

  it.each<[string, unknown, object]>([
    [
      'digests with offsets',
      [
        ['cat', 3],
        ['dog', -1],
      ],
      { names: ['cat', 'dog'], salt: undefined },
    ],
    ['bytes', [Buffer.from([1, 255])], { names: ['01ff'], salt: undefined }],
    ['a bare salt', ['pepper'], { names: [], salt: 'pepper' }],
    ["the adapter's name", ['sql', 'pepper'], { names: [], salt: 'pepper' }],
    [
      'typed maps',
      [
        { type: 'lora', name: 'sql' },
        { type: 'mm', modality: 'image', hash: 'cat', block_offset: 2 },
        { type: 'cache_salt', salt: 'pepper' },
      ],
      { names: ['cat'], salt: 'pepper' },
    ],
    [
      'typed maps of embeddings and of earlier keys',
      [
        { type: 'prompt_embeds', hash: Buffer.from([1, 255]) },
        { type: 'legacy', value: ['cat', 3] },
        { type: 'legacy', value: 'sql' },
      ],
      { names: ['01ff', 'cat'], salt: undefined },
    ],
    ['maps of an unknown type', [{ type: 'later', of: 'x', at: 2 }], { names: ['later x 2'], salt: undefined }],
    [
      'the same image twice',
      [
        ['cat', 3],
        ['cat', 9],
      ],
      { names: ['cat'], salt: undefined },
    ],
    ['nothing', null, { names: [], salt: undefined }],
  ])('events of engines tell what else a block holds: %s', (_name, extra, expected) => {
    expect(only(stored([7], null, [1, 2], 2, 1, 'GPU', 'sql', [extra]))).toMatchObject({ extras: [expected] });
  });

  it('events of engines of unknown kinds are counted', () => {
    expect(decodeEvents(payload(['BlockMoved', 1], cleared))).toEqual({ events: [{ kind: 'cleared' }], unknown: 1 });
  });

  it.each<[string, Buffer]>([
    ['no msgpack', Buffer.from([0xc1])],
    ['a number', packed(5)],
    ['no list of events', packed([1.5, 'x'])],
    ['an event without a type', payload([5])],
    ['hashes that are no list', payload(removed(5 as never))],
    ['a hash of text', payload(['BlockRemoved', ['x']])],
    ['a digest that is too short', payload(['BlockRemoved', [Buffer.alloc(4)]])],
    ['tokens that are none', payload(stored([7], null, [1.5, 2], 2))],
    ['a block size of 0', payload(stored([7], null, [1, 2], 0))],
  ])('events of engines are refused when they are %s', (_name, bytes) => {
    expect(() => decodeEvents(bytes)).toThrow();
  });
});
