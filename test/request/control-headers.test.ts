import { describe, expect, it } from 'vitest';
import {
  fairnessId,
  isControlHeader,
  objectiveName,
  requestedRewrite,
  requestPath,
} from '../../dist/request/control-headers.js';

const headers = (entries: Record<string, string>) => new Map(Object.entries(entries));

describe('control headers', () => {
  it.each([
    ['fairness id', fairnessId, 'x-llm-d-inference-fairness-id', 'x-gateway-inference-fairness-id'],
    ['objective', objectiveName, 'x-llm-d-inference-objective', 'x-gateway-inference-objective'],
    ['rewrite', requestedRewrite, 'x-llm-d-model-name-rewrite', 'x-gateway-model-name-rewrite'],
  ] as const)('give the %s by the new name before the old one', (_what, read, name, alias) => {
    expect(read(headers({ [alias]: 'old' }))).toBe('old');
    expect(read(headers({ [alias]: 'old', [name]: 'new' }))).toBe('new');
    expect([isControlHeader(name), isControlHeader(alias)]).toEqual([true, true]);
  });

  it('default to the default flow, and to no objective and no rewrite', () => {
    expect([fairnessId(headers({})), objectiveName(headers({})), requestedRewrite(headers({}))]).toEqual([
      'default-flow',
      undefined,
      undefined,
    ]);
  });

  it('tell the path from the first of three headers, then the default', () => {
    const all = { ':path': '/a', 'x-original-path': '/b', 'x-forwarded-path': '/c' };
    const { ':path': _a, ...two } = all;
    const { 'x-original-path': _b, ...one } = two;
    expect([all, two, one, {}].map((entries) => requestPath(headers(entries)))).toEqual([
      '/a',
      '/b',
      '/c',
      '/v1/completions',
    ]);
  });

  it("do not include the destination and the client's other headers", () => {
    expect(['x-gateway-destination-endpoint', 'x-request-id', 'authorization'].map(isControlHeader)).toEqual([
      false,
      false,
      false,
    ]);
  });
});
