import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { EndpointFacts } from '../../dist/src/contract/endpoint-facts.js';
import { FactsBoard } from '../../dist/src/picker/control/endpoint-facts.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function makeBoard(adapters = true) {
  const told: (readonly EndpointFacts[])[] = [];
  return { board: new FactsBoard({ adapters, tell: (changed) => told.push(changed) }), told };
}

const MODELS = [{ id: 'llama', parent: '' }];
const LORA = { adapters: { running: ['lora'], waiting: [], max: 2 } };

describe('facts of endpoints for the shards', () => {
  it('facts of endpoints for the shards are told together, a moment after the first change', () => {
    const { board, told } = makeBoard();
    board.models('a', MODELS);
    board.models('b', MODELS);
    expect(told).toEqual([]);
    vi.advanceTimersByTime(20);
    expect(told.map((changed) => changed.map(({ id }) => id))).toEqual([['a', 'b']]);
    expect(board.known).toHaveLength(2);
  });

  it('facts of endpoints for the shards are not told again while they stay', () => {
    const { board, told } = makeBoard();
    for (let i = 0; i < 3; i++) {
      board.models('a', structuredClone(MODELS));
      board.scraped('a', structuredClone(LORA));
      vi.advanceTimersByTime(20);
    }
    expect(told).toEqual([[expect.objectContaining({ id: 'a', models: MODELS })]]);
    expect(told[0]![0]!.adapters).toMatchObject({ slots: 2, levels: undefined });
  });

  it('facts of endpoints for the shards are gone with the endpoint, or with its list', () => {
    const { board, told } = makeBoard();
    board.models('a', MODELS);
    board.models('b', MODELS);
    vi.advanceTimersByTime(20);
    board.forget('a');
    board.models('b', undefined);
    vi.advanceTimersByTime(20);
    const none = { models: undefined, adapters: undefined };
    expect(told[1]).toEqual([
      { id: 'a', ...none },
      { id: 'b', ...none },
    ]);
    expect(board.known).toEqual([]);
  });

  it('facts of endpoints for the shards hold adapters only where a plugin reads them', () => {
    const { board, told } = makeBoard(false);
    board.scraped('a', LORA);
    vi.advanceTimersByTime(20);
    expect(told).toEqual([]);
  });
});
