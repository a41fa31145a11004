import { describe, expect, it } from 'vitest';
import type { CompiledScheduling } from '../../dist/scheduling/types.js';
import { ProgramPublisher } from '../../dist/threads/program-publisher.js';
import { makePool, plainRequest } from '../core/pool.ts';

/** A profile that keeps what mask `chosen` of `masks` masks holds. */
function scheduling(masks: number, chosen: number): CompiledScheduling {
  return {
    profiles: [
      {
        name: 'default',
        operations: [
          { code: 'OP_FILTER_MASK', name: 'filter', weight: 1, parameters: [chosen] },
          { code: 'OP_PICK_MAX_SCORE', name: 'picker', weight: 1, parameters: [1] },
        ],
      },
    ],
    masks: Array.from({ length: masks }, () => ({ accepts: () => true })),
    prefix: undefined,
    prefixProducer: undefined,
    handler: { name: 'single-profile-handler', type: 'single-profile-handler', parameters: {}, deciders: [] },
    host: [],
    labels: [],
    requestKeys: [],
    attributes: [],
    baseModels: [],
    estimateOutput: undefined,
    prediction: undefined,
  };
}

function pool() {
  const made = makePool([], [{}, {}, {}]);
  return { ...made, publisher: new ProgramPublisher(made.control) };
}

describe('programs that follow each other', () => {
  it('use masks of their own, so that writing the next ones does not change what runs', () => {
    const { publisher, table, decider } = pool();
    const first = publisher.place(scheduling(1, 0));
    table.setMask(first.firstMask, [1]);
    publisher.publish(first);
    const second = publisher.place(scheduling(1, 0));
    table.setMask(second.firstMask, [2]);
    expect(decider.decide(plainRequest).slots).toEqual([1]);
    publisher.publish(second);
    expect(decider.decide(plainRequest).slots).toEqual([2]);
  });

  it('may follow each other without end', () => {
    const { publisher, table, decider } = pool();
    for (let round = 0; round < 300; round++) {
      const placed = publisher.place(scheduling(100, round % 100));
      table.setMask(placed.firstMask + (round % 100), [round % 3]);
      publisher.publish(placed);
      expect(decider.decide(plainRequest).slots).toEqual([round % 3]);
    }
  });

  it('are refused with a remedy when their masks do not fit beside the running ones', () => {
    const { publisher } = pool();
    publisher.publish(publisher.place(scheduling(200, 0)));
    expect(() => publisher.place(scheduling(57, 0))).toThrow(
      'no room for 57 label filters beside 200 others: restart, or use at most 128',
    );
    expect(publisher.place(scheduling(56, 0)).firstMask).toBe(200);
  });
});
