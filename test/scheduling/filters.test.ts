import { describe, expect, it } from 'vitest';
import { selectorAccepts } from '../../dist/src/contract/label-selector.js';
import { labelSelector } from '../../dist/src/scheduling/filters/label-selector-filter.js';
import type { CompileContext, PluginDefinition } from '../../dist/src/scheduling/plugin.js';
import { schedulingPlugins } from '../../dist/src/scheduling/registry.js';

/** The label rule that a filter compiles to. */
function rule(type: string, parameters: Record<string, unknown> = {}) {
  const definition = schedulingPlugins.find((candidate) => candidate.type === type) as PluginDefinition;
  const rules: ((labels: Readonly<Record<string, string>>) => boolean)[] = [];
  const context: CompileContext = {
    name: 'f',
    kind: 'filter',
    prefix: undefined,
    label: () => 0,
    requestKey: () => 0,
    topology: () => undefined,
    attribute: () => 0,
    matchColumn: () => undefined,
    mask: (_key, accepts) => rules.push(accepts) - 1,
  };
  const operation = definition.compile?.(definition.parameters.parse(parameters), 1, context);
  expect(operation).toEqual({ code: 'OP_FILTER_MASK', name: 'f', weight: 1, parameters: [0] });
  return rules[0]!;
}

const role = (value?: string) => (value === undefined ? {} : { 'llm-d.ai/role': value });

describe('decode-filter', () => {
  it.each([
    [undefined, true],
    ['decode', true],
    ['prefill-decode', true],
    ['both', true],
    ['encode-prefill-decode', true],
    ['prefill', false],
    ['encode', false],
    ['encode-prefill', false],
    ['', false],
  ])('role %j: %j', (value, kept) => {
    expect(rule('decode-filter')(role(value))).toBe(kept);
  });
});

describe('prefill-filter', () => {
  it.each([
    [undefined, false],
    ['prefill', true],
    ['encode-prefill', true],
    ['prefill-decode', true],
    ['both', true],
    ['encode-prefill-decode', true],
    ['decode', false],
    ['encode', false],
  ])('role %j: %j', (value, kept) => {
    expect(rule('prefill-filter')(role(value))).toBe(kept);
  });
});

describe('encode-filter', () => {
  it.each([
    [undefined, false],
    ['encode', true],
    ['encode-prefill', true],
    ['encode-prefill-decode', true],
    ['both', false],
    ['prefill', false],
    ['decode', false],
  ])('role %j: %j', (value, kept) => {
    expect(rule('encode-filter')(role(value))).toBe(kept);
  });
});

describe('label-selector-filter', () => {
  const accepts = (selector: object, labels: Record<string, string>) =>
    selectorAccepts(labelSelector().parse(selector), labels);

  it.each([
    [{}, {}, true],
    [{ matchLabels: { a: '1' } }, { a: '1', b: '2' }, true],
    [{ matchLabels: { a: '1' } }, { a: '2' }, false],
    [{ matchLabels: { a: '1', b: '2' } }, { a: '1' }, false],
    [{ matchExpressions: [{ key: 'a', operator: 'In', values: ['1', '2'] }] }, { a: '2' }, true],
    [{ matchExpressions: [{ key: 'a', operator: 'In', values: ['1'] }] }, {}, false],
    [{ matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['1'] }] }, { a: '1' }, false],
    [{ matchExpressions: [{ key: 'a', operator: 'NotIn', values: ['1'] }] }, {}, true],
    [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }, { a: '' }, true],
    [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }, {}, false],
    [{ matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] }, {}, true],
    [{ matchExpressions: [{ key: 'a', operator: 'DoesNotExist' }] }, { a: '1' }, false],
    [{ matchLabels: { a: '1' }, matchExpressions: [{ key: 'b', operator: 'Exists' }] }, { a: '1' }, false],
  ])('%j on %j: %j', (selector, labels, kept) => {
    expect(accepts(selector, labels)).toBe(kept);
  });

  it.each(['label-selector-filter', 'by-label-selector'])('label-selector-filter compiles as %s', (type) => {
    const kept = rule(type, { matchLabels: { a: '1' } });
    expect([kept({ a: '1' }), kept({})]).toEqual([true, false]);
  });
});

describe('by-label', () => {
  it('by-label keeps endpoints with one of the valid values', () => {
    const kept = rule('by-label', { label: 'a', validValues: ['1', '2'] });
    expect([kept({ a: '1' }), kept({ a: '3' }), kept({})]).toEqual([true, false, false]);
  });

  it('by-label keeps endpoints without the label when told to', () => {
    const kept = rule('by-label', { label: 'a', allowsNoLabel: true });
    expect([kept({}), kept({ a: '1' })]).toEqual([true, false]);
  });
});
