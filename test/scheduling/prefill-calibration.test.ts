import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { ConfigurationDocument } from '../../dist/src/config/document.js';
import { loadDocument } from '../../dist/src/config/load.js';

const folder = mkdtempSync(join(tmpdir(), 'pointsman-calibration-'));
afterAll(() => rmSync(folder, { recursive: true }));

const RECORD = {
  schema_version: 1,
  status: 'OK',
  fingerprint: 'sha256:this-deployment',
  chunk_tokens: 8192,
  valid_samples: 12,
  median_ttft_seconds: 0.4,
  peak_prefill_tokens_per_second: 25_000,
};

/** The throughput that the filter is compiled with, and its warnings. */
function load(parameters: Record<string, unknown>, record: unknown = RECORD) {
  writeFileSync(join(folder, 'record.json'), typeof record === 'string' ? record : JSON.stringify(record));
  const type = 'prefix-cache-affinity-filter';
  const text = JSON.stringify({
    apiVersion: 'llm-d.ai/v1',
    kind: 'EndpointPickerConfig',
    plugins: [{ type, parameters }],
    schedulingProfiles: [{ name: 'default', plugins: [{ pluginRef: type }] }],
  });
  const document = new ConfigurationDocument(text, 'config', folder);
  const loaded = loadDocument(document, { allowExperimental: false, registry: builtinPlugins });
  const operation = loaded.scheduling.profiles[0]!.operations.find(({ code }) => code === 'OP_FILTER_PREFIX_AFFINITY');
  return { throughput: operation!.parameters[3], warnings: loaded.warnings.filter((each) => each.includes(type)) };
}

const CALIBRATED = {
  prefillCalibrationFile: 'record.json',
  prefillCalibrationFingerprint: 'sha256:this-deployment',
};

describe('the calibration of prefix-cache-affinity-filter', () => {
  it('a record of this deployment gives the throughput', () => {
    expect(load(CALIBRATED)).toEqual({ throughput: 25_000, warnings: [] });
  });

  it('a throughput that is written goes before the record', () => {
    expect(load({ ...CALIBRATED, peakPrefillThroughput: 15_928 })).toEqual({ throughput: 15_928, warnings: [] });
  });

  it('no record leaves the default', () => {
    expect(load({})).toEqual({ throughput: 15_928, warnings: [] });
  });

  it.each([
    ['another deployment', { ...RECORD, fingerprint: 'sha256:other' }, 'was measured on another deployment'],
    ['a failed measurement', { ...RECORD, status: 'FAILED' }, 'status'],
    ['too few samples', { ...RECORD, valid_samples: 9 }, 'valid_samples'],
    ['a throughput of 0', { ...RECORD, peak_prefill_tokens_per_second: 0 }, 'peak_prefill_tokens_per_second'],
    ['another schema', { ...RECORD, schema_version: 2 }, 'schema_version'],
    ['a truncated file', '{"schema_version":', 'is no JSON document'],
  ])('a record of %s is not used, with a warning', (_name, record, why) => {
    const { throughput, warnings } = load(CALIBRATED, record);
    expect(throughput).toBe(15_928);
    expect(warnings).toEqual([expect.stringContaining('the calibration is not used: ')]);
    expect(warnings[0]).toContain(why);
  });

  it('a required record that cannot be used ends the start', () => {
    const required = { ...CALIBRATED, prefillCalibrationRequired: true };
    expect(() => load(required, { ...RECORD, status: 'NOT_RUN' })).toThrow('prefix-cache-affinity-filter: ');
    expect(() => load({ prefillCalibrationRequired: true })).toThrow('prefillCalibrationFile is not set');
  });

  it('a latency predictor needs no record', () => {
    const predicted = { ...CALIBRATED, ttftSource: 'latencyPredictor', prefillCalibrationRequired: true };
    expect(load(predicted, { ...RECORD, status: 'NOT_RUN' }).warnings).toEqual([]);
  });
});
