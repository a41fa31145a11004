import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { loadConfiguration } from '../../dist/src/config/load.js';
import { multiclusterMetricsExtractorParameters } from '../../dist/src/config/plugins/multicluster-metrics-extractor.js';
import { EngineTable } from '../../dist/src/pool/engines/engine-table.js';
import { load, refusal } from './configuration-text.js';

const options = { allowExperimental: false, registry: builtinPlugins };
const folder = mkdtempSync(join(tmpdir(), 'pointsman-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

function codes(configuration: ReturnType<typeof load>): readonly string[] {
  return configuration.scheduling.profiles[0]!.operations.map((operation) => operation.code);
}

describe('the source of a configuration', () => {
  it('the source of a configuration is the default scheduling when nothing is given', () => {
    const { scheduling } = loadConfiguration({}, options);
    expect(scheduling.profiles[0]!.operations.map(({ code, weight }) => [code, weight])).toEqual([
      ['OP_SCORE_QUEUE', 2],
      ['OP_SCORE_KV_USAGE', 2],
      ['OP_SCORE_PREFIX', 3],
      ['OP_PICK_MAX_SCORE', 1],
    ]);
  });

  it('the source of a configuration takes an empty text or file name as not given', () => {
    expect(loadConfiguration({ file: '', text: '' }, options).scheduling.profiles).toHaveLength(1);
  });

  it('the source of a configuration may be a file, whose name stands in messages', () => {
    const file = join(folder, 'broken.yaml');
    writeFileSync(file, 'apiVersion: llm-d.ai/v1alpha1\nkind: Other\n');
    expect(() => loadConfiguration({ file }, options)).toThrow(`${file}:2:7: kind: expected EndpointPickerConfig`);
  });

  it('the source of a configuration may be JSON, indented with tabs', () => {
    const file = join(folder, 'configuration.json');
    const config = {
      apiVersion: 'llm-d.ai/v1alpha1',
      kind: 'EndpointPickerConfig',
      plugins: [{ type: 'random-picker' }],
    };
    writeFileSync(file, JSON.stringify(config, null, '\t'));
    expect(codes(loadConfiguration({ file }, options))).toEqual(['OP_PICK_RANDOM']);
  });

  it('the source of a configuration refuses a file together with a text, naming both flags', () => {
    expect(() => loadConfiguration({ file: 'a', text: 'b' }, options)).toThrow(/--config-file.*--config-text/);
  });

  it('the source of a configuration refuses a file that cannot be read, naming the flag and the file', () => {
    const file = join(folder, 'missing.yaml');
    expect(() => loadConfiguration({ file }, options)).toThrow(
      /missing\.yaml: the configuration does not exist: create it or correct the path$/,
    );
  });

  it('the source of a configuration refuses a file of bytes that are no text, in place of its first line', () => {
    const file = join(folder, 'binary.yaml');
    writeFileSync(file, Buffer.from([0x37, 0xff, 0xfe, 0x0a]));
    expect(() => loadConfiguration({ file }, options)).toThrow(
      /binary\.yaml: the configuration is not UTF-8 text: save it as such, or correct the path$/,
    );
  });
});

describe('the shape of a configuration', () => {
  it.each([
    [
      'a document without content',
      '# later\n',
      '--config-text:1:1: the document is empty: it needs fields; valid here: apiV',
    ],
    ['a list', '- testing\n', '--config-text:1:1: expected a mapping, got a list'],
    ['text that is no YAML', 'plugins: [\n', '--config-text:2:1: not valid YAML or JSON'],
    [
      'another version',
      'apiVersion: llm-d.ai/v2\nkind: EndpointPickerConfig\n',
      'expected llm-d.ai/v1 or llm-d.ai/v1alpha1, got',
    ],
    ['two documents', 'a: 1\n---\nb: 1\n', '--config-text:3:1: a second document begins here: keep one'],
    ['a key twice', 'a: 1\na: 2\n', '--config-text:2:1: not valid YAML or JSON'],
  ])('the shape of a configuration refuses %s', (_name, text, message) => {
    expect(() => loadConfiguration({ text }, options)).toThrow(message);
  });

  it('a configuration may have empty documents around it', () => {
    const text = '---\nplugins: [{type: random-picker}]\n---\n# end\n---\n';
    expect(codes(loadConfiguration({ text }, options))).toEqual(['OP_PICK_RANDOM']);
  });

  it.each(['{}', "{pluginRef: ''}"])('a saturation detector of %s is the default one', (detector) => {
    const text = `featureGates: [flowControl]\nflowControl: {saturationDetector: ${detector}}\n`;
    const plain = loadConfiguration({ text: 'featureGates: [flowControl]\n' }, options);
    expect(loadConfiguration({ text }, options).saturationDetector).toEqual(plain.saturationDetector);
  });

  it.each(['0s', "''"])('the interval of a source of %s is that of the flag', (interval) => {
    const text = `plugins: [{type: metrics-data-source, parameters: {interval: ${interval}}}]`;
    expect(loadConfiguration({ text }, options).metricsSource?.intervalMs).toBeUndefined();
  });

  it('empty names of certificates are none', () => {
    const empty = "caCertPath: '', clientCertPath: '', clientKeyPath: ''";
    const text = `plugins: [{type: metrics-data-source, parameters: {${empty}}}]`;
    expect(loadConfiguration({ text }, options).metricsSource).toEqual(loadConfiguration({}, options).metricsSource);
  });

  it.each(['queuedRequestsSpec', 'runningRequestsSpec', 'kvUsageSpec', 'loraSpec', 'cacheInfoSpec'])(
    'an engine with an empty %s does not tell it',
    (spec) => {
      const engine = `{name: mine, ${spec}: ''}`;
      const text = `plugins: [{type: core-metrics-extractor, parameters: {engineConfigs: [${engine}]}}]`;
      const { engineConfigs } = loadConfiguration({ text }, options).extractor;
      expect(new EngineTable({ engineConfigs, defaultEngine: 'mine' }).choose({}).engine.wanted).toEqual([
        { name: 'process_start_time_seconds', aggregate: 'max' },
      ]);
    },
  );

  it('an empty metric of another cluster is the default one', () => {
    const schema = multiclusterMetricsExtractorParameters();
    expect(schema.parse({ kvCacheUtilizationMetric: '', queueSizeMetric: '' })).toEqual(schema.parse({}));
  });

  it('an empty speculativeTTL is the default one', () => {
    const settings = (ttl: string) => {
      const parameters = `{speculativeIndexing: true, speculativeTTL: ${ttl}}`;
      const producer = `{type: precise-prefix-cache-producer, parameters: ${parameters}}`;
      const text = `plugins: [${producer}, {type: prefix-cache-scorer}]`;
      return loadConfiguration({ text }, options).scheduling.kvEvents;
    };
    expect(settings("''")).toEqual(settings('2s'));
  });

  it.each([
    '{type: latency-scorer, parameters: {latencyPredictionInfoProducerName: "", prefixMatchInfoProducerName: ""}}',
    '{type: slo-headroom-tier-filter, parameters: {latencyPredictionInfoProducerName: ""}}',
    '{type: latency-slo-admitter, parameters: {latencyPredictionInfoProducerName: ""}}',
    '{type: predicted-latency-producer, parameters: {prefixMatchInfoProducerName: "", inFlightLoadProducerName: ""}}',
    '{type: concurrency-detector, parameters: {inFlightLoadProducerName: ""}}',
  ])('an empty name of a producer is the default one: %s', (plugin) => {
    const text = `plugins: [{type: queue-scorer}, ${plugin}]`;
    const plain = `plugins: [{type: queue-scorer}, ${plugin.replace(/, parameters: .*\}\}/, '}')}]`;
    expect(loadConfiguration({ text }, options).plugins).toEqual(loadConfiguration({ text: plain }, options).plugins);
  });

  it('blocks of 0 tokens have the default size', () => {
    const sizeOf = (parameters: string) => {
      const producer = `{type: approx-prefix-cache-producer, parameters: ${parameters}}`;
      const text = `plugins: [${producer}, {type: prefix-cache-scorer}]`;
      return loadConfiguration({ text }, options).scheduling.prefix?.blockTokens;
    };
    expect(sizeOf('{blockSizeTokens: 0}')).toBe(sizeOf('{}'));
    expect(sizeOf('{blockSizeTokens: 0, blockSize: 128}')).toBe(128);
  });

  it('an empty version and kind are assumed, with a warning', () => {
    const { warnings, notes } = loadConfiguration({ text: "apiVersion: ''\nkind: ''\n" }, options);
    expect(notes).toEqual([]);
    expect(warnings).toEqual([
      '--config-text:1:13: apiVersion: is empty: llm-d.ai/v1alpha1 is assumed',
      '--config-text:2:7: kind: is empty: EndpointPickerConfig is assumed',
    ]);
  });

  it.each([
    ['prefix-cache-scorer', 'prefixMatchInfoProducerName'],
    ['multicluster-prefix-cache-scorer', 'prefixMatchInfoProducerName'],
    ['no-hit-lru-scorer', 'prefixMatchInfoProducerName'],
    ['token-load-scorer', 'inFlightLoadProducerName'],
    ['core-metrics-extractor', 'engineLabelKey'],
    ['core-metrics-extractor', 'defaultEngine'],
    ['inflight-load-producer', 'prefixMatchInfoProducerName'],
  ])('an empty name in %s, %s, is the default', (type, field) => {
    const read = (parameters: string) => {
      const text = `plugins: [{type: ${type}, parameters: ${parameters}}]`;
      const { scheduling, extractor, effective } = loadConfiguration({ text }, { ...options, allowExperimental: true });
      const names = effective.plugins.map(({ name }) => name);
      return { profiles: scheduling.profiles, extractor, names };
    };
    expect(read(`{${field}: ''}`)).toEqual(read('{}'));
  });

  it('peer discovery with an empty name is absent', () => {
    const text = "dataLayer: {peerDiscovery: {pluginRef: ''}}";
    const { warnings } = loadConfiguration({ text }, options);
    expect(warnings.filter((line) => line.includes('peer'))).toEqual([]);
  });

  it('a length of match without weight needs no scale', () => {
    const text = 'plugins: [{type: prefix-cache-scorer, parameters: {matchLengthScaleTokens: 0}}]';
    expect(codes(loadConfiguration({ text }, options))).toContain('OP_SCORE_PREFIX');
  });

  it('the shape of a configuration warns about the deprecated apiVersion', () => {
    const text = 'apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: EndpointPickerConfig\n';
    expect(loadConfiguration({ text }, options).warnings).toEqual([
      '--config-text:1:13: apiVersion: inference.networking.x-k8s.io/v1alpha1 is deprecated: use llm-d.ai/v1',
    ]);
  });

  it('the shape of a configuration assumes version and kind when they are missing, with a warning', () => {
    expect(loadConfiguration({ text: 'plugins: []' }, options).warnings).toEqual([
      '--config-text:1:1: apiVersion: is missing: llm-d.ai/v1alpha1 is assumed',
      '--config-text:1:1: kind: is missing: EndpointPickerConfig is assumed',
    ]);
  });

  it('the shape of a configuration takes a field without a value as absent', () => {
    expect(codes(load('plugins:\n- type: queue-scorer\n  parameters:\nschedulingProfiles:\n'))).toEqual([
      'OP_SCORE_QUEUE',
      'OP_PICK_MAX_SCORE',
    ]);
  });

  it.each([
    ['plugns: []', '--config-text:3:1: plugns: unknown field "plugns"; did you mean "plugins"?'],
    ['plugins:\n- {name: x}', '--config-text:4:3: plugins[0].type: is required'],
    [
      'plugins: [{type: utilization-detector, parameters: {metricsStalenessThreshold: 200}}]',
      'utilization-detector: expected a duration such as 50ms, 1.5s or 2m30s, got 200',
    ],
    ['plugins: {}', '--config-text:3:10: plugins: expected a list, got a mapping'],
    ['plugins:\n- {type: 1}', '--config-text:4:10: plugins[0].type: expected a string, got 1'],
    ['plugins:\n- {type: queue-scorer, nme: a}', 'plugins[0].nme: unknown field "nme"; did you mean "name"?'],
    [
      'schedulingProfiles: [{name: a, plugins: [{pluginref: queue-scorer}]}]',
      'schedulingProfiles[0].plugins[0].pluginref: unknown field "pluginref"; did you mean "pluginRef"?',
    ],
    [
      'schedulingProfiles: [{name: a, plugins: [{pluginRef: queue-scorer, weight: 1e999}]}]',
      'schedulingProfiles[0].plugins[0].weight: expected a finite number, got Infinity',
    ],
    ['dataLayer: {sorces: []}', 'dataLayer.sorces: unknown field "sorces"; did you mean "sources"?'],
    ['schedulingProfiles:\n- {plugins: []}', 'schedulingProfiles[0].name: is required'],
    [
      'schedulingProfiles:\n- {name: a, plugins: [{weight: 1}]}',
      'schedulingProfiles[0].plugins[0].pluginRef: is required',
    ],
    ['schedulingProfiles:\n- {name: a, plugins: [{pluginRef: ""}]}', 'pluginRef: must not be empty'],
    [
      'flowControl: {maxBytes: lots}',
      'flowControl.maxBytes: expected a quantity such as 1Gi, 500Mi, 1k or 1000, got "lots"',
    ],
    ['flowControl: {maxBytes: true}', 'flowControl.maxBytes: expected a quantity'],
    ['flowControl: {defaultRequestTTL: soon}', 'flowControl.defaultRequestTTL: expected a duration such as'],
    [
      'flowControl: {priorityBands: [{priority: 0.5}]}',
      'flowControl.priorityBands[0].priority: expected a whole number',
    ],
  ])('the shape of a configuration refuses %j with place, field and remedy', (body, message) => {
    expect(refusal(body)).toContain(message);
  });

  it('the shape of a configuration puts every refusal on one line', () => {
    expect(refusal('plugins:\n- type: "a\n\n\n  b"')).not.toContain('\n');
  });
});

describe('feature gates', () => {
  it.each([
    ['flowControl', 'flowControl', true],
    ['flowControl=true', 'flowControl', true],
    ['flowControl=false', 'flowControl', false],
    ['haPopulateNonLeaderDatastore=false', 'haPopulateNonLeaderDatastore', false],
    ['haPopulateNonLeaderDatastore', 'haPopulateNonLeaderDatastore', true],
  ])('%s', (entry, name, value) => {
    expect(load(`featureGates: [${entry}]`).gates.get(name)).toBe(value);
  });

  it('feature gates have their defaults', () => {
    expect(Object.fromEntries(load('').gates)).toEqual({ flowControl: false, haPopulateNonLeaderDatastore: true });
  });

  it.each([
    ['flowControll', 'featureGates[0]: unknown feature gate "flowControll"; did you mean "flowControl"?'],
    ['noSuchGate', 'unknown feature gate "noSuchGate"; known: flowControl, haPopulateNonLeaderDatastore'],
    ['flowControl=qwerty', 'feature gate flowControl must be true or false, got "qwerty"'],
  ])('feature gates refuse %s', (entry, message) => {
    expect(refusal(`featureGates: [${entry}]`)).toContain(message);
  });
});

describe('plugins', () => {
  it.each([
    ['plugins: [{type: no-such-plugin}]', 'plugins[0].type: unknown plugin type "no-such-plugin"'],
    ['plugins: [{type: queue-scorr}]', 'did you mean "queue-scorer"?'],
    [
      'plugins: [{type: queue-scorer}, {type: queue-scorer}]',
      'plugins[1].type: plugin name "queue-scorer" is already taken',
    ],
    ['plugins: [{type: queue-scorer, name: a}, {type: random-picker, name: a}]', 'plugins[1].name: plugin name "a"'],
    [
      'plugins: [{type: load-aware-scorer, parameters: {treshold: 1}}]',
      'plugins[0].parameters.treshold: load-aware-scorer: unknown field "treshold"; did you mean "threshold"?',
    ],
    [
      'plugins:\n- type: load-aware-scorer\n  parameters:\n    threshold: many',
      '--config-text:6:16: plugins[0].parameters.threshold: load-aware-scorer: expected a number, got "many"',
    ],
    ['plugins: [{type: prefix-cache-scorer, parameters: {matchLengthWeight: 1.5}}]', 'must be at most 1, got 1.5'],
    ['plugins: [{type: file-discovery}]', 'plugins[0].parameters.path: file-discovery: is required'],
    [
      'plugins: [{type: label-selector-filter, parameters: {matchExpressions: [{key: a, operator: in}]}}]',
      'expected one of In, NotIn, Exists, DoesNotExist, got "in"; did you mean "In"?',
    ],
    [
      'plugins: [{type: label-selector-filter, parameters: {matchExpressions: [{key: a, operator: Exists, values: ' +
        '[b]}]}}]',
      'Exists and DoesNotExist take none',
    ],
    ['plugins: [{type: by-label, parameters: {label: a}}]', 'needs at least one entry in validValues'],
    ['plugins: [{type: active-blocks-scorer, parameters: {overlapWeight: -1}}]', 'must be at least 0, got -1'],
    ['plugins: [{type: token-producer, parameters: {vllm: {}}}]', 'vllm needs modelName'],
    [
      'plugins: [{type: token-producer, parameters: {estimate: {a: 1}}}]',
      'unknown field "a"; valid here: image, video',
    ],
    [
      'plugins: [{type: prefix-cache-scorer, parameters: {matchLengthScaleTokens: 0, matchLengthWeight: 0.5}}]',
      'matchLengthScaleTokens: prefix-cache-scorer: must be above 0 while matchLengthWeight is',
    ],
    ['plugins: [{type: predicted-latency-producer, parameters: {contextTTL: x}}]', 'parameters.contextTTL: '],
    ['plugins: [{type: metrics-data-source, parameters: {interval: -1s}}]', 'must not be negative, got "-1s"'],
    [
      'plugins: [{type: label-selector-filter, parameters: {matchLabels: {"a b": c}}}]',
      'expected a label of Kubernetes, such as example.org/zone, got "a b"',
    ],
    [
      'plugins: [{type: label-selector-filter, parameters: {matchLabels: {a: c d}}}]',
      'expected a value of a label: at most 63 letters, digits, - _ and ., got "c d"',
    ],
    [
      'plugins: [{type: label-selector-filter, parameters: {matchExpressions: [{key: /a, operator: Exists}]}}]',
      'expected a label of Kubernetes, such as example.org/zone, got "/a"',
    ],
    ['plugins: [{type: metrics-data-source, parameters: {path: metrics}}]', 'must start with /'],
    ['plugins: [{type: metrics-data-source, parameters: {clientKeyPath: a}}]', 'must be given together'],
    ['plugins: [{type: core-metrics-extractor, parameters: {defaultEngine: vlm}}]', 'must be one of vllm, sglang'],
    [
      'plugins: [{type: core-metrics-extractor, parameters: {engineConfigs: [{name: a, kvUsageSpec: "a{"}]}}]',
      'expected a metric such as name or name{label=value}',
    ],
    ['plugins: [{type: utilization-detector, parameters: {queueDepthThreshold: 0}}]', 'must be at least 1, got 0'],
    ['plugins: [{type: utilization-detector, parameters: {kvCacheUtilThreshold: 0}}]', 'must be greater than 0, got 0'],
    ['plugins: [{type: utilization-detector, parameters: {kvCacheUtilThreshold: 1.5}}]', 'must be at most 1, got 1.5'],
    ['plugins: [{type: utilization-detector, parameters: {metricsStalenessThreshold: 0s}}]', 'must be longer than 0'],
    ['plugins: [{type: utilization-detector, parameters: {headroom: -0.1}}]', 'must be at least 0, got -0.1'],
    ['plugins: [{type: concurrency-detector, parameters: {maxConcurrency: 0}}]', 'must be at least 1, got 0'],
    ['plugins: [{type: concurrency-detector, parameters: {maxTokenConcurrency: 0}}]', 'must be at least 1, got 0'],
    ['plugins: [{type: concurrency-detector, parameters: {headroom: -1}}]', 'must be at least 0, got -1'],
    [
      'plugins: [{type: concurrency-detector, parameters: {concurrencyMode: x}}]',
      'expected one of requests, tokens, hybrid',
    ],
  ])('plugins refuse %j', (body, message) => {
    expect(refusal(body)).toContain(message);
  });

  it('plugins of a deprecated type load with a warning that names the replacement', () => {
    expect(load('plugins: [{type: tokenizer}]').warnings).toEqual([
      '--config-text:3:18: plugins[0].type: plugin type "tokenizer" is deprecated: use "token-producer"',
    ]);
  });

  it.each([
    [
      '{type: approx-prefix-cache-producer, parameters: {blockSize: 64}}',
      'blockSize is deprecated: use blockSizeTokens',
    ],
    ['{type: active-request-scorer, parameters: {requestTimeout: 5m}}', 'requestTimeout is deprecated'],
    ['{type: single-profile-handler, parameters: {a: 1}}', 'takes no parameters: a has no effect'],
    ['{type: queue-scorer, parameters: {a: 1}}', 'takes no parameters: a has no effect'],
    ['{type: utilization-detector, parameters: {headroom: 2}}', 'headroom 2 is large'],
  ])('%s load with a warning', (plugin, warning) => {
    expect(load(`plugins: [${plugin}]`).warnings[0]).toContain(warning);
  });

  it('plugins of Alpha stability load only when experimental plugins are allowed', () => {
    const alpha = {
      ...builtinPlugins.find(({ type }) => type === 'queue-scorer')!,
      type: 'new-scorer',
      stability: 'Alpha',
    };
    const registry = [...builtinPlugins, alpha as (typeof builtinPlugins)[number]];
    const text = 'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins: [{type: new-scorer, name: mine}]';
    expect(() => loadConfiguration({ text }, { registry, allowExperimental: false })).toThrow(
      'plugin "mine" of type "new-scorer" has Alpha stability level, but command line flag ' +
        '--allow-experimental-plugins is not set',
    );
    expect(codes(loadConfiguration({ text }, { registry, allowExperimental: true }))[0]).toBe('OP_SCORE_QUEUE');
  });
});

describe('profiles', () => {
  const plugins =
    'plugins: [{type: max-score-picker, name: best}, {type: random-picker}, {type: queue-scorer, name: queue}]\n';

  it('profiles hold filters first, then scorers, then the picker, wherever they stand', () => {
    const body = `plugins: [{type: random-picker}, {type: queue-scorer}, {type: decode-filter}, {type: prefill-filter}]
schedulingProfiles:
- name: any
  plugins: [{pluginRef: random-picker}, {pluginRef: queue-scorer, weight: 1.5}, {pluginRef: prefill-filter}, \
{pluginRef: decode-filter}]`;
    expect(load(body).scheduling.profiles).toEqual([
      {
        name: 'any',
        operations: [
          { code: 'OP_FILTER_MASK', name: 'prefill-filter', weight: 1, parameters: [0] },
          { code: 'OP_FILTER_MASK', name: 'decode-filter', weight: 1, parameters: [1] },
          { code: 'OP_SCORE_QUEUE', name: 'queue-scorer', weight: 1.5, parameters: [] },
          { code: 'OP_PICK_RANDOM', name: 'random-picker', weight: 1, parameters: [1] },
        ],
        filters: [
          { name: 'prefill-filter', judgesLoad: false },
          { name: 'decode-filter', judgesLoad: false },
        ],
      },
    ]);
  });

  it('profiles default to one of all filters, scorers and pickers in the order of the file', () => {
    const body =
      'plugins: [{type: token-load-scorer}, {type: random-picker}, {type: queue-scorer}, {type: decode-filter}]';
    const { profiles } = load(body).scheduling;
    expect(profiles).toHaveLength(1);
    expect(profiles[0]!.name).toBe('default');
    expect(profiles[0]!.operations.map(({ name }) => name)).toEqual([
      'decode-filter',
      'token-load-scorer',
      'queue-scorer',
      'random-picker',
    ]);
  });

  it('profiles without a picker take the first configured one', () => {
    const body = `${plugins}schedulingProfiles: [{name: a, plugins: [{pluginRef: queue}]}]`;
    expect(load(body).scheduling.profiles[0]!.operations.at(-1)!.name).toBe('best');
  });

  it('profiles give a scorer without a weight the weight 1', () => {
    const body = `${plugins}schedulingProfiles: [{name: a, plugins: [{pluginRef: queue}]}]`;
    expect(load(body).scheduling.profiles[0]!.operations[0]!.weight).toBe(1);
  });

  it('profiles ignore the weight of anything but a scorer, with a warning', () => {
    const configuration = load(`${plugins}schedulingProfiles: [{name: a, plugins: [{pluginRef: best, weight: 5}]}]`);
    expect(configuration.scheduling.profiles[0]!.operations[0]!.weight).toBe(1);
    expect(configuration.warnings[0]).toContain('"best" is a picker: only scorers have a weight');
  });

  it('profiles leave out what only works for all profiles, with a warning', () => {
    const body =
      'plugins: [{type: token-producer}]\nschedulingProfiles: [{name: a, plugins: [{pluginRef: token-producer}]}]';
    const configuration = load(body);
    expect(codes(configuration)).toEqual(['OP_PICK_MAX_SCORE']);
    expect(configuration.warnings[0]).toContain('"token-producer" is a producer: it has no effect in a profile');
  });

  it.each([
    [
      '[{name: a, plugins: [{pluginRef: nope}]}]',
      'schedulingProfiles[0].plugins[0].pluginRef: plugin "nope" is not defined',
    ],
    ['[{name: a, plugins: [{pluginRef: qeue}]}]', 'did you mean "queue"?'],
    ['[{name: a, plugins: [{pluginRef: decode-filter}]}]', 'add "- type: decode-filter" to plugins'],
    ['[{name: a}, {name: a}]', 'schedulingProfiles[1].name: profile "a" is defined twice'],
    [
      '[{name: a, plugins: [{pluginRef: best}, {pluginRef: random-picker}]}]',
      'two pickers, "best" and "random-picker"',
    ],
    ['[{name: a}, {name: b}]', 'profiles "a", "b" need a profile handler'],
  ])('profiles refuse %s', (profiles, message) => {
    expect(refusal(`${plugins}schedulingProfiles: ${profiles}`)).toContain(message);
  });

  it.each([
    ['utilization-detector', 'OP_FILTER_UNSATURATED'],
    ['concurrency-detector', 'OP_FILTER_CONCURRENCY'],
  ])('profiles may have the saturation detector %s as a filter', (type, code) => {
    const body = `plugins: [{type: ${type}}]\nschedulingProfiles: [{name: a, plugins: [{pluginRef: ${type}}]}]`;
    expect(codes(load(body))).toEqual([code, 'OP_PICK_MAX_SCORE']);
  });

  it('profiles may name max-score-picker without listing it while no other picker is listed', () => {
    const profiles = 'schedulingProfiles: [{name: a, plugins: [{pluginRef: max-score-picker}]}]';
    expect(codes(load(profiles))).toEqual(['OP_PICK_MAX_SCORE']);
    expect(refusal(`plugins: [{type: random-picker}]\n${profiles}`)).toContain(
      'add "- type: max-score-picker" to plugins',
    );
  });

  it('profiles refuse two handlers', () => {
    const body = 'plugins: [{type: single-profile-handler}, {type: single-profile-handler, name: second}]';
    expect(refusal(body)).toContain('plugins[1]: "second" is a second profile handler beside "single-profile-handler"');
  });

  it('profiles refuse several under the single profile handler', () => {
    const body = 'plugins: [{type: single-profile-handler}]\nschedulingProfiles: [{name: a}, {name: b}]';
    expect(refusal(body)).toContain('"single-profile-handler" runs one profile, but there are 2: "a", "b"');
  });

  it('profiles refuse more plugins than a program can hold', () => {
    const refs = Array.from({ length: 75 }, () => '{pluginRef: queue}').join(', ');
    expect(refusal(`${plugins}schedulingProfiles: [{name: a, plugins: [${refs}]}]`)).toContain(
      'at most 74 fit a program',
    );
  });

  it('profiles refuse more label filters than there are masks', () => {
    const filters = Array.from(
      { length: 257 },
      (_, i) => `- {type: label-selector-filter, name: f${i}, parameters: {matchLabels: {a: "${i}"}}}`,
    );
    const profiles = Array.from({ length: 6 }, (_, p) => {
      const refs = Array.from({ length: 50 }, (_, i) => `{pluginRef: f${Math.min(256, p * 50 + i)}}`);
      return `- {name: p${p}, plugins: [${refs.join(', ')}]}`;
    });
    const handler = {
      type: 'any-handler',
      kinds: ['profile-handler'],
      stability: 'Stable',
      doc: '',
      parameters: builtinPlugins[0]!.parameters,
    };
    const registry = [...builtinPlugins, handler as unknown as (typeof builtinPlugins)[number]];
    const text =
      'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n- {type: ' +
      `any-handler}\n${filters.join('\n')}\nschedulingProfiles:\n${profiles.join('\n')}`;
    expect(() => loadConfiguration({ text }, { registry, allowExperimental: false })).toThrow(
      'more than 256 different label filters',
    );
  });
});

describe('producers', () => {
  const names = (body: string) => load(body).effective.plugins.map(({ name }) => name);

  it.each([
    ['prefix-cache-scorer', ['approx-prefix-cache-producer', 'token-producer']],
    ['active-blocks-scorer', ['approx-prefix-cache-producer', 'token-producer']],
    ['token-load-scorer', ['inflight-load-producer', 'token-producer']],
    ['active-request-scorer', ['inflight-load-producer', 'token-producer']],
  ])('producers that %s needs are added, with what they need themselves', (scorer, expected) => {
    expect(names(`plugins: [{type: ${scorer}}]`)).toEqual(expect.arrayContaining(expected));
  });

  it('producers are not added when they are configured', () => {
    const body =
      'plugins: [{type: prefix-cache-scorer}, {type: approx-prefix-cache-producer, parameters: {autoTune: false}}, ' +
      '{type: tokenizer}]';
    expect(load(body).scheduling.prefix).toEqual({
      blockTokens: 64,
      maxBlocks: 2048,
      capacityBlocks: 31_250,
      autoTune: false,
    });
    expect(names(body)).not.toContain('token-producer');
  });

  it.each([
    [
      'nope',
      'plugins[0]: plugin "prefix-cache-scorer" takes prefix-match from "nope", which is not defined in plugins',
    ],
    ['queue-scorer', 'takes prefix-match from "queue-scorer", but a queue-scorer does not produce it'],
  ])('producers named %s are refused', (producer, message) => {
    const scorer = `{type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: ${producer}}}`;
    expect(refusal(`plugins: [${scorer}, {type: queue-scorer}]`)).toContain(message);
  });

  it('producers of prefix matches share one index, the largest capacity counts, with a warning', () => {
    const { scheduling, warnings } = load(`plugins:
- {type: approx-prefix-cache-producer, name: small, parameters: {lruCapacityPerServer: 1000, autoTune: false}}
- {type: prefix-cache-scorer}
- {type: prefix-cache-scorer, name: other, parameters: {prefixMatchInfoProducerName: small}}`);
    expect(scheduling.prefix).toMatchObject({ capacityBlocks: 31_250, autoTune: true });
    expect(warnings).toEqual([
      expect.stringContaining('set up by "approx-prefix-cache-producer": the parameters of "small" have no effect'),
    ]);
  });

  it('producers count estimated output only when asked to', () => {
    const estimate = (parameters: string) =>
      load(`plugins: [{type: inflight-load-producer, parameters: ${parameters}}]`).scheduling.estimateOutput;
    expect(estimate('{}')).toBeUndefined();
    expect(estimate('{addEstimatedOutputTokens: true}')).toEqual({ classes: false });
    expect(estimate('{addEstimatedOutputTokens: true, outputRatio: 2, maxEstimatedOutputTokens: 100}')).toEqual({
      ratio: 2,
      maxTokens: 100,
      classes: false,
    });
  });

  it('outlen-bucket tells answers apart, and without it a warning says that all count alike', () => {
    const producer = '{type: inflight-load-producer, parameters: {addEstimatedOutputTokens: true}}';
    const alike = load(`plugins: [${producer}, {type: token-load-scorer}]`);
    expect(alike.warnings).toEqual([expect.stringContaining('counts 1000 output tokens of every request')]);
    const apart = load(`plugins: [${producer}, {type: token-load-scorer}, {type: outlen-bucket}]`);
    expect(apart.warnings).toEqual([]);
    expect(apart.scheduling.estimateOutput).toMatchObject({ classes: true });
  });
});

describe('parsers', () => {
  it('parsers default to OpenAI and, last, the one that takes everything', () => {
    expect(load('').parsers).toEqual(['openai-parser', 'anthropic-parser', 'vllmhttp-parser', 'passthrough-parser']);
  });

  it('parsers are asked in the order of the list', () => {
    const body =
      'plugins: [{type: openai-parser, name: o}, {type: passthrough-parser, name: p}]\nrequestHandler: {parsers: ' +
      '[{pluginRef: p}, {pluginRef: o}]}';
    expect(load(body).parsers).toEqual(['passthrough-parser', 'openai-parser']);
  });

  it.each(['passthrough-parser', 'sglanghttp-parser', 'vertexai-parser', 'vllmgrpc-parser'])(
    'parsers may be named without being listed in plugins: %s',
    (parser) => {
      expect(load(`requestHandler: {parsers: [{pluginRef: ${parser}}]}`).parsers).toEqual([parser]);
    },
  );

  it('parsers may be named in the deprecated field, with a warning', () => {
    const { parsers, warnings } = load(
      'plugins: [{type: passthrough-parser}]\nparser: {pluginRef: passthrough-parser}',
    );
    expect(parsers).toEqual(['passthrough-parser']);
    expect(warnings).toEqual(['--config-text:4:9: parser: is deprecated: use requestHandler.parsers']);
  });

  it('parsers of the new field win over the deprecated one', () => {
    const body =
      'plugins: [{type: openai-parser}, {type: passthrough-parser}]\nparser: {pluginRef: ' +
      'passthrough-parser}\nrequestHandler: {parsers: [{pluginRef: openai-parser}]}';
    expect(load(body).parsers).toEqual(['openai-parser']);
  });

  it.each([
    [
      'requestHandler: {parsers: [{pluginRef: wrongParser}]}',
      'requestHandler.parsers[0].pluginRef: plugin "wrongParser" is not defined',
    ],
    [
      'plugins: [{type: queue-scorer}]\nrequestHandler: {parsers: [{pluginRef: queue-scorer}]}',
      'plugin "queue-scorer" is of kind scorer, expected parser',
    ],
  ])('parsers refuse %j', (body, message) => {
    expect(refusal(body)).toContain(message);
  });
});

describe('the data layer', () => {
  const GPU = 'plugins: [{type: dcgm-data-source, name: gpu}, {type: dcgm-extractor}, {type: models-data-extractor}]\n';
  const sources = (...extractors: string[]) =>
    'dataLayer: {sources: [{pluginRef: gpu, extractors: ' +
    `[${extractors.map((name) => `{pluginRef: ${name}}`).join()}]}]}`;

  it('the data layer may fetch further attributes of endpoints', () => {
    const { attributeSources } = load(GPU + sources('dcgm-extractor'), true);
    expect(attributeSources).toMatchObject([
      { name: 'gpu', atNode: false, page: { scheme: 'http', path: '/metrics', port: 9400 } },
    ]);
    expect(attributeSources[0]!.metrics.map(({ attribute }) => attribute)).toEqual(['GPUUtilization']);
  });

  it('the data layer does not fetch what no extractor of the right type reads, and says so', () => {
    for (const wired of [sources(), sources('models-data-extractor')]) {
      const { attributeSources, warnings } = load(GPU + wired, true);
      expect(attributeSources).toEqual([]);
      expect(warnings).toEqual([expect.stringContaining('"gpu" has no extractor that reads a dcgm-data-source')]);
    }
  });

  it('the data layer asks for models once, where an extractor reads them', () => {
    const plugins =
      'plugins: [{type: models-data-source, name: a}, {type: models-data-source, name: b}, {type: ' +
      'models-data-extractor}]\n';
    const wired = (names: string) =>
      `dataLayer: {sources: [${names
        .split('')
        .map((name) => `{pluginRef: ${name}, extractors: [{pluginRef: models-data-extractor}]}`)
        .join()}]}`;
    expect(load(plugins + wired('a')).modelsSource).toMatchObject({ path: '/v1/models', scheme: 'http' });
    const both = load(plugins + wired('ab'));
    expect(both.warnings).toEqual([expect.stringContaining('"b" comes after "a": it is not fetched')]);
    const none = load(`${plugins}dataLayer: {sources: [{pluginRef: a}]}`);
    expect(none.modelsSource).toBeUndefined();
    expect(none.warnings).toEqual([expect.stringContaining('"a" has no models-data-extractor')]);
  });

  it('the data layer accepts the notification sources of llm-d-router, which have nothing to do', () => {
    const { warnings } = load(
      'plugins: [{type: endpoint-notification-source}, {type: k8s-notification-source, parameters: {version: v1, ' +
        'kind: Pod}}]\ndataLayer: {sources: [{pluginRef: endpoint-notification-source}, {pluginRef: ' +
        'k8s-notification-source}]}',
    );
    expect(warnings).toEqual([expect.stringContaining('no extractor reads it')]);
    expect(refusal('plugins: [{type: k8s-notification-source}]')).toContain(
      'parameters.version: k8s-notification-source: is required',
    );
  });

  it('a pool of clusters needs a source of their load', () => {
    const plugins = (extractor: string) =>
      `plugins: [{type: multicluster-queue-scorer}, {type: multicluster-metrics-data-source}${extractor}]\n`;
    expect(() => load(plugins(''), true)).toThrow('needs multicluster-load, which no plugin produces');
    const wired = load(
      `${plugins(', {type: multicluster-metrics-extractor}')}dataLayer: {sources: [{pluginRef: ` +
        'multicluster-metrics-data-source, extractors: [{pluginRef: multicluster-metrics-extractor}]}]}',
      true,
    );
    expect(wired.attributeSources).toMatchObject([{ page: { scheme: 'https', insecureSkipVerify: false } }]);
  });

  it('the data layer adds the prefix producer of clusters for their scorer', () => {
    const { scheduling } = load('plugins: [{type: multicluster-prefix-cache-scorer}]', true);
    expect(scheduling.prefixProducer?.type).toBe('multicluster-approx-prefix-cache-producer');
  });

  it('the data layer finds endpoints in a file, relative to the working directory', () => {
    const body =
      'plugins: [{type: file-discovery, name: disc, parameters: {path: endpoints.yaml, watchFile: ' +
      'true}}]\ndataLayer: {discovery: {pluginRef: disc}}';
    expect(load(body).discovery).toEqual({ type: 'file-discovery', path: resolve('endpoints.yaml'), watch: true });
  });

  it('the data layer has no discovery unless it is named', () => {
    expect(load('plugins: [{type: file-discovery, parameters: {path: a}}]').discovery).toBeUndefined();
  });

  it('the data layer takes parameters of a listed metrics-data-source even when it is not named as source', () => {
    const body = 'plugins: [{type: metrics-data-source, parameters: {scheme: https, port: 9100, interval: 1s}}]';
    expect(load(body).metricsSource).toMatchObject({ enabled: true, scheme: 'https', port: 9100, intervalMs: 1000 });
  });

  it('the data layer fetches no metrics when the defaults are not injected', () => {
    expect(load('dataLayer: {injectDefaults: false}').metricsSource.enabled).toBe(false);
  });

  it('the data layer fetches no metrics that nothing reads, with a warning', () => {
    const { metricsSource, warnings } = load(
      'plugins: [{type: metrics-data-source}]\ndataLayer: {sources: [{pluginRef: metrics-data-source}]}',
    );
    expect(metricsSource.enabled).toBe(false);
    expect(warnings).toEqual([expect.stringContaining('has no core-metrics-extractor: no metrics are fetched')]);
  });

  it('the data layer reads the engine from the configured label, then from the older one', () => {
    const body =
      'plugins: [{type: core-metrics-extractor, parameters: {engineLabelKey: engine, defaultEngine: mine, ' +
      'engineConfigs: [{name: mine, queuedRequestsSpec: "waiting{kind=a}"}]}}]';
    expect(load(body).extractor).toMatchObject({
      engineLabelKeys: ['engine', 'inference.networking.k8s.io/engine-type'],
      defaultEngine: 'mine',
      engineConfigs: [{ name: 'mine', queuedRequestsSpec: 'waiting{kind=a}', customMetrics: [] }],
    });
  });

  it.each([
    ['dataLayer: {sources: [{pluginRef: nope}]}', 'dataLayer.sources[0].pluginRef: plugin "nope" is not defined'],
    [
      'plugins: [{type: metrics-data-source}]\ndataLayer: {sources: [{pluginRef: metrics-data-source, extractors: ' +
        '[{pluginRef: nope}]}]}',
      'dataLayer.sources[0].extractors[0].pluginRef: plugin "nope" is not defined',
    ],
    ['dataLayer: {discovery: {pluginRef: nodisc}}', 'dataLayer.discovery.pluginRef: plugin "nodisc" is not defined'],
    [
      'plugins: [{type: queue-scorer}]\ndataLayer: {discovery: {pluginRef: queue-scorer}}',
      'plugin "queue-scorer" is of kind scorer, expected discovery',
    ],
    ['dataLayer: {peerDiscovery: {pluginRef: peers}}', 'plugin "peers" is not defined'],
    ['dataLayer: {crossReplicaSyncerPluginRef: sync}', 'plugin "sync" is not defined'],
    [
      'plugins: [{type: metrics-data-source}, {type: metrics-data-source, name: b}]\ndataLayer: {sources: ' +
        '[{pluginRef: b}, {pluginRef: metrics-data-source}]}',
      '"b" and "metrics-data-source" are both of type metrics-data-source',
    ],
    [
      'plugins: [{type: metrics-data-source}, {type: core-metrics-extractor}]\ndataLayer: {sources: [{pluginRef: ' +
        'metrics-data-source, extractors: [{pluginRef: core-metrics-extractor}, ' +
        '{pluginRef: core-metrics-extractor}]}]}',
      'dataLayer.sources[0].extractors[1].pluginRef: "core-metrics-extractor" is listed twice: keep one',
    ],
    [
      'plugins: [{type: metrics-data-source}, {type: core-metrics-extractor}, ' +
        '{type: core-metrics-extractor, name: b}]\ndataLayer: {sources: [{pluginRef: metrics-data-source, ' +
        'extractors: [{pluginRef: core-metrics-extractor}, {pluginRef: b}]}]}',
      '"core-metrics-extractor" and "b" are both of type core-metrics-extractor: keep one',
    ],
    [
      'plugins: [{type: queue-scorer, name: metrics-data-source}]',
      'plugin "metrics-data-source" is of kind scorer, expected data-source',
    ],
  ])('the data layer refuses %j', (body, message) => {
    expect(refusal(body)).toContain(message);
  });
});

describe('the effective configuration', () => {
  it.each([
    ['', 'no plugins'],
    [
      'featureGates: [flowControl]\nflowControl: {maxBytes: 1Gi, ' +
        'priorityBands: [{priority: 1, maxRequests: 10, defaultRequestTTL: 5s}]}',
      'flow control',
    ],
    ['plugins: [{type: prefix-cache-scorer}, {type: decode-filter}, {type: random-picker}]', 'a default profile'],
    ['dataLayer: {injectDefaults: false}', 'no metrics'],
  ])('the effective configuration loads to itself: %s', (body) => {
    const first = load(body);
    const second = loadConfiguration({ text: stringify(first.effective) }, options);
    expect(second.effective).toEqual(first.effective);
    expect(second.flowControl).toEqual(first.flowControl);
    expect(second.scheduling.profiles).toEqual(first.scheduling.profiles);
  });
});

describe('a configuration text above a mebibyte', () => {
  it('a text above a mebibyte is refused by its size before it is parsed', () => {
    const text = '['.repeat(1024 * 1024 + 1);
    const options = { registry: builtinPlugins, allowExperimental: false };
    expect(() => loadConfiguration({ text }, options)).toThrow(
      '--config-text has 1048577 bytes, and at most 1048576 are read',
    );
  });
});
