import { describe, expect, it } from 'vitest';
import { requestAttributeReporter } from '../../dist/src/scheduling/reporters/request-attribute-reporter.js';
import { HookPool, idle } from './hook-pool.ts';

const FULL = { promptTokens: 100, completionTokens: 20, totalTokens: 120, cachedTokens: 64 };
const UNKNOWN = { promptTokens: -1, completionTokens: -1, totalTokens: -1, cachedTokens: -1 };

interface Attribute {
  readonly expression: string;
  readonly condition?: string;
  readonly namespace?: string;
}

function attributes({ expression, condition, namespace }: Attribute) {
  const key = { name: 'cost', ...(namespace === undefined ? {} : { namespace }) };
  return { attributes: [{ key, expression, ...(condition === undefined ? {} : { condition }) }] };
}

/** What is reported of one answer with this usage: `namespace/key=value`, or nothing. */
function reported(attribute: Attribute, usage = FULL): string {
  const pool = new HookPool([{ definition: requestAttributeReporter, parameters: attributes(attribute) }], idle(1));
  const metadata = [...pool.plugins.report(pool.begin(), usage)];
  expect(pool.failures).toEqual([]);
  return metadata.flatMap(([space, values]) => [...values].map(([key, value]) => `${space}/${key}=${value}`)).join();
}

describe('request-attribute-reporter', () => {
  it.each([
    ['the total', 'usage.total_tokens', 'envoy.lb/cost=120'],
    ['a weighted sum', 'usage.prompt_tokens + 4.0 * usage.completion_tokens', 'envoy.lb/cost=180'],
    ['whole numbers', 'int(usage.prompt_tokens) * 3', 'envoy.lb/cost=300'],
    ['a choice', 'usage.prompt_tokens > 50 ? 2 : 1', 'envoy.lb/cost=2'],
    ['cached tokens', 'usage.prompt_tokens_details.cached_tokens', 'envoy.lb/cost=64'],
    ['a fraction, cut off', 'usage.prompt_tokens / 3.0', 'envoy.lb/cost=33'],
    ['a negative fraction, cut off towards 0', '-usage.prompt_tokens / 3.0', 'envoy.lb/cost=-33'],
    ['nothing for 0', 'usage.prompt_tokens - 100.0', ''],
    ['nothing for a text', 'usage.prompt_tokens > 5 ? usage : 1', ''],
    ['nothing for infinity', 'usage.prompt_tokens / 0.0', ''],
  ])('request-attribute-reporter reports %s', (_name, expression, expected) => {
    expect(reported({ expression })).toBe(expected);
  });

  it('request-attribute-reporter puts the value into the namespace that it names', () => {
    expect(reported({ expression: '1', namespace: 'billing' })).toBe('billing/cost=1');
  });

  it.each([
    ['usage.completion_tokens > 10', 'envoy.lb/cost=1'],
    ['usage.completion_tokens > 30', ''],
    ['usage.completion_tokens', ''],
    ['has(usage.no_such_field)', ''],
  ])('request-attribute-reporter reports only under its condition: %s', (condition, expected) => {
    expect(reported({ expression: '1', condition })).toBe(expected);
  });

  it('request-attribute-reporter takes what the answer does not tell for 0, and cached tokens for absent', () => {
    expect(reported({ expression: 'usage.total_tokens + 1.0' }, UNKNOWN)).toBe('envoy.lb/cost=1');
    expect(reported({ expression: 'has(usage.prompt_tokens_details) ? 2 : 1' }, UNKNOWN)).toBe('envoy.lb/cost=1');
  });

  it('an answer that lacks what is asked for is no failure of the plugin', () => {
    expect(reported({ expression: 'usage.prompt_tokens_details.cached_tokens' }, UNKNOWN)).toBe('');
  });

  it('request-attribute-reporter goes on after any number of such answers', () => {
    const parameters = attributes({ expression: 'usage.prompt_tokens_details.cached_tokens' });
    const pool = new HookPool([{ definition: requestAttributeReporter, parameters }], idle(1));
    for (let i = 0; i < 30; i++) pool.plugins.report(pool.begin(), UNKNOWN);
    expect(pool.plugins.report(pool.begin(), FULL).get('envoy.lb')?.get('cost')).toBe(64);
  });

  it.each([
    ['no entry', { attributes: [] }, 'exactly one entry'],
    ['two entries', { attributes: [1, 2].map(() => attributes({ expression: '1' }).attributes[0]) }, 'exactly one'],
    ['no key', { attributes: [{ key: { name: '' }, expression: '1' }] }, 'cannot be empty'],
    ['no expression', attributes({ expression: '' }), 'cannot be empty'],
    ['a syntax error', attributes({ expression: 'usage.x +' }), 'failed to compile'],
    ['another variable', attributes({ expression: 'request.size' }), 'failed to compile'],
    ['a text', attributes({ expression: '"a"' }), 'expected a number'],
    ['a condition that is a number', attributes({ expression: '1', condition: '1' }), 'expected true or false'],
    [
      'too deep an expression',
      attributes({ expression: `${'('.repeat(200)}1${')'.repeat(200)}` }),
      'failed to compile',
    ],
  ])('request-attribute-reporter refuses %s', (_name, parameters, why) => {
    const checked = requestAttributeReporter.parameters.safeParse(parameters);
    expect(checked.error?.issues.map(({ message }) => message).join()).toContain(why);
  });

  it('request-attribute-reporter warns of an expression that mixes whole numbers and doubles', () => {
    const advice = (expression: string) =>
      requestAttributeReporter.advise!(requestAttributeReporter.parameters.parse(attributes({ expression })));
    expect(advice('usage.prompt_tokens + 1')[0]).toContain('write 1.0 for 1');
    expect(advice('usage.prompt_tokens + 1.0')).toEqual([]);
  });
});
