import { describe, expect, it } from 'vitest';
import { CostModel } from '../../dist/src/adaptation/cost-model.js';
import { defaultAdaptation } from '../../dist/src/config/adaptation.js';
import { CostTable } from '../../dist/src/core/index.js';
import { ProgramPublisher } from '../../dist/src/picker/control/program-publisher.js';
import type { CompiledScheduling } from '../../dist/src/scheduling/program.js';
import { makePool, plainRequest } from '../core/pool.ts';

/** A profile that keeps what mask `chosen` of `masks` masks holds. */
function scheduling(masks: number, chosen: number): CompiledScheduling {
  return {
    profiles: [
      {
        name: 'default',
        filters: [],
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
    reserves: false,
    readsLoadedAdapters: false,
    prediction: undefined,
  };
}

function pool() {
  const made = makePool([], [{}, {}, {}]);
  return { ...made, publisher: new ProgramPublisher(made.control) };
}

describe('programs that follow each other', () => {
  it('programs that follow each other use masks of their own, so that writing the next ones does not change what runs', () => {
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

  it('programs that follow each other may follow each other without end', () => {
    const { publisher, table, decider } = pool();
    for (let round = 0; round < 300; round++) {
      const placed = publisher.place(scheduling(100, round % 100));
      table.setMask(placed.firstMask + (round % 100), [round % 3]);
      publisher.publish(placed);
      expect(decider.decide(plainRequest).slots).toEqual([round % 3]);
    }
  });

  it('programs that follow each other are refused with a remedy when their masks do not fit beside the running ones', () => {
    const { publisher } = pool();
    publisher.publish(publisher.place(scheduling(200, 0)));
    expect(() => publisher.place(scheduling(57, 0))).toThrow(
      'no room for 57 label filters beside 200 others: restart, or use at most 128',
    );
    expect(publisher.place(scheduling(56, 0)).firstMask).toBe(200);
  });
});

describe('the variant of the programs', () => {
  const classical: CompiledScheduling = {
    ...scheduling(0, 0),
    profiles: [
      {
        name: 'default',
        filters: [],
        operations: [
          { code: 'OP_SCORE_QUEUE', name: 'queue', weight: 2, parameters: [] },
          { code: 'OP_SCORE_KV_USAGE', name: 'kv', weight: 2, parameters: [] },
          { code: 'OP_PICK_MAX_SCORE', name: 'picker', weight: 1, parameters: [1] },
        ],
      },
    ],
  };
  const signals = Array.from({ length: 12 }, (_, i) => ({ waiting: (i * 7) % 5, kvUsage: ((i * 3) % 10) / 10 }));

  /** What 200 decisions come to: picks, scores, and what marginal cost would have picked. */
  function decisions(prepare: (publisher: ProgramPublisher) => void) {
    const { control, decider } = makePool([], signals);
    new CostTable(control).write(new CostModel(defaultAdaptation().model).coefficients);
    const publisher = new ProgramPublisher(control);
    prepare(publisher);
    return Array.from({ length: 200 }, (_, i) => {
      const { slots, score, wouldPick } = decider.decide({ ...plainRequest, promptTokens: i * 31, nowMs: i });
      return { slots: [...slots], score, wouldPick };
    });
  }
  const picks = (made: ReturnType<typeof decisions>) => made.map(({ slots, score }) => ({ slots, score }));

  it('the variant of the programs changes no pick and no score while costs are only observed or not learned', () => {
    const plain = decisions((publisher) => publisher.publish(publisher.place(classical)));
    const off = decisions((publisher) => {
      publisher.publish(publisher.place(classical));
      publisher.run({ kind: 'configured', tag: 0 });
    });
    const observed = decisions((publisher) => {
      publisher.publish(publisher.place(classical));
      publisher.run({ kind: 'observed', tag: 7 });
    });
    expect(off).toEqual(plain);
    expect(picks(observed)).toEqual(picks(plain));
    expect(plain.every(({ wouldPick }) => wouldPick === undefined)).toBe(true);
    expect(observed.every(({ wouldPick }) => wouldPick !== undefined)).toBe(true);
  });

  it('the variant of the programs stays when other programs take the place of the running ones', () => {
    const before = decisions((publisher) => {
      publisher.run({ kind: 'observed', tag: 1 });
      publisher.publish(publisher.place(classical));
    });
    expect(before[0]!.wouldPick).toBeDefined();
  });
});
