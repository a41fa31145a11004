import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { readVersioned } from '../../dist/src/config/api-versions.js';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { loadConfiguration, readDocument } from '../../dist/src/config/load.js';
import { PluginSet } from '../../dist/src/config/plugin-set.js';
import { Engine } from '../../dist/src/pool/engines/engine.js';
import { EngineTable } from '../../dist/src/pool/engines/engine-table.js';

const options = { allowExperimental: true, registry: builtinPlugins };

function warnings(plugin: string): readonly string[] {
  const text = `apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\nplugins: [${plugin}]\n`;
  return loadConfiguration({ text }, options).warnings;
}

/** Warnings of a plugin whose references to others are not resolved. */
function pluginWarnings(plugin: string): readonly string[] {
  const document = readDocument({
    text: `apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\nplugins: [${plugin}]\n`,
  });
  const set = new PluginSet(document, builtinPlugins, true);
  expect(set.loadUsable(readVersioned(document).config.plugins)).toEqual([]);
  return set.warnings;
}

interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
}

/** A value of a type that no parameter has as its default. */
const PLAIN: Readonly<Record<string, unknown>> = { string: '7s', number: 0.77, integer: 77, boolean: true };

describe('parameters of the next llm-d-router', () => {
  it.each([
    '{type: metrics-data-source, parameters: {families: ["vllm:num_requests_waiting"]}}',
    '{type: core-metrics-extractor, parameters: {defaultEngine: atom}}',
    '{type: core-metrics-extractor, parameters: {defaultEngine: vllm-omni}}',
    '{type: core-metrics-extractor, parameters: {engineConfigs: [{name: own, loraLoadedSpec: l, ' +
      'loraGPULoadedSpec: n, ' +
      'loraGPUSlotsSpec: s, customMetrics: [{attributeKey: a, metricSpec: m, optional: true}]}]}}',
    '{type: concurrency-detector, parameters: {failOpen: true}}',
  ])('%s loads without a warning', (plugin) => {
    expect(warnings(plugin)).toEqual([]);
  });

  it('prefixHashSource loads with a warning', () => {
    expect(warnings('{type: approx-prefix-cache-producer, parameters: {prefixHashSource: metadata}}')).toEqual([
      expect.stringContaining('prefixHashSource has no effect: blocks are hashed from the prompt here'),
    ]);
  });

  it('tracing and a session manager of the precise producer load with a warning each', () => {
    const parameters = '{sessionManager: sessions, kvEventsConfig: {tracing: true, concurrency: 4, engineType: vllm}}';
    const found = warnings(`{type: precise-prefix-cache-producer, parameters: ${parameters}}`);
    expect(found.filter((text) => text.includes('no effect'))).toEqual([
      expect.stringMatching(/: sessionManager has no effect: engines' events are matched by their blocks/),
      expect.stringMatching(/: kvEventsConfig\.tracing has no effect: events are counted, not traced$/),
    ]);
  });

  it('every parameter whose description says that it has no effect is named once when it is written', () => {
    const plain = (schema: JsonSchema): unknown =>
      schema.enum?.[0] ?? (schema.anyOf === undefined ? (PLAIN[schema.type ?? ''] ?? {}) : plain(schema.anyOf[0]!));
    const silent = builtinPlugins.flatMap(({ type, parameters }) => {
      const options = { io: 'input', unrepresentable: 'any' } as const;
      const { properties = {} } = z.toJSONSchema(parameters, options) as JsonSchema;
      return Object.entries(properties).flatMap(([name, schema]) => {
        if (!/without effect|no effect/i.test(schema.description ?? '')) return [];
        const written = JSON.stringify({ type, parameters: { [name]: plain(schema) } });
        const found = pluginWarnings(written).filter((text) => text.includes(name));
        return found.length === 1 ? [] : [`${written}: ${found.length}`];
      });
    });
    expect(silent).toEqual([]);
  });
});

describe('engines of the next llm-d-router', () => {
  it.each([
    ['atom', ['atom:num_requests_waiting', 'atom:num_requests_running', 'atom:kv_cache_usage_perc']],
    ['vllm-omni', ['vllm_omni:num_requests_waiting', 'vllm_omni:num_requests_running']],
  ])('%s is read by its own metrics', (name, metrics) => {
    const { engine, known } = new EngineTable().choose({ 'llm-d.ai/engine-type': name });
    expect(known).toBe(true);
    expect(engine).toBeInstanceOf(Engine);
    expect(engine.wanted.map((metric) => metric.name)).toEqual(expect.arrayContaining(metrics));
  });
});

describe('plugins of the next llm-d-router', () => {
  const models = '{type: models-data-source}, {type: models-data-extractor}';
  const sources =
    'dataLayer: {sources: [{pluginRef: models-data-source, extractors: [{pluginRef: models-data-extractor}]}]}';
  const loaded = (plugins: string, more = '') =>
    loadConfiguration(
      { text: `apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\nplugins: [${plugins}]\n${more}` },
      options,
    );

  it('served-model-filter compiles to an operation over its column', () => {
    const filter = '{type: served-model-filter, parameters: {onMissing: Fail, fallbackOnEmpty: true}}';
    const { scheduling, warnings } = loaded(`${models}, ${filter}, {type: queue-scorer}`, sources);
    const { operations, filters } = scheduling.profiles[0]!;
    expect(operations[0]).toMatchObject({ code: 'OP_FILTER_SERVED_MODEL', parameters: [0, 0, 1] });
    expect(filters).toEqual([{ name: 'served-model-filter', judgesLoad: false, counted: 'served-model' }]);
    expect(warnings).toEqual([]);
  });

  it('served-model-filter needs models-data-extractor, and warns where no source is wired to it', () => {
    expect(() => loaded('{type: served-model-filter}')).toThrow('needs served-models, which no plugin produces');
    expect(loaded(`${models}, {type: served-model-filter}`).warnings).toEqual([
      expect.stringContaining('"served-model-filter" knows no endpoint\'s models: list a models-data-source'),
    ]);
  });

  it('models-responder has the lists of models fetched, by the source that is there or by one of its own', () => {
    expect(loaded('{type: queue-scorer}').modelsSource).toBeUndefined();
    expect(loaded('{type: models-responder}').modelsSource).toMatchObject({ scheme: 'http', path: '/v1/models' });
    const own = '{type: models-data-source, parameters: {path: /models}}, {type: models-responder}';
    expect(loaded(own).modelsSource).toMatchObject({ path: '/models' });
  });

  it('lora-load-state-scorer has the adapters that are loaded read', () => {
    expect(loaded('{type: lora-load-state-scorer}').scheduling.readsLoadedAdapters).toBe(true);
    expect(loaded('{type: queue-scorer}').scheduling.readsLoadedAdapters).toBe(false);
  });

  it.each([
    ['{type: models-responder}', 'models-responder', 1878],
    ['{type: lora-load-state-scorer}', 'lora-load-state-scorer', 2792],
    ['{type: agent-identity}, {type: session-state-producer}', 'session-state-producer', 2531],
  ])('%s loads with a warning that it may change', (plugins, name, thread) => {
    const text = `${name}: follows an open proposal of llm-d-router (#${thread})`;
    expect(loaded(plugins).warnings).toEqual([expect.stringContaining(text)]);
  });

  it('session-state-producer needs agent-identity', () => {
    expect(() => loaded('{type: session-state-producer}')).toThrow('needs agent-identity, which no plugin produces');
  });
});
