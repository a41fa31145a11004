import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { findings } from '../../dist/src/config/findings.js';
import { load, refusal } from '../config/configuration-text.ts';
import { ProfilePool, role } from './profile-pool.ts';

type Place = readonly [host: string, rack: string, zone: string, region: string];

const KEYS = [
  'kubernetes.io/hostname',
  'topology.kubernetes.io/rack',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
];

/** Labels of an endpoint of a role at a place; an empty name is no label. */
function at(name: string, place: Place) {
  return role(name, Object.fromEntries(place.flatMap((value, i) => (value === '' ? [] : [[KEYS[i]!, value]]))));
}

/** A decode endpoint that a prefill endpoint should be near to, by these members of the prefill profile. */
function text(members: string, { plugins = '', handler = '{deciders: {prefill: always-disagg-pd-decider}}' } = {}) {
  const first = handler.includes('prefill-first');
  const near = `{pluginRef: ${first ? 'decode' : 'prefill'}-filter}${members}`;
  return (
    `plugins:\n- {type: disagg-profile-handler, parameters: ${handler}}\n- {type: always-disagg-pd-decider}\n` +
    `- {type: prefill-filter}\n- {type: decode-filter}\n${plugins}schedulingProfiles:\n` +
    `- {name: prefill, plugins: [${first ? '{pluginRef: prefill-filter}' : near}]}\n` +
    `- {name: decode, plugins: [${first ? near : '{pluginRef: decode-filter}'}]}\n`
  );
}

const EXTRACTOR = '- {type: topology-extractor}\n';
const filterWith = (parameters: string, extractor = EXTRACTOR) =>
  text(', {pluginRef: topology-affinity-filter}', {
    plugins: `${extractor}- {type: topology-affinity-filter, parameters: ${parameters}}\n`,
  });
const scorer = text(', {pluginRef: topology-affinity-scorer}', {
  plugins: `${EXTRACTOR}- {type: topology-affinity-scorer}\n`,
});

const HERE: Place = ['h1', 'r1', 'z1', 'g1'];
const NEARNESS: readonly Place[] = [
  HERE,
  ['h2', 'r1', 'z1', 'g1'],
  ['h3', 'r2', 'z1', 'g1'],
  ['h4', 'r3', 'z2', 'g1'],
  ['h5', 'r4', 'z3', 'g2'],
];
const POOL = [at('decode', HERE), ...NEARNESS.map((place) => at('prefill', place))];

/** Names of the prefill endpoints that are ever picked. */
function prefills(configuration: string, labels: readonly Readonly<Record<string, string>>[]): string[] {
  const pool = new ProfilePool(load(configuration, true), labels);
  return [...new Set(Array.from({ length: 60 }, () => pool.picks().prefill!))].sort();
}

describe('topology-affinity-filter', () => {
  it.each([
    ['{}', ['pod-1']],
    ['{minAffinity: ""}', ['pod-1']],
    ['{minAffinity: host}', ['pod-1']],
    ['{minAffinity: rack}', ['pod-1', 'pod-2']],
    ['{minAffinity: zone}', ['pod-1', 'pod-2', 'pod-3']],
    ['{minAffinity: region}', ['pod-1', 'pod-2', 'pod-3', 'pod-4']],
  ])('topology-affinity-filter with %s keeps %j', (parameters, kept) => {
    expect(prefills(filterWith(parameters), POOL)).toEqual(kept);
  });

  it.each([
    ['nobody is near enough', filterWith('{}'), [POOL[0]!, POOL[4]!, POOL[5]!], ['pod-1', 'pod-2']],
    [
      'nothing is known about the earlier pick',
      filterWith('{}'),
      [role('decode'), POOL[1]!, POOL[5]!],
      ['pod-1', 'pod-2'],
    ],
    ['there is no topology-extractor', filterWith('{}', ''), [POOL[0]!, POOL[1]!, POOL[5]!], ['pod-1', 'pod-2']],
  ])('topology-affinity-filter keeps all when %s', (_what, configuration, labels, kept) => {
    expect(prefills(configuration, labels)).toEqual(kept);
  });

  it('topology-affinity-filter never keeps an endpoint that says nothing, beside one that is near', () => {
    expect(prefills(filterWith('{minAffinity: region}'), [POOL[0]!, POOL[4]!, role('prefill')])).toEqual(['pod-1']);
  });

  it('topology-affinity-filter reads the labels that its extractor names', () => {
    const extractor = '- {type: topology-extractor, name: mine, parameters: {hostname: machine}}\n';
    const configuration = filterWith('{topologyProducerName: mine}', extractor);
    const machine = (name: string, value: string) => role(name, { machine: value });
    expect(prefills(configuration, [machine('decode', 'a'), machine('prefill', 'a'), machine('prefill', 'b')])).toEqual(
      ['pod-1'],
    );
  });

  it('topology-affinity-filter keeps all in the first profile of a request, which has no earlier pick', () => {
    const configuration = text('', { plugins: `${EXTRACTOR}- {type: topology-affinity-filter}\n` }).replace(
      'plugins: [{pluginRef: decode-filter}]',
      'plugins: [{pluginRef: decode-filter}, {pluginRef: topology-affinity-filter}]',
    );
    const pool = new ProfilePool(load(configuration, true), [at('decode', HERE), at('decode', NEARNESS[4]!)]);
    const picked = new Set(Array.from({ length: 40 }, () => pool.picks().decode));
    expect(picked).toEqual(new Set(['pod-0', 'pod-1']));
  });

  it('topology-affinity-filter looks for decode endpoints near the prefill with prefill first', () => {
    const configuration = text(', {pluginRef: topology-affinity-filter}', {
      handler: '{stageOrder: prefill-first}',
      plugins: `${EXTRACTOR}- {type: topology-affinity-filter}\n`,
    });
    const labels = [at('prefill', HERE), at('decode', NEARNESS[1]!), at('decode', HERE)];
    const pool = new ProfilePool(load(configuration, true), labels);
    expect(new Set(Array.from({ length: 20 }, () => pool.picks().decode))).toEqual(new Set(['pod-2']));
  });

  it('topology-affinity-filter refuses another level, and is experimental', () => {
    expect(() => load(filterWith('{minAffinity: planet}'), true)).toThrow('expected one of , host, rack, zone, region');
    expect(refusal(filterWith('{}'))).toContain('has Alpha stability level');
  });
});

describe('topology-affinity-scorer', () => {
  /** Scores of the prefill endpoints, in the order of their slots. */
  function scores(labels: readonly Readonly<Record<string, string>>[]): readonly number[] {
    const pool = new ProfilePool(load(scorer, true), labels);
    pool.picks();
    return labels.slice(1).map((_, i) => Math.round(pool.core.call.scoreOf(i + 1) * 1e6) / 1e6);
  }

  it('topology-affinity-scorer gives 1 for the same host, 0.2 rack, 0.05 zone, 0.02 region, and 0 elsewhere', () => {
    expect(scores(POOL)).toEqual([1, 0.2, 0.05, 0.02, 0]);
  });

  it.each([
    ['nothing is known about the earlier pick', [role('decode'), POOL[1]!, POOL[2]!], [0, 0]],
    ['there is one endpoint', [POOL[0]!, POOL[3]!], [0.05]],
    ['all are equal', [POOL[0]!, POOL[1]!, POOL[1]!], [1, 1]],
    ['they say nothing', [POOL[0]!, role('prefill'), role('prefill')], [0, 0]],
  ])('topology-affinity-scorer gives when %s', (_what, labels, expected) => {
    expect(scores(labels)).toEqual(expected);
  });

  it('topology-affinity-scorer is the formula, whatever the labels', () => {
    const name = fc.constantFrom('', 'a', 'b', 'c');
    const place = fc.tuple(name, name, name, name);
    fc.assert(
      fc.property(place, fc.array(place, { minLength: 1, maxLength: 9 }), (first, others) => {
        const levels = [1, 0.2, 0.05, 0.02];
        const expected = others.map((other) => {
          const level = levels.findIndex((_, i) => other[i] !== '' && other[i] === first[i]);
          return level < 0 ? 0 : levels[level]!;
        });
        expect(scores([at('decode', first), ...others.map((other) => at('prefill', other))])).toEqual(expected);
      }),
      { numRuns: 40 },
    );
  });
});

describe('topology-extractor', () => {
  it('topology-extractor is not reported as unused: it acts by being there', () => {
    const head = 'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n';
    const options = { allowExperimental: true, registry: builtinPlugins, engines: [] };
    expect(findings({ text: head + text('', { plugins: EXTRACTOR }) }, options).warnings.join()).not.toContain(
      'topology',
    );
  });

  it('topology-extractor takes an empty label for the default one', () => {
    const extractor = '- {type: topology-extractor, parameters: {hostname: ""}}\n';
    expect(prefills(filterWith('{}', extractor), POOL)).toEqual(['pod-1']);
  });
});
