import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { loadConfiguration } from '../../dist/src/config/load.js';
import { gateSettings } from '../../dist/src/flow-control/gate-settings.js';

const CHILDREN =
  '{type: concurrency-detector, name: capacity, parameters: {concurrencyMode: tokens, maxTokenConcurrency: 5000}}, ' +
  '{type: concurrency-detector, name: requests, parameters: {maxConcurrency: 32}}, ' +
  '{type: scraped-concurrency-detector, name: scraped, parameters: {maxConcurrency: 5}}, ' +
  '{type: utilization-detector, name: queue}';

function load(parameters: string) {
  const worst = `{type: max-saturation-detector, name: worst, parameters: ${parameters}}`;
  const text =
    'apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\nfeatureGates: [flowControl]\n' +
    `plugins: [${CHILDREN}, ${worst}]\nflowControl: {saturationDetector: {pluginRef: worst}}\n`;
  return loadConfiguration({ text }, { allowExperimental: true, registry: builtinPlugins });
}

describe('max-saturation-detector in a configuration', () => {
  it('its detectors limit the stages that they look at, each figure by the strictest', () => {
    const { saturationDetector, warnings } = load(
      '{detectors: [capacity, requests, scraped, queue], stages: {capacity: [prefill], scraped: [decode]}}',
    );
    expect(warnings).toEqual([]);
    expect(gateSettings(saturationDetector)).toMatchObject({
      mode: 'worst',
      prefill: { tokens: 5000, requests: 32, queue: 5, usage: 0.8, scraped: Number.POSITIVE_INFINITY },
      decode: { tokens: Number.POSITIVE_INFINITY, requests: 32, queue: 5, scraped: 5, scrapedStalenessMs: 2000 },
    });
  });

  it.each([
    ['{detectors: []}', 'detectors: max-saturation-detector: must have at least 1 entry'],
    ['{detectors: [queue, queue]}', 'every detector may stand there once'],
    ['{detectors: [gone]}', 'plugin "gone" is not defined'],
    ['{detectors: [worst]}', '"worst" (max-saturation-detector) cannot stand beside others'],
    ['{detectors: [queue], stages: {capacity: [prefill]}}', 'stages: max-saturation-detector: every name must be one'],
    ['{detectors: [queue], stages: {queue: [encode]}}', 'expected one of prefill, decode'],
    ['{detectors: [queue], stages: {queue: []}}', 'must have at least 1 entry'],
  ])('%s is refused', (parameters, message) => {
    expect(() => load(parameters)).toThrow(message);
  });
});
