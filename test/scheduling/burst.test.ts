import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assignBurst, type BurstRequest } from '../../dist/src/scheduling/producers/burst/assignment.js';
import { burstPrefixCacheProducer } from '../../dist/src/scheduling/producers/burst-prefix-cache-producer.js';
import { prefixCacheScorer } from '../../dist/src/scheduling/scorers/prefix-cache-scorer.js';
import { HookPool, idle } from './hook-pool.ts';

/** A chain whose n-th hash stands for its first n letters. */
function chainOf(prompt: string): BigUint64Array {
  return BigUint64Array.from(prompt, (_, i) => BigInt(`0x${Buffer.from(prompt.slice(0, i + 1)).toString('hex')}`));
}

const ALL = { maxPerEndpoint: Number.POSITIVE_INFINITY, minSharedBlocks: 0 };

/** Slots by request; `-` = left alone. Weights are 1 unless given. */
function assigned(
  prompts: readonly string[],
  endpoints: readonly number[],
  options = ALL,
  weights: readonly number[] = [],
): string {
  const requests: BurstRequest[] = prompts.map((prompt, i) => ({
    chain: chainOf(prompt),
    weight: weights[i] ?? 1,
    assigned: undefined,
  }));
  assignBurst(
    requests,
    endpoints.map((running, slot) => ({ slot, running })),
    options,
  );
  return requests.map((request) => request.assigned ?? '-').join('');
}

describe('the assignment of a burst', () => {
  it('the assignment of a burst puts equal prompts together, on one endpoint each', () => {
    expect(assigned(['aa', 'bb', 'aa', 'bb', 'aa'], [0, 0, 0])).toBe('01010');
  });

  it('the assignment of a burst does not assign requests without a shared beginning or without a prompt', () => {
    expect(assigned(['aa', 'bb', ''], [0, 0])).toBe('---');
    expect(assigned(['', ''], [0, 0])).toBe('--');
    expect(assigned(['aa', 'aa'], [])).toBe('--');
  });

  it('the assignment of a burst takes the longest prompts first, and the endpoint with less assigned, then with less running', () => {
    expect(assigned(['a', 'a', 'bbb', 'bbb'], [5, 1, 3])).toBe('2211');
    expect(assigned(['a', 'a', 'b', 'b', 'c', 'c', 'd', 'd'], [0, 0])).toBe('00110011');
  });

  it('the assignment of a burst spills a group over at the bound per endpoint, and beyond all bounds evenly', () => {
    expect(assigned(['a', 'a', 'a', 'a'], [0, 0, 0], { ...ALL, maxPerEndpoint: 2 })).toBe('0011');
    expect(assigned(['a', 'a', 'a', 'a', 'a'], [0, 0], { ...ALL, maxPerEndpoint: 2 })).toBe('00110');
  });

  it('the assignment of a burst puts prompts with a shared beginning together as far as the fair share allows', () => {
    const options = { ...ALL, minSharedBlocks: 2 };
    expect(assigned(['abcd', 'abce'], [0])).toBe('--');
    expect(assigned(['abcd', 'abce', 'xy'], [0, 0], options)).toBe('01-');
    expect(assigned(['qrstu', 'qrstu', 'abcd', 'abcd', 'abce'], [9, 0], options)).toBe('11000');
    expect(assigned(['abcd', 'abcd', 'abce', 'qr', 'qr', 'qr'], [0, 0], options)).toBe('000111');
    expect(assigned(['a', 'a', 'b'], [0, 0], options)).toBe('00-');
  });

  it('the assignment of a burst may balance by weight', () => {
    expect(assigned(['aaa', 'aaa', 'bb', 'bb', 'c', 'c'], [0, 0], ALL, [9, 9, 1, 1, 1, 1])).toBe('001111');
  });

  it('the assignment of a burst gives every member of a group an endpoint, and no endpoint more of one prompt than its bound', () => {
    const burst = fc.array(fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 3 }), { maxLength: 40 });
    fc.assert(
      fc.property(burst, fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 5 }), (prompts, count, most) => {
        const slots = assigned(prompts, Array(count).fill(0), { ...ALL, maxPerEndpoint: most });
        const groups = new Map<string, number[]>();
        for (const [i, prompt] of prompts.entries()) groups.set(prompt, [...(groups.get(prompt) ?? []), i]);
        for (const [prompt, members] of groups) {
          const where = members.map((i) => slots[i]!);
          if (prompt === '' || members.length === 1) expect(new Set(where)).toEqual(new Set(['-']));
          else {
            expect(where).not.toContain('-');
            const perSlot = Math.max(
              ...[...new Set(where)].map((slot) => where.filter((other) => other === slot).length),
            );
            expect(perSlot).toBeLessThanOrEqual(Math.max(most, Math.ceil(members.length / count)));
          }
        }
      }),
    );
  });
});

const PRODUCER = { definition: burstPrefixCacheProducer, name: 'burst' };

function burst(count: number, parameters: object = {}, scorer: object = {}): HookPool {
  return new HookPool(
    [
      { ...PRODUCER, parameters: { windowDurationMs: 1, ...parameters } },
      { definition: prefixCacheScorer, parameters: { prefixMatchInfoProducerName: 'burst', ...scorer } },
    ],
    idle(count),
  );
}

/** Holds requests with these prompts together. @returns their endpoints and scores */
async function together(pool: HookPool, prompts: readonly string[], subset?: readonly string[]) {
  const held = prompts.map((prompt) => {
    const scan = pool.chains.push(chainOf(prompt)) - 1;
    const request = pool.begin();
    const asked = { promptBytes: 400, ...(subset === undefined ? {} : { subset }) };
    const wait = pool.plugins.hold(request, {
      scan,
      model: 'm',
      targetModel: 'm',
      promptBytes: 400,
      media: [],
      subset,
    });
    return { request, asked, wait };
  });
  await Promise.all(held.map(({ wait }) => wait));
  return held.map(({ request, asked, wait }) => {
    const outcome = pool.schedule(asked, request);
    if (outcome.kind === 'rejected') throw new Error(outcome.message);
    const { address, endpoint } = outcome.endpoints[0]!;
    outcome.charge.release();
    return { name: endpoint.name, score: outcome.scores!.get(address)!, held: wait !== undefined };
  });
}

describe('burst-prefix-cache-producer', () => {
  it('burst-prefix-cache-producer tells a full match where it assigned a request', async () => {
    const placed = await together(burst(3), ['aa', 'bb', 'aa', 'bb']);
    expect(placed.map(({ name }) => name)).toEqual(['pod-0', 'pod-1', 'pod-0', 'pod-1']);
    expect(placed.map(({ score }) => score)).toEqual([1, 1, 1, 1]);
  });

  it('burst-prefix-cache-producer has no match for a request that shares with no other', async () => {
    const [placed] = await together(burst(1), ['aa']);
    expect(placed).toEqual({ name: 'pod-0', score: 0, held: true });
  });

  it('burst-prefix-cache-producer counts the length of the match where the scorer does', async () => {
    // 400 bytes are 100 tokens: 0.5 × 1 + 0.5 × (100 / 200)².
    const [placed] = await together(burst(2, {}, { matchLengthWeight: 0.5, matchLengthScaleTokens: 200 }), [
      'aa',
      'aa',
    ]);
    expect(placed!.score).toBeCloseTo(0.625, 6);
  });

  it('burst-prefix-cache-producer assigns among what the requests may use', async () => {
    const placed = await together(burst(3), ['aa', 'aa'], ['10.0.0.3']);
    expect(placed.map(({ name }) => name)).toEqual(['pod-2', 'pod-2']);
  });

  it('burst-prefix-cache-producer does not hold more than its bound', async () => {
    const placed = await together(burst(2, { maxBatchSize: 2 }), ['aa', 'aa', 'aa']);
    expect(placed.map(({ held }) => held)).toEqual([true, true, false]);
  });

  it('burst-prefix-cache-producer lets everyone go when the shard ends', async () => {
    const pool = burst(2, { windowDurationMs: 10_000 });
    const waiting = together(pool, ['aa', 'aa']);
    pool.plugins.close();
    expect(await waiting).toHaveLength(2);
  });

  it('burst-prefix-cache-producer begins a new burst when one has ended', async () => {
    const pool = burst(2);
    await together(pool, ['aa', 'aa']);
    const [placed] = await together(pool, ['aa']);
    expect(placed!.score).toBe(0);
  });

  it.each([
    { windowDurationMs: 10_001 },
    { windowDurationMs: 0 },
    { maxPerReplica: 0 },
    { maxBatchSize: 0 },
    { balanceBy: 'x' },
  ])('burst-prefix-cache-producer refuses %j', (parameters) => {
    expect(burstPrefixCacheProducer.parameters.safeParse(parameters).success).toBe(false);
  });
});
