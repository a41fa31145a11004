import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { loadConfiguration } from '../../dist/src/config/load.js';
import { Engine } from '../../dist/src/pool/engines/engine.js';
import { EngineTable } from '../../dist/src/pool/engines/engine-table.js';

const options = { allowExperimental: true, registry: builtinPlugins };

function warnings(plugin: string): readonly string[] {
  const text = `apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\nplugins: [${plugin}]\n`;
  return loadConfiguration({ text }, options).warnings;
}

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

  it('tracing and a session manager of the precise producer load', () => {
    const parameters = '{sessionManager: sessions, kvEventsConfig: {tracing: true}}';
    const found = warnings(`{type: precise-prefix-cache-producer, parameters: ${parameters}}`);
    expect(found.filter((text) => /tracing|sessionManager/.test(text))).toEqual([]);
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

describe('plugins of the next llm-d-router that do nothing yet', () => {
  it.each(['served-model-filter', 'lora-load-state-scorer', 'models-responder', 'session-state-producer'])(
    '%s loads with a warning that says so',
    (type) => {
      expect(warnings(`{type: queue-scorer}, {type: ${type}, parameters: {any: 1}}`)).toEqual([
        expect.stringContaining(`${type}: has no effect: `),
      ]);
    },
  );

  it('a filter and a scorer of them may stand in a profile', () => {
    const plugins = '{type: queue-scorer}, {type: served-model-filter}, {type: lora-load-state-scorer}';
    const text =
      `apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\nplugins: [${plugins}]\nschedulingProfiles:\n` +
      '- {name: default, plugins: [{pluginRef: served-model-filter}, {pluginRef: ' +
      'lora-load-state-scorer, weight: 2}]}\n';
    const { profiles } = loadConfiguration({ text }, options).scheduling;
    expect(profiles[0]!.operations.map(({ code }) => code)).toEqual(['OP_PICK_MAX_SCORE']);
  });
});
