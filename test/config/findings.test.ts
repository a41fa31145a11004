import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { findings } from '../../dist/src/config/findings.js';
import { BUILTIN_ENGINES } from '../../dist/src/pool/engines/builtin-engines.js';

const HEAD = 'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n';
const CURRENT = 'apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\n';

function look(text: string, head = HEAD) {
  const options = { registry: builtinPlugins, allowExperimental: false, engines: BUILTIN_ENGINES };
  const { errors, warnings, notes } = findings({ text: head + text }, options);
  return { errors: errors.map(({ message }) => message), warnings, notes };
}

describe('advice', () => {
  const blocks = (size: string) =>
    look(
      `plugins:\n- {type: approx-prefix-cache-producer, parameters: {${size}}}\n- type: prefix-cache-scorer\n` +
        'schedulingProfiles:\n- {name: a, plugins: [{pluginRef: prefix-cache-scorer}]}\n',
    ).warnings;

  it('advice says that a block size is raised, of one that is written down', () => {
    for (const name of ['blockSizeTokens', 'blockSize']) {
      expect(blocks(`${name}: 16`)).toContainEqual(
        expect.stringContaining('blocks of 16 tokens are raised to 64, the least that are told apart'),
      );
    }
    for (const size of ['', 'blockSizeTokens: 64']) expect(blocks(size).join()).not.toContain('raised');
  });
});

describe('errors', () => {
  it('lint tells all that is wrong with the plugins, in the order of the file, each with line and column', () => {
    const { errors } = look(`plugins:
- type: queu-scorer
- type: load-aware-scorer
  parameters: {threshold: many, extra: 1}
- type: prefix-cache-scorer
  parameters: {matchLengthWeight: 3}
`);
    expect(errors).toEqual([
      '--config-text:4:9: plugins[0].type: unknown plugin type "queu-scorer"; did you mean "queue-scorer"?',
      '--config-text:6:27: plugins[1].parameters.threshold: load-aware-scorer: expected a number, got "many"',
      '--config-text:6:33: plugins[1].parameters.extra: load-aware-scorer: unknown field "extra"; valid here: ' +
        'threshold',
      '--config-text:8:35: plugins[2].parameters.matchLengthWeight: prefix-cache-scorer: must be at most 1, got 3',
    ]);
  });

  it('lint tells all that is wrong with the shape of the file', () => {
    const { errors } = look('plugins: 1\nschedulingProfiles:\n- plugins: []\nfoo: 2\n');
    expect(errors).toHaveLength(3);
    expect(errors[0]).toContain(':3:10: plugins: expected a list, got 1');
    expect(errors[1]).toContain(':5:3: schedulingProfiles[0].name: is required');
    expect(errors[2]).toContain(':6:1: foo: unknown field "foo"');
  });

  it('lint tells the first reference that leads nowhere once plugins are right', () => {
    const { errors } = look(
      'plugins:\n- type: queue-scorer\nschedulingProfiles:\n- {name: a, plugins: [{pluginRef: x}]}\n',
    );
    expect(errors).toEqual([expect.stringContaining(':6:35: schedulingProfiles[0].plugins[0].pluginRef')]);
  });

  it('lint tells where a document that is no YAML breaks', () => {
    expect(look('plugins: [\n').errors).toEqual([
      expect.stringMatching(/^--config-text:\d+:\d+: not valid YAML or JSON/),
    ]);
  });
});

describe('warnings for what has no effect', () => {
  it('a configuration that uses all it has gets none', () => {
    expect(
      look('plugins:\n- type: queue-scorer\n- type: prefix-cache-scorer\n- type: max-score-picker\n'),
    ).toMatchObject({
      errors: [],
      warnings: [],
    });
  });

  it('a plugin that nothing refers to', () => {
    const { warnings } = look(`plugins:
- type: queue-scorer
- type: kv-cache-utilization-scorer
schedulingProfiles:
- {name: a, plugins: [{pluginRef: queue-scorer}]}
`);
    expect(warnings).toEqual([
      '--config-text:5:3: plugins[1]: "kv-cache-utilization-scorer" is a scorer that nothing refers to: it has no ' +
        'effect',
    ]);
  });

  it('a plugin that only another plugin names is referred to', () => {
    const { warnings } = look(`plugins:
- {type: approx-prefix-cache-producer, name: mine}
- {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: mine}}
`);
    expect(warnings).toEqual([]);
  });

  it('a producer whose facts no plugin consumes', () => {
    const { warnings } = look('plugins:\n- type: queue-scorer\n- type: inflight-load-producer\n');
    expect(warnings).toEqual([
      expect.stringContaining('"inflight-load-producer" produces in-flight-load, which nothing takes from it'),
    ]);
  });

  it('a scorer whose signal nothing fetches', () => {
    const { warnings } = look('plugins:\n- type: queue-scorer\ndataLayer: {injectDefaults: false}\n');
    expect(warnings).toEqual([
      '--config-text:4:3: plugins[0]: "queue-scorer" reads waiting requests, which nothing fetches: all endpoints ' +
        'are alike to it',
    ]);
  });

  it('a scorer of more than the signal that nothing fetches goes on by the rest', () => {
    const { warnings } = look('plugins:\n- type: marginal-cost-scorer\ndataLayer: {injectDefaults: false}\n');
    expect(warnings).toEqual([
      '--config-text:4:3: plugins[0]: "marginal-cost-scorer" reads waiting requests and KV usage, which nothing ' +
        'fetches: it goes by what else it reads',
    ]);
  });

  it('a scorer whose signal the default engine does not tell', () => {
    const { warnings } = look(`plugins:
- type: lora-affinity-scorer
- type: metrics-data-source
- {type: core-metrics-extractor, parameters: {defaultEngine: sglang}}
dataLayer: {sources: [{pluginRef: metrics-data-source, extractors: [{pluginRef: core-metrics-extractor}]}]}
`);
    expect(warnings).toEqual([expect.stringContaining('which the default engine "sglang" does not tell')]);
  });

  it('scores under a picker that does not look at them, and weights of 0', () => {
    const { warnings } = look(`plugins:
- type: queue-scorer
- type: random-picker
schedulingProfiles:
- {name: a, plugins: [{pluginRef: queue-scorer, weight: 0}, {pluginRef: random-picker}]}
`);
    expect(warnings).toEqual([
      expect.stringContaining('"queue-scorer" has weight 0 in profile "a": its scores do not count'),
      expect.stringContaining(
        '"random-picker" of profile "a" picks at random: the scores of "queue-scorer" have no effect',
      ),
    ]);
  });

  it('a weight of a plugin that is no scorer', () => {
    const { warnings } = look(`plugins:
- type: decode-filter
- type: queue-scorer
schedulingProfiles:
- {name: a, plugins: [{pluginRef: decode-filter, weight: 2}, {pluginRef: queue-scorer}]}
`);
    expect(warnings).toEqual([expect.stringContaining('only scorers have a weight, it is ignored')]);
  });

  it('a profile without a scorer', () => {
    const profiles = 'schedulingProfiles: [{name: default, plugins: [{pluginRef: decode-filter}]}]\n';
    expect(look(`plugins:\n- type: decode-filter\n${profiles}`).warnings).toEqual([
      '--config-text:5:22: schedulingProfiles[0]: profile "default" has no scorer: "max-score-picker" picks at ' +
        'random; name scorers in plugins and refer to them in the profile; without a configuration they are ' +
        'queue-scorer (weight 2), kv-cache-utilization-scorer (weight 2), prefix-cache-scorer (weight 3)',
    ]);
  });

  it('plugins without a scorer', () => {
    const discovery = 'dataLayer: {discovery: {endpoints: {pluginRef: file-discovery}}}\n';
    const text = `plugins:\n- {type: file-discovery, parameters: {path: endpoints.yaml}}\n${discovery}`;
    expect(look(text, CURRENT).warnings).toEqual([
      '--config-text:4:1: plugins: profile "default" has no scorer: "max-score-picker" picks at random; ' +
        'name scorers in plugins, and their weights in schedulingProfiles; without a configuration they are ' +
        'queue-scorer (weight 2), kv-cache-utilization-scorer (weight 2), prefix-cache-scorer (weight 3)',
    ]);
  });

  it('a parser behind one that takes every request', () => {
    const { warnings } = look(`plugins:
- type: queue-scorer
requestHandler: {parsers: [{pluginRef: passthrough-parser}, {pluginRef: openai-parser}]}
`);
    expect(warnings).toEqual([expect.stringContaining('it is never asked')]);
  });

  it('learned costs that decide, where no profile leaves them anything to decide', () => {
    const auto = 'adaptation: {mode: auto}\nplugins:\n- type: ';
    expect(look(`${auto}lora-affinity-scorer\n`, CURRENT).warnings).toEqual([
      expect.stringContaining(
        ':3:20: adaptation.mode: "auto" changes no pick: no profile has a scorer of load or cache in whose place',
      ),
    ]);
    expect(look(`${auto}marginal-cost-scorer\n`, CURRENT).warnings).toEqual([
      expect.stringContaining('"auto" changes no pick: marginal-cost-scorer, which a profile names, decides'),
    ]);
    expect(look(`${auto}queue-scorer\n`, CURRENT).warnings).toEqual([]);
    expect(look('adaptation: {mode: shadow}\nplugins:\n- type: lora-affinity-scorer\n', CURRENT).warnings).toEqual([]);
  });

  it('ignored sections, in the order of the file', () => {
    const { warnings } = look(`plugins:
- type: queue-scorer
flowControl: {maxBytes: 3}
dataLayer: {crossReplicaSyncInterval: 5s}
`);
    expect(warnings).toEqual([
      expect.stringContaining(':5:14: flowControl: the flowControl feature gate is disabled'),
      expect.stringContaining('dataLayer.crossReplicaSyncInterval: has no effect'),
    ]);
  });
});

describe('one system prompt for all requests', () => {
  const profile = (scorers: Readonly<Record<string, number>>, adaptation = '') => {
    const plugins = Object.keys(scorers).map((type) => `- type: ${type}\n`);
    const members = Object.entries(scorers).map(([type, weight]) => `{pluginRef: ${type}, weight: ${weight}}`);
    const profiles = `schedulingProfiles:\n- {name: a, plugins: [${members.join(', ')}]}\n`;
    return look(`${adaptation}plugins:\n${plugins.join('')}${profiles}`, CURRENT);
  };
  const SHIPPED = { 'queue-scorer': 2, 'kv-cache-utilization-scorer': 2, 'prefix-cache-scorer': 3 };

  it('lint notes that the default sends it to one endpoint, and names the better choice in one word', () => {
    const { warnings, notes } = profile(SHIPPED);
    expect(warnings).toEqual([]);
    const place = /:8:3: schedulingProfiles\[0\]: "prefix-cache-scorer" of profile "a" outweighs requests in flight: /;
    expect(notes).toEqual([expect.stringMatching(place)]);
    expect(notes[0]).toContain('marginal-cost-scorer');
    expect(look('featureGates: [flowControl]\n', CURRENT).notes).toHaveLength(1);
  });

  it('lint notes nothing where requests in flight, learned costs or marginal cost decide', () => {
    expect(look('plugins:\n- type: marginal-cost-scorer\n', CURRENT).notes).toEqual([]);
    expect(profile({ 'active-request-scorer': 1, 'prefix-cache-scorer': 1 }).notes).toEqual([]);
    expect(profile({ 'active-request-scorer': 1, 'prefix-cache-scorer': 2 }).notes).toHaveLength(1);
    expect(profile(SHIPPED, 'adaptation: {mode: auto}\n').notes).toEqual([]);
    expect(profile({ 'queue-scorer': 1 }).notes).toEqual([]);
  });
});
