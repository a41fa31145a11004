import { describe, expect, it } from 'vitest';
import { ProgramTable } from '../../dist/src/core/index.js';
import type { EndpointViews } from '../../dist/src/scheduling/plugin.js';
import { chooseSource, shareOf } from '../../dist/src/scheduling/producers/p2p-source-producer.js';
import { load } from '../config/configuration-text.ts';
import { pickMax } from '../core/pool.ts';
import { endpointOf } from './hook-pool.ts';
import { ProfilePool, role } from './profile-pool.ts';

const HEADER = 'x-kv-cache-source-host-port';
const TARGET = 'test-epp-endpoint-selection';
const EVERY: readonly string[] = ['10.0.0.1', '10.0.0.2', '10.0.0.3'];
/** 30 blocks of 64 tokens of four bytes. */
const PROMPT = 'x'.repeat(30 * 256);

/** Endpoints by slot that hold so many blocks, with so many requests waiting. */
function views(matched: readonly number[], waiting: readonly number[] = []): EndpointViews {
  const slots = matched.map((_, slot) => slot);
  const at = (slot: number) => {
    const endpoint = endpointOf(slot);
    return { slot, address: `${endpoint.address}:${endpoint.port}`, endpoint };
  };
  return {
    slots,
    all: slots,
    at,
    slotOf: () => undefined,
    waiting: Float32Array.from(slots, (slot) => waiting[slot] ?? 0),
    running: new Float32Array(slots.length),
    kvUsage: new Float32Array(slots.length),
    inflight: new Uint32Array(slots.length),
    inflightTokens: new Uint32Array(slots.length),
    matchedBlocks: Uint32Array.from(matched),
    modelsOf: () => undefined,
    adaptersOf: () => undefined,
    factsVersion: 0,
    isKnown: () => true,
  };
}

const chosen = (endpoints: EndpointViews, shares: readonly number[]) =>
  shares.map((share) => chooseSource(endpoints, share)?.slot);

describe('the source of blocks', () => {
  it('the source of blocks is undefined when no endpoint holds blocks', () => {
    expect(chosen(views([]), [0.5])).toEqual([undefined]);
    expect(chosen(views([0, 0]), [0, 0.99])).toEqual([undefined, undefined]);
  });

  it('the source of blocks is one that holds most, or a block less', () => {
    expect(chosen(views([7, 9, 10, 8]), [0, 0.49, 0.51, 0.99])).toEqual([1, 1, 2, 2]);
  });

  it('the source of blocks is never an endpoint without blocks', () => {
    expect(chosen(views([0, 1, 0]), [0, 0.5, 0.99])).toEqual([1, 1, 1]);
  });

  it('the source of blocks is each of several equals, the more often the shorter its queue', () => {
    // Weights 1, 1/4, 1/4: the first has two thirds.
    const endpoints = views([5, 5, 5], [0, 3, 3]);
    expect(chosen(endpoints, [0, 0.66, 0.67, 0.83, 0.84, 0.999])).toEqual([0, 0, 1, 1, 2, 2]);
  });

  it('the source of blocks is drawn by FNV-1a of the request id', () => {
    // Test vectors of the authors: http://www.isthe.com/chongo/tech/comp/fnv/.
    expect([shareOf(''), shareOf('a'), shareOf('foobar')]).toEqual(
      [0x811c9dc5, 0xe40c292c, 0xbf9cf968].map((hash) => hash / 2 ** 32),
    );
  });
});

interface Shape {
  readonly parameters?: string;
  readonly producer?: string;
  readonly endpoints?: number;
}

function pool({ parameters = '{}', producer = '{type: approx-prefix-cache-producer}', endpoints = 3 }: Shape = {}) {
  const text = `plugins:
- ${producer}
- {type: p2p-source-producer, parameters: ${parameters}}
- {type: header-based-testing-filter}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: header-based-testing-filter}]}
`;
  const made = new ProfilePool(
    load(text, true),
    Array.from({ length: endpoints }, () => ({})),
  );
  /** Places the prompt on this endpoint. @returns the header that the model server gets */
  const header = (slot: number, prompt = PROMPT, subset = EVERY) => {
    const { headers, endpoints: picked } = made.place({ prompt, headers: { [TARGET]: `10.0.0.${slot + 1}` }, subset });
    expect(picked[0]!.slot).toBe(slot);
    expect(headers.has(HEADER)).toBe(true);
    return headers.get(HEADER);
  };
  return { made, header };
}

describe('p2p-source-producer', () => {
  it('p2p-source-producer names who held the prompt when another computes it', () => {
    const { header } = pool();
    expect(header(0)).toBeUndefined();
    expect(header(1)).toBe('10.0.0.1:8000');
  });

  it('p2p-source-producer names no source to an endpoint that holds the prompt itself, and when all hold it', () => {
    const { header } = pool();
    header(0);
    expect(header(0)).toBeUndefined();
    header(1);
    header(2);
    expect([header(0), header(1), header(2)]).toEqual([undefined, undefined, undefined]);
  });

  it('p2p-source-producer names no source for a prompt without a holder, without a prompt, and in a pool of one', () => {
    const { header } = pool();
    header(0);
    expect(header(1, 'y'.repeat(5000))).toBeUndefined();
    expect(header(1, '')).toBeUndefined();
    const single = pool({ endpoints: 1 });
    expect([single.header(0), single.header(0)]).toEqual([undefined, undefined]);
  });

  it('p2p-source-producer names no source that the request may not use', () => {
    const { header } = pool();
    header(0);
    expect(header(1, PROMPT, ['10.0.0.2', '10.0.0.3'])).toBeUndefined();
  });

  it('p2p-source-producer wants a lead of minCachedTokenDelta tokens', () => {
    const asked = (delta: number) => {
      const { header } = pool({ parameters: `{minCachedTokenDelta: ${delta}}` });
      header(0, PROMPT.slice(0, 10 * 256));
      return header(1);
    };
    expect([asked(1), asked(640 + 64 + 1), asked(100_000)]).toEqual(['10.0.0.1:8000', undefined, undefined]);
  });

  it.each([true, false])(
    'p2p-source-producer has matches looked up where no operation reads them only when told to (%s)',
    (matches) => {
      const { made, header } = pool({ endpoints: 1 });
      header(0);
      new ProgramTable(made.control).publish(0, [pickMax], { inserts: false, matches });
      expect(made.place({ prompt: PROMPT }).matchedBlocks > 0).toBe(matches);
    },
  );

  it('p2p-source-producer compares with the endpoint of the prefill profile where that ran', () => {
    const text = (profile: string) => `plugins:
- {type: disagg-profile-handler, parameters: {deciders: {prefill: always-disagg-pd-decider}}}
- {type: always-disagg-pd-decider}
- {type: p2p-source-producer, parameters: {prefillProfileName: ${profile}}}
- {type: decode-filter}
- {type: prefill-filter}
schedulingProfiles:
- {name: decode, plugins: [{pluginRef: decode-filter}]}
- {name: prefill, plugins: [{pluginRef: prefill-filter}]}
`;
    const headers = (profile: string) => {
      const made = new ProfilePool(load(text(profile), true), [role('decode'), role('prefill')]);
      // The decode endpoint alone holds the prompt.
      made.place({ prompt: PROMPT, subset: ['10.0.0.1'] });
      return made.place({ prompt: PROMPT }).headers.get(HEADER);
    };
    expect([headers('prefill'), headers('other')]).toEqual(['10.0.0.1:8000', undefined]);
  });

  it.each(['{minCachedTokenDelta: 0}', '{minCachedTokenDelta: 1.5}', '{minCachedTokens: 1}'])(
    'p2p-source-producer refuses %s',
    (given) => {
      expect(() => pool({ parameters: given })).toThrow('minCachedToken');
    },
  );

  it('p2p-source-producer refuses a producer that does not exist', () => {
    expect(() => pool({ parameters: '{prefixMatchInfoProducerName: nope}' })).toThrow('nope');
  });
});
