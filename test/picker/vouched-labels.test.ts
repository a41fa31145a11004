import { describe, expect, it } from 'vitest';
import { UNUSED_MS_MAX, type VouchedNames } from '../../dist/src/operations/telemetry/shown-names.js';
import { type VouchedLabelSources, VouchedLabels } from '../../dist/src/picker/control/vouched-labels.js';

function labels(sources: Partial<VouchedLabelSources> = {}) {
  const reported: VouchedNames[] = [];
  const clock = { now: 0 };
  const subject = new VouchedLabels({
    rules: () => ({ objectives: [], rewrites: [], models: [] }),
    servedModels: () => undefined,
    configured: () => ({ models: [], tenants: [] }),
    changed: (names) => reported.push(names),
    now: () => clock.now,
    ...sources,
  });
  return { subject, reported, clock, models: () => [...subject.names.models].sort() };
}

describe('names that are vouched for', () => {
  it('names that are vouched for are those of objectives, rewrite rules, their targets, InferenceModels and the configuration', () => {
    const rules = {
      objectives: [['objective', 1]] as const,
      rewrites: [{ name: 'r', models: ['alias'], targets: [{ model: 'target' }], age: 0 }],
      models: [['legacy', { priority: 0, refused: false }]] as const,
    };
    const { subject, models } = labels({
      rules: () => rules,
      configured: () => ({ models: ['base'], tenants: ['tenant'] }),
    });
    expect(models()).toEqual(['alias', 'base', 'legacy', 'objective', 'target']);
    expect([...subject.names.fairnessIds]).toEqual(['default-flow', 'tenant']);
  });

  it('names that are vouched for are the model of a metrics page, adapters, and lists of models', () => {
    const served = new Map([['e', [{ id: 'listed', parent: '' }]]]);
    const { subject, models } = labels({ servedModels: () => served });
    subject.hear({ model: 'on the page', adapters: { running: ['runs'], waiting: ['waits'], max: 2 } });
    subject.hear({});
    expect(models()).toEqual(['listed', 'on the page', 'runs', 'waits']);
  });

  it('names that are vouched for are reported when they change and only then', () => {
    const { subject, reported } = labels();
    subject.hear({ model: 'm' });
    subject.collect();
    subject.hear({ model: 'm' });
    subject.collect();
    expect(reported.map(({ models }) => [...models])).toEqual([['m']]);
  });

  it('names that are vouched for are forgotten an hour after a model server told them last', () => {
    const { subject, models, clock } = labels();
    subject.hear({ model: 'm' });
    clock.now = UNUSED_MS_MAX;
    expect(models()).toEqual(['m']);
    clock.now += 1;
    expect(models()).toEqual([]);
  });

  it('names that are vouched for are at most 1,000 of model servers, and as many as there are of objects', () => {
    const objectives = Array.from({ length: 5_000 }, (_, i) => [`object ${i}`, 0] as const);
    const { subject, models } = labels({ rules: () => ({ objectives, rewrites: [], models: [] }) });
    for (let i = 0; i < 5_000; i++) subject.hear({ model: `told ${i}` });
    expect(models()).toHaveLength(6_000);
  });
});
