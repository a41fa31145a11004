import { describe, expect, it } from 'vitest';
import { differences, type Observation, outlived } from './faults/checker.ts';
import { FairClock, ROUND_MS_MAX } from './faults/fair-clock.ts';
import { RequestBook } from './faults/request-book.ts';

function view(picker: string, askedMs: number, own: number, peers: number): Observation {
  const endpoints = [{ address: 'e', own: { requests: own }, peers: { requests: peers } }];
  return { picker, askedMs, page: { connected: true, peers: [], endpoints } };
}

describe('the checker of replicas', () => {
  let nowMs = 0;
  function bookOf(pickers: readonly string[]) {
    nowMs = 0;
    const book = new RequestBook(() => nowMs, 6_000);
    const lives = pickers.map((picker) => Object.assign(book.begin(picker), { endpoint: 'e' }));
    return { book, lives };
  }

  it('a view with the requests that run has no violation', () => {
    const { book } = bookOf(['a', 'a', 'b']);
    expect(outlived(view('c', 0, 0, 3), book)).toEqual([]);
    expect(differences(view('a', 0, 2, 1), book)).toEqual([]);
  });

  it('a request that counts twice is a violation', () => {
    const { book } = bookOf(['a', 'b']);
    expect(outlived(view('c', 0, 0, 3), book)).toHaveLength(1);
  });

  it('a charge is a violation from one second after its request on, and not before', () => {
    const { book, lives } = bookOf(['a']);
    nowMs = 500;
    book.end(lives[0]!);
    expect(outlived(view('c', 1_500, 0, 1), book)).toEqual([]);
    expect(outlived(view('c', 1_501, 0, 1), book)).toHaveLength(1);
  });

  it('the requests of a dead picker end with it', () => {
    const { book } = bookOf(['a', 'b']);
    book.endAll('a');
    expect(outlived(view('c', 1_001, 0, 2), book)).toHaveLength(1);
    expect(differences(view('c', 0, 0, 1), book)).toEqual([]);
  });

  it('a request without an endpoint so far may count on each', () => {
    const { book } = bookOf([]);
    book.begin('a');
    expect(outlived(view('c', 0, 0, 1), book)).toEqual([]);
    expect(outlived(view('a', 0, 0, 1), book)).toHaveLength(1);
  });

  it('quiet views differ when a picker knows too few or too many', () => {
    const { book } = bookOf(['a', 'b']);
    expect(differences(view('c', 0, 0, 1), book)).toHaveLength(1);
    expect(differences(view('a', 0, 2, 1), book)).toHaveLength(1);
  });

  it('a round counts for its bound, however long it takes', () => {
    let wallMs = 0;
    const clock = new FairClock(() => wallMs);
    wallMs = 20;
    expect(clock.ms).toBe(20);
    wallMs = 10_000;
    clock.roundEnded();
    expect(clock.ms).toBe(ROUND_MS_MAX);
    wallMs = 10_010;
    expect(clock.ms).toBe(ROUND_MS_MAX + 10);
  });
});
