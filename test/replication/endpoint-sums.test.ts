import { describe, expect, it } from 'vitest';
import { EndpointSums, type Row } from '../../dist/src/replication/endpoint-sums.js';
import type { LoadRow } from '../../dist/src/replication/messages.js';
import { seededRandom } from '../../dist/src/runtime/seeded-random.js';

const ENDPOINTS = [1n, 2n, 3n];

describe('sums of the loads of peers', () => {
  it('sums of the loads of peers are those of the rows that count, whatever was set, dropped and silenced before', () => {
    const random = seededRandom(7n);
    const below = (limit: number) => Math.floor(random() * limit);
    const sums = new EndpointSums();
    const rows: Row[] = [];
    for (let step = 0; step < 3_000; step++) {
      const load = rowOf(ENDPOINTS[below(3)]!, below(1_000), step);
      const known = rows[below(40)];
      if (known === undefined) {
        const row = sums.open(load);
        rows.push(row);
        sums.set(row, load, below(2) === 0);
      } else if (below(8) === 0) {
        rows.splice(rows.indexOf(known), 1);
        sums.drop(known.load.endpoint, known);
      } else {
        sums.set(known, { ...load, endpoint: known.load.endpoint }, below(2) === 0);
      }
      for (const endpoint of sums.takeChanged()) {
        const counted = rows.filter((row) => row.counts && row.load.endpoint === endpoint);
        const { requests, held } = sums.take(endpoint);
        expect(requests).toBe(counted.reduce((sum, { load: { requests } }) => sum + requests, 0));
        expect(held).toBe(counted.reduce((sum, { load: { held } }) => sum + held, 0));
      }
    }
  });

  it('sums of the loads of peers count a request that was sent once, also when its peer was silent in between', () => {
    const sums = new EndpointSums();
    const row = sums.open(rowOf(1n, 0, 0));
    sums.set(row, rowOf(1n, 0, 5), true);
    expect(sums.take(1n).charged).toBe(5);
    sums.set(row, row.load, false);
    sums.set(row, rowOf(1n, 0, 7), true);
    expect([sums.take(1n).charged, sums.take(1n).charged]).toEqual([2, 0]);
  });

  it('an endpoint that has changed is named once, also when its last row has gone', () => {
    const sums = new EndpointSums();
    const row = sums.open(rowOf(1n, 3, 0));
    sums.set(row, row.load, true);
    sums.set(row, rowOf(1n, 4, 0), true);
    expect(sums.takeChanged()).toEqual([1n]);
    sums.drop(1n, row);
    expect([sums.takeChanged(), sums.takeChanged(), sums.take(1n).requests]).toEqual([[1n], [], 0]);
  });
});

function rowOf(endpoint: bigint, requests: number, charged: number): LoadRow {
  return { endpoint, requests, tokens: 0, prefill: 0, prompt: 0, output: 0, pending: 0, held: 2 * requests, charged };
}
