import { describe, expect, it } from 'vitest';
import type { LoadedAdapters } from '../../dist/src/contract/endpoint-facts.js';
import { loadedAdapters } from '../../dist/src/picker/control/endpoint-facts.js';
import { loraLoadStateScorer } from '../../dist/src/scheduling/scorers/lora-load-state-scorer.js';
import { HookPool, idle } from './hook-pool.ts';

const EMPTY: LoadedAdapters = {
  levels: new Map(),
  onGpu: 0,
  slots: 4,
  busy: 0,
  replaceable: false,
  baseModel: 'llama',
};
const WITHOUT_BONUSES = { placementBonus: 0, headroomBonus: 0 };

/** Scores of endpoints with these adapters for a request. */
function scores(
  states: readonly (LoadedAdapters | undefined)[],
  model: string,
  parameters: unknown = WITHOUT_BONUSES,
): readonly number[] {
  const pool = new HookPool([{ definition: loraLoadStateScorer, parameters }], idle(states.length));
  pool.facts.apply(states.map((adapters, slot) => ({ id: `default/pod-${slot}`, models: undefined, adapters })));
  const outcome = pool.schedule({ model });
  if (outcome.kind === 'rejected') throw new Error(outcome.message);
  return [...outcome.scores!.values()].map((score) => Math.round(score * 1_000) / 1_000);
}

describe('lora-load-state-scorer', () => {
  const onGpu = { ...EMPTY, levels: new Map([['lora', 'gpu' as const]]), onGpu: 1 };
  const inMemory = { ...EMPTY, levels: new Map([['lora', 'cpu' as const]]), onGpu: 4 };
  const replaceable = { ...EMPTY, onGpu: 4, replaceable: true };
  const saturated = { ...EMPTY, onGpu: 4, busy: 4 };

  it('lora-load-state-scorer scores by where the adapter is, and what room there is for it', () => {
    expect(scores([onGpu, inMemory, EMPTY, replaceable, saturated], 'lora')).toEqual([1, 0.7, 0.6, 0.3, 0]);
  });

  it('lora-load-state-scorer adds the share of free slots, and one home for each adapter', () => {
    const bonuses = { placementBonus: 0, headroomBonus: 0.05 };
    expect(scores([{ ...EMPTY, onGpu: 2 }, EMPTY], 'lora', bonuses)).toEqual([0.595, 0.62]);
    const homes = Array.from({ length: 40 }, (_, i) => {
      const found = scores([EMPTY, EMPTY, EMPTY], `lora-${i}`, { placementBonus: 0.03, headroomBonus: 0 });
      expect([...found].sort()).toEqual([0.582, 0.582, 0.612]);
      return found.indexOf(0.612);
    });
    expect(new Set(homes)).toEqual(new Set([0, 1, 2]));
  });

  it('lora-load-state-scorer gives the home no bonus for an adapter that is on its GPU', () => {
    const bonus = { placementBonus: 0.03, headroomBonus: 0 };
    for (let i = 0; i < 10; i++) {
      const all = { ...onGpu, levels: new Map([[`lora-${i}`, 'gpu' as const]]) };
      expect(scores([all, all], `lora-${i}`, bonus)).toEqual([0.97, 0.97]);
    }
  });

  it('lora-load-state-scorer prefers endpoints whose slots serve no adapters for the base model', () => {
    const busy = { ...EMPTY, onGpu: 4, busy: 3 };
    expect(scores([EMPTY, busy, undefined], 'llama')).toEqual([1, 0.25, 1]);
  });

  it('lora-load-state-scorer treats endpoints alike of which nothing is known', () => {
    expect(scores([undefined, undefined], 'lora')).toEqual([0, 0]);
    const counted = { ...EMPTY, levels: undefined };
    expect(scores([counted, counted], 'lora')).toEqual([0.6, 0.6]);
  });

  it.each([
    [{ cpuResidentScore: 0.5 }, 'freeSlotScore'],
    [{ placementBonus: 0.1 }, 'freeSlotScore'],
    [{ placementBonus: 0.6, headroomBonus: 0.5 }, 'placementBonus'],
  ])('lora-load-state-scorer refuses %j', (parameters, field) => {
    const { success, error } = loraLoadStateScorer.parameters.safeParse(parameters);
    expect([success, error!.issues[0]!.path]).toEqual([false, [field]]);
  });

  it('lora-load-state-scorer says that load times do not count', () => {
    const given = loraLoadStateScorer.parameters.parse({ loadHorizonSeconds: 2 });
    expect(loraLoadStateScorer.advise!(given)).toEqual([
      expect.stringContaining('#2792'),
      'loadHorizonSeconds has no effect: the scores of the tiers count',
    ]);
  });
});

describe('loaded adapters of an endpoint', () => {
  const adapters = { running: ['a'], waiting: ['b'], max: 3 };

  it('loaded adapters of an endpoint are those of its gauges, busy where a request runs or waits', () => {
    const residency = { gpu: ['a', 'c'], cpu: ['a', 'd'], pinned: ['a'], onGpu: 2, slots: 2 };
    expect(loadedAdapters({ residency, adapters, model: 'llama' })).toEqual({
      levels: new Map([
        ['a', 'gpu'],
        ['d', 'cpu'],
        ['c', 'gpu'],
      ]),
      onGpu: 2,
      slots: 2,
      busy: 1,
      replaceable: true,
      baseModel: 'llama',
    });
    const pinned = { ...residency, pinned: ['a', 'c'] };
    expect(loadedAdapters({ residency: pinned, adapters })?.replaceable).toBe(false);
  });

  it('loaded adapters of an endpoint without gauges are unknown, and its slots those of the older metric', () => {
    expect(loadedAdapters({ adapters })).toMatchObject({ levels: undefined, onGpu: 0, slots: 3 });
    expect(loadedAdapters({})).toBeUndefined();
  });
});
