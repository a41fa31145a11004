import { describe, expect, it } from 'vitest';
import type { EndpointSignals } from '../../dist/src/core/index.js';
import type { PluginDefinition } from '../../dist/src/scheduling/plugin.js';
import { schedulingPlugins } from '../../dist/src/scheduling/registry.js';
import { HookPool, idle } from './hook-pool.ts';

/** Parameters of the types that need some. */
const PARAMETERS: Readonly<Record<string, object>> = {
  'by-label': { label: 'zone', validValues: ['a'], allowsNoLabel: true },
  'endpoint-attribute-filter': {
    attribute: 'waiting-queue',
    algorithm: { type: 'topK', topK: { k: 1, keep: 'lowest' } },
  },
  'endpoint-attribute-scorer': {
    attributeKey: 'waiting-queue',
    algorithm: { type: 'linear_lower_is_better' },
  },
  'header-label-affinity-scorer': { headerName: 'x-zone', labelKey: 'zone' },
  'utilization-filter': { conditions: [{ metric: 'waiting-queue', maxValue: 5 }] },
};

/** Filters that keep only what is marked for them. */
const CHOOSY: ReadonlySet<string> = new Set(['prefill-filter', 'encode-filter', 'header-based-testing-filter']);
/** Scorers that tell equal endpoints apart on purpose: by a hash, or by whose turn it is. */
const UNEQUAL: ReadonlySet<string> = new Set([
  'no-hit-lru-scorer',
  'rendezvous-hash-scorer',
  'consistent-hash-scorer',
  'lora-load-state-scorer',
]);

const of = (kind: 'filter' | 'scorer' | 'picker') =>
  schedulingPlugins
    .filter(({ kinds }) => kinds.includes(kind))
    .map((definition) => [definition.type, definition] as const);

function poolOf(definition: PluginDefinition, signals: readonly EndpointSignals[]): HookPool {
  return new HookPool([{ definition, parameters: PARAMETERS[definition.type] }], signals);
}

/** Scores in the order of the endpoints. */
function scoresOf(pool: HookPool): readonly number[] {
  const outcome = pool.schedule({ promptBytes: 400 });
  if (outcome.kind === 'rejected') throw new Error(outcome.message);
  outcome.charge.release();
  return pool.directory.slots().map((slot) => outcome.scores!.get(`10.0.0.${slot + 1}:8000`)!);
}

const KNOWN: EndpointSignals = { waiting: 2, running: 3, kvUsage: 0.5, adapters: { running: [], waiting: [], max: 1 } };

describe.each(of('scorer'))('%s', (type, definition) => {
  it.each([
    ['all equal', idle(4)],
    ['nobody has signals', [{}, {}, {}, {}]],
  ])('a scorer when %s scores everyone alike, between 0 and 1', (_name, signals) => {
    const scores = scoresOf(poolOf(definition, signals));
    expect(scores).toHaveLength(4);
    for (const score of scores) {
      expect(score).toBeGreaterThanOrEqual(0);
      expect(score).toBeLessThanOrEqual(1);
    }
    if (!UNEQUAL.has(type)) expect(new Set(scores).size).toBe(1);
  });

  it('a scorer with signals of one endpoint only gives no score below 0, above 1, or without a value', () => {
    for (const score of scoresOf(poolOf(definition, [KNOWN, {}, {}]))) {
      expect(score).toBeGreaterThanOrEqual(0);
      expect(score).toBeLessThanOrEqual(1);
    }
  });

  it('a scorer has nothing to say about a single endpoint, and none about an empty pool', () => {
    expect(poolOf(definition, [KNOWN]).pick()).toBe('pod-0');
    expect(poolOf(definition, []).pick()).toBe('ServiceUnavailable');
  });
});

describe.each(of('filter'))('%s', (type, definition) => {
  it.each([
    ['all equal', idle(4)],
    ['nobody has signals', [{}, {}, {}, {}]],
  ])('a filter when %s keeps everyone, or no one where nobody is marked for it', (_name, signals) => {
    const picks = poolOf(definition, signals).picks({}, 60);
    if (CHOOSY.has(type)) expect(picks).toEqual(['ResourceExhausted']);
    else expect(picks).toEqual(['pod-0', 'pod-1', 'pod-2', 'pod-3']);
  });

  it('a filter keeps a single endpoint that fits, and leaves an empty pool to the scheduler', () => {
    if (!CHOOSY.has(type)) expect(poolOf(definition, idle(1)).pick()).toBe('pod-0');
    expect(poolOf(definition, []).pick()).toBe('ServiceUnavailable');
  });
});

describe.each(of('picker'))('%s', (_type, definition) => {
  const pool = (count: number, parameters = {}) => new HookPool([{ definition, parameters }], idle(count));

  it('a picker picks each of several equal endpoints, the only one, and none of none', () => {
    expect(pool(3).picks({}, 120)).toEqual(['pod-0', 'pod-1', 'pod-2']);
    expect(pool(1).pick()).toBe('pod-0');
    expect(pool(0).pick()).toBe('ServiceUnavailable');
  });

  it('a picker gives as many different fallbacks as it is asked for, and no more than there are', () => {
    const outcome = pool(3, { maxNumOfEndpoints: 5 }).schedule();
    if (outcome.kind === 'rejected') throw new Error(outcome.message);
    expect(new Set(outcome.endpoints.map(({ address }) => address)).size).toBe(3);
    expect(outcome.endpoints).toHaveLength(3);
  });
});
