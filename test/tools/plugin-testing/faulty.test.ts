import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../../dist/src/config/builtin-plugins.js';
import type { OperationName } from '../../../dist/src/core/operations.js';
import { definePlugin, type HookPlugin, type PluginDefinition, z } from '../../../dist/src/scheduling/plugin.js';
import type { ProfileRuns } from '../../../dist/src/scheduling/profile-handler.js';
import { checksOf, PluginFault } from '../../../dist/tools/plugin-testing/index.js';

const REJECTED = { kind: 'rejected', code: 'ServiceUnavailable', message: 'none', reason: undefined } as const;

/** A definition without a fault, with what is given in its place. */
function plugin(given: Partial<PluginDefinition>): PluginDefinition {
  const plain = { type: 'faulty', kinds: [], stability: 'Stable', doc: 'A fault.', parameters: z.strictObject({}) };
  return { ...plain, ...given } as PluginDefinition;
}

const hooks = (instance: HookPlugin, given: Partial<PluginDefinition> = {}) =>
  plugin({ kinds: ['filter', 'scorer', 'reporter'], host: () => instance, ...given });

/** A plugin that compiles to this operation. */
function program(kind: 'filter' | 'scorer' | 'picker', code: string, parameters: number[], weight?: number) {
  return plugin({
    kinds: [kind],
    operations: [code as OperationName],
    compile: (_parameters, own) => ({ name: 'faulty', code: code as OperationName, parameters, weight: weight ?? own }),
  });
}

const handler = (handle: (runs: ProfileRuns) => unknown) =>
  plugin({ kinds: ['profile-handler'], profileHandler: () => ({ handle }) as never });

/** Runs all profiles and answers with the first pick. */
function first(runs: ProfileRuns) {
  const picks = runs.profiles.map((profile) => runs.run(profile, 'answer'));
  return picks[0]!.kind === 'rejected' ? picks[0]! : { kind: 'handled' as const, primary: picks[0]! };
}

const fails = () => {
  throw new Error('a fault');
};
const later = async () => {};
const one = <Value>(value: Value) => z.strictObject({ field: z.any().default(value).describe('A field.') });
const constant = () => 1;
const transformed = z
  .number()
  .default(1)
  .transform((value) => value + 1);

/** A hook that writes one value into its column. */
function writing(slot: number, value: number) {
  return (_request: unknown, _endpoints: unknown, column: Float32Array) => {
    column[slot] = value;
  };
}

/** Faulty plugins by the one check that names their fault. */
const FAULTY: readonly (readonly [check: string, definition: PluginDefinition])[] = [
  ['definition: the type is words in lower case, joined by hyphens', plugin({ type: 'Quiet_Scorer' })],
  ['definition: a paragraph says what it does', plugin({ doc: ' ' })],
  ['definition: every kind has one of its methods', plugin({ kinds: ['screener'] })],
  [
    'definition: every method belongs to one of the kinds',
    plugin({ kinds: ['discovery'], orderingSettings: () => ({ kind: 'arrival' }) }),
  ],
  [
    'definition: every method belongs to one of the kinds',
    plugin({ kinds: ['data-source'], usageLimitSettings: () => ({ kind: 'static', threshold: 1 }) }),
  ],
  [
    'definition: every parameter has a description',
    plugin({ parameters: z.strictObject({ half: z.number().default(1) }) }),
  ],
  [
    'definition: the parameters are accepted',
    plugin({ parameters: z.strictObject({ half: z.number().describe('Half.') }) }),
  ],
  [
    'definition: what the parameters become is accepted again and stays the same',
    plugin({ parameters: z.strictObject({ half: transformed.describe('Half.') }) }),
  ],
  ['definition: the parameters reach a shard as plain data', plugin({ parameters: one(() => constant) })],
  ['definition: an unknown parameter is refused', plugin({ parameters: z.object({}) })],

  ['program: the operation is one of the core for the kind of the plugin', program('scorer', 'OP_SCORE_NOTHING', [])],
  ['program: the operation is one of the core for the kind of the plugin', program('filter', 'OP_PICK_RANDOM', [1])],
  [
    'program: the operation is one of those that the description names',
    { ...program('scorer', 'OP_SCORE_KV_USAGE', []), operations: ['OP_SCORE_QUEUE'] },
  ],
  [
    'program: the operation has at most 8 parameters, all of them numbers',
    program('scorer', 'OP_SCORE_KV_USAGE', [Number.NaN]),
  ],
  [
    'program: the operation has at most 8 parameters, all of them numbers',
    program('picker', 'OP_PICK_RANDOM', [1, 2, 3, 4, 5, 6, 7, 8, 9]),
  ],
  [
    'program: the core decides over pools of five endpoints, of one, and of none',
    program('filter', 'OP_FILTER_MASK', [1e9]),
  ],
  ['scorer: the operation has the weight of the profile', program('scorer', 'OP_SCORE_KV_USAGE', [], 1)],
  ['scorer: the scores of a mixed pool are numbers from 0 to 1', program('scorer', 'OP_SCORE_LATENCY', [Infinity])],
  ['picker: picks an endpoint of the pool, and none twice', plugin({ kinds: ['picker'], compile: () => undefined })],

  ['hooks: the plugin starts, and closes', plugin({ kinds: ['reporter'], host: fails })],
  ['hooks: the plugin starts, and closes', hooks({ close: fails })],
  ...(['requestHeaders', 'screen', 'admit', 'produce', 'match', 'filter', 'score'] as const).flatMap((hook) => [
    [`${hook}: throws nothing`, hooks({ [hook]: fails })] as const,
    [`${hook}: answers at once`, hooks({ [hook]: later })] as const,
  ]),
  ...(['placed', 'responseHeaders', 'report'] as const).flatMap((hook) => [
    [`${hook}: throws nothing`, hooks({ [hook]: fails })] as const,
    [`${hook}: answers at once`, hooks({ [hook]: later })] as const,
  ]),
  [
    'placed: throws nothing',
    hooks({ placed: (_request, _placement, _endpoints, headers) => headers.set('host', 'h') }),
  ],
  ['report: throws nothing', hooks({ report: (_request, _usage, metadata) => metadata.set('', 'key', 1) })],
  ['hold: throws nothing', hooks({ hold: fails })],
  ['hold: answers a promise or nothing', hooks({ hold: () => 5 as never })],
  ...(['hold', 'screen', 'admit', 'produce', 'match', 'filter', 'score'] as const).map(
    (hook) =>
      [
        `${hook}: leaves the endpoints as they are`,
        hooks({
          [hook]: (_request: unknown, endpoints: { waiting: Float32Array }) => {
            endpoints.waiting[1] = 0;
          },
        }),
      ] as const,
  ),
  [
    'placed: leaves the endpoints as they are',
    hooks({ placed: (_request, _placement, endpoints) => void (endpoints.slots as number[]).reverse() }),
  ],
  ['screen: answers slots that it was given', hooks({ screen: () => [0, 9] })],
  [
    'admit: answers a denial with a known code and a message, or nothing',
    hooks({ admit: () => ({ code: 'No' }) as never }),
  ],
  [
    'admit: answers a denial with a known code and a message, or nothing',
    hooks({ admit: () => ({ code: 'Forbidden', message: '' }) }),
  ],
  ...(['match', 'filter', 'score'] as const).flatMap((hook) => [
    [`${hook}: writes numbers`, hooks({ [hook]: writing(0, Number.NaN) })] as const,
    [`${hook}: writes no slot beside those of the pool`, hooks({ [hook]: writing(9, 0.5) })] as const,
  ]),
  ...(['match', 'score'] as const).map(
    (hook) =>
      [
        `${hook}: writes shares from 0 to 1`,
        hooks({
          [hook]: (_request: unknown, endpoints: { slots: readonly number[] }, column: Float32Array) => {
            for (const slot of endpoints.slots) column[slot] = 100 - slot;
          },
        }),
      ] as const,
  ),

  [
    'handler: runs profiles that exist',
    handler((runs) => {
      runs.run('nowhere', 'answer');
      return first(runs);
    }),
  ],
  [
    'handler: runs each profile at most once',
    handler((runs) => {
      runs.run(runs.profiles[0]!, 'prefill');
      return first(runs);
    }),
  ],
  [
    'handler: answers with one of the picks, or a rejection',
    handler((runs) => {
      const answer = first(runs);
      return answer.kind === 'rejected' ? answer : { kind: 'handled', primary: { ...answer.primary } };
    }),
  ],
  [
    'handler: names its headers in lower case',
    handler((runs) => ({ ...first(runs), headers: new Map([['X-Stage', 'decode']]) })),
  ],
  [
    'handler: rejects when no profile has an endpoint',
    handler((runs) => {
      const answer = first(runs);
      return answer.kind === 'handled' ? answer : { kind: 'handled', primary: { kind: 'picked', endpoints: [] } };
    }),
  ],
  [
    'decider: answers true or false, with and without a decode pick',
    plugin({ kinds: ['decider'], decider: () => () => 1 as never }),
  ],

  [
    'ordering: the settings are those of a known policy',
    plugin({ kinds: ['ordering-policy'], orderingSettings: () => ({ kind: 'random' }) as never }),
  ],
  [
    'ordering: the same parameters make the same settings',
    plugin({
      kinds: ['ordering-policy'],
      orderingSettings: () => ({ kind: 'shortest-first', msPerToken: Math.random(), ageBoundMs: 10 }),
    }),
  ],
  [
    'ordering: a long request leaves although short ones keep coming',
    plugin({
      kinds: ['ordering-policy'],
      orderingSettings: () => ({ kind: 'shortest-first', msPerToken: 15, ageBoundMs: Infinity }),
    }),
  ],
  [
    'fairness: the settings are those of a known policy',
    plugin({ kinds: ['fairness-policy'], fairnessSettings: () => ({ kind: 'lottery' }) as never }),
  ],
  [
    'fairness: the settings are those of a known policy',
    plugin({
      kinds: ['fairness-policy'],
      fairnessSettings: () => ({ kind: 'start-time', weights: { vip: Number.NaN } }),
    }),
  ],
  [
    'fairness: the same parameters make the same settings',
    plugin({
      kinds: ['fairness-policy'],
      fairnessSettings: () => ({ kind: 'start-time', weights: { vip: 1 + Math.random() } }),
    }),
  ],
  [
    'fairness: a flow without a weight gets its turns beside the heaviest one',
    plugin({ kinds: ['fairness-policy'], fairnessSettings: () => ({ kind: 'start-time', weights: { vip: 1e6 } }) }),
  ],
  [
    'usage limit: the settings are those of a known policy',
    plugin({ kinds: ['usage-limit-policy'], usageLimitSettings: () => ({ kind: 'static', threshold: 2 }) }),
  ],
  [
    'usage limit: the same parameters make the same settings',
    plugin({
      kinds: ['usage-limit-policy'],
      usageLimitSettings: () => ({ kind: 'static', threshold: 0.5 + Math.random() / 2 }),
    }),
  ],
  [
    'usage limit: no priority may fill more of the pool than the highest',
    plugin({
      kinds: ['usage-limit-policy'],
      usageLimitSettings: () => ({ kind: 'holdback', domain: 'rank', minCeiling: 1, maxCeiling: 0.5 }),
    }),
  ],
];

/** Names of the checks that a plugin fails. */
function failed(definition: PluginDefinition): readonly string[] {
  return checksOf(definition).flatMap(({ name, run }) => {
    try {
      run();
      return [];
    } catch {
      return [name];
    }
  });
}

describe('a faulty plugin', () => {
  it.each(FAULTY)('a faulty plugin is caught by "%s" alone', (check, definition) => {
    expect(failed(definition)).toEqual([check]);
  });

  it('a fault is told by a PluginFault with one line', () => {
    const [check] = checksOf(plugin({ doc: '' })).filter(({ name }) => name.endsWith('what it does'));
    expect(check!.run).toThrow(new PluginFault('doc is empty'));
  });
});

describe('a check', () => {
  it('a check of any plugin has a faulty plugin that it catches', () => {
    const everyHook = Object.fromEntries(
      [
        'requestHeaders',
        'hold',
        'screen',
        'admit',
        'produce',
        'match',
        'filter',
        'score',
        'placed',
        'responseHeaders',
        'report',
      ].map((hook) => [hook, () => undefined]),
    );
    const all = [...builtinPlugins, hooks(everyHook), definePlugin({ ...plugin({}), parameters: z.strictObject({}) })];
    const names = new Set(all.flatMap((definition) => checksOf(definition).map(({ name }) => name)));
    const caught = new Set(FAULTY.map(([check]) => check));
    expect([...names].filter((name) => !caught.has(name))).toEqual([]);
  });

  it('a scorer without a fault passes', () => {
    const score: HookPlugin['score'] = (_request, { slots }, column) => {
      for (const slot of slots) column[slot] = 0.5;
    };
    expect(failed(hooks({ score }))).toEqual([]);
  });

  it('a handler that rejects every request passes', () => {
    expect(failed(handler(() => REJECTED))).toEqual([]);
  });
});
