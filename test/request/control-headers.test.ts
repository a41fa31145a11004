import { describe, expect, it } from 'vitest';
import {
  CONTROL_HEADERS,
  fairnessId,
  firstTokenObjectiveMs,
  queueDeadlineMs,
  requestedRewrite,
  requestPath,
} from '../../dist/src/request/control-headers.js';
import { objectiveName } from '../../dist/src/scheduling/wanted-times.js';

const headers = (entries: Record<string, string>) => new Map(Object.entries(entries));

describe('control headers', () => {
  it.each([
    ['fairness id', fairnessId, 'x-llm-d-inference-fairness-id', 'x-gateway-inference-fairness-id'],
    ['objective', objectiveName, 'x-llm-d-inference-objective', 'x-gateway-inference-objective'],
    ['rewrite', requestedRewrite, 'x-llm-d-model-name-rewrite', 'x-gateway-model-name-rewrite'],
  ] as const)('control headers give the %s by the new name before the old one', (_what, read, name, alias) => {
    expect(read(headers({ [alias]: 'old' }))).toBe('old');
    expect(read(headers({ [alias]: 'old', [name]: 'new' }))).toBe('new');
    expect([CONTROL_HEADERS.has(name), CONTROL_HEADERS.has(alias)]).toEqual([true, true]);
  });

  it('control headers default to the default flow, and to no objective and no rewrite', () => {
    expect([fairnessId(headers({})), objectiveName(headers({})), requestedRewrite(headers({}))]).toEqual([
      'default-flow',
      undefined,
      undefined,
    ]);
  });

  it('control headers tell the path from the first of three headers, then the default', () => {
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

  it('control headers tell when the first token is due and how long an answer is of use', () => {
    const both = headers({ 'x-slo-ttft-ms': '250', 'x-pointsman-deadline-ms': '1500' });
    expect([firstTokenObjectiveMs(both), queueDeadlineMs(both)]).toEqual([250, 1500]);
    expect(firstTokenObjectiveMs(headers({ 'x-llm-d-slo-ttft-ms': '99', 'x-slo-ttft-ms': '250' }))).toBe(99);
    expect(
      ['', ' ', '-1', 'soon', '1e999', 'NaN'].map((text) =>
        queueDeadlineMs(headers({ 'x-pointsman-deadline-ms': text })),
      ),
    ).toEqual(Array.from({ length: 6 }, () => undefined));
    expect([firstTokenObjectiveMs(headers({})), CONTROL_HEADERS.has('x-pointsman-deadline-ms')]).toEqual([
      undefined,
      true,
    ]);
  });

  it('control headers tell the longest wait in the notation of Go, and the earlier end of both headers counts', () => {
    const longest = (text: string) => queueDeadlineMs(headers({ 'x-llm-d-inference-ttl': text }));
    expect(['2s', '1500ms', '1m30s'].map(longest)).toEqual([2_000, 1_500, 90_000]);
    expect(['', '0s', '-1s', '5', 'soon'].map(longest)).toEqual(Array.from({ length: 5 }, () => undefined));
    const both = (ttl: string) => headers({ 'x-llm-d-inference-ttl': ttl, 'x-pointsman-deadline-ms': '1500' });
    expect([queueDeadlineMs(both('1s')), queueDeadlineMs(both('1m'))]).toEqual([1_000, 1_500]);
    expect(CONTROL_HEADERS.has('x-llm-d-inference-ttl')).toBe(true);
  });

  it("control headers do not include the destination and the client's other headers", () => {
    expect(
      ['x-gateway-destination-endpoint', 'x-request-id', 'authorization'].map((name) => CONTROL_HEADERS.has(name)),
    ).toEqual([false, false, false]);
  });
});
