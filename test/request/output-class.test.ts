import { describe, expect, it } from 'vitest';
import { attachCore, createPoolMemory, defaultPoolSizes } from '../../dist/src/core/memory.js';
import { RequestScanner } from '../../dist/src/core/request-scanner.js';
import type { RequestScanResult } from '../../dist/src/core/types.js';
import { createDialects, type Dialect } from '../../dist/src/request/dialects.js';
import { outputClassOf } from '../../dist/src/request/output-class.js';
import { RequestBody } from '../../dist/src/request/request-body.js';

const scanner = new RequestScanner(attachCore(createPoolMemory(defaultPoolSizes), 1));

/** The class of a chat, whose body comes in pieces of so many bytes. */
function classOf(more: Record<string, unknown>, path = '/v1/chat/completions', piece = 1_000): string {
  const text = { model: 'm', messages: [{ role: 'user', content: 'hi' }], input: 'hi', ...more };
  const bytes = Buffer.from(JSON.stringify(text));
  const dialect = createDialects(['openai-parser']).find(path) as Dialect;
  const body = new RequestBody(dialect, scanner, 64, 1_000_000);
  for (let at = 0; at < bytes.length; at += piece) body.append(bytes.subarray(at, at + piece));
  const result = body.finish() as RequestScanResult;
  try {
    return outputClassOf(result, path.includes('chat'), () => body.chunks);
  } finally {
    body.close();
  }
}

const TOOLS = [{ type: 'function', function: { name: 'f', parameters: {} } }];
const template = (given: Record<string, unknown>) => ({ chat_template_kwargs: given });

describe('the class of an answer', () => {
  it.each([
    ['thinking is on', template({ enable_thinking: true }), 'long'],
    ['thinking is on as a text', template({ enable_thinking: 'true' }), 'long'],
    ['thinking is on beside tools', { ...template({ enable_thinking: true }), tools: TOOLS }, 'long'],
    ['the budget is above 4000', template({ thinking_budget: 4001 }), 'long'],
    ['the budget is a text', template({ thinking_budget: '8000' }), 'long'],
    ['the budget is 4000', template({ thinking_budget: 4000 }), 'unknown'],
    ['thinking is off, whatever the budget', template({ enable_thinking: false, thinking_budget: 9000 }), 'unknown'],
    ['there are tools', { tools: TOOLS }, 'short'],
    ['there are tools and thinking is off', { ...template({ enable_thinking: 0 }), tools: TOOLS }, 'short'],
    ['the list of tools is empty', { tools: [] }, 'unknown'],
    ['the client bounds it below 500', { max_tokens: 499 }, 'short'],
    ['the client bounds it at 500', { max_tokens: 500 }, 'unknown'],
    ['the bound is 0', { max_tokens: 0 }, 'unknown'],
    ['thinking is on, whatever the bound', { ...template({ enable_thinking: true }), max_tokens: 10 }, 'long'],
    ['nothing tells', {}, 'unknown'],
  ])('an answer is classed when %s', (_when, more, expected) => {
    expect(classOf(more)).toBe(expected);
  });

  it('the arguments of a nested object of this name do not count', () => {
    expect(classOf({ metadata: template({ enable_thinking: true }) })).toBe('unknown');
  });

  it('a body that comes in small pieces is read across them', () => {
    expect(classOf(template({ enable_thinking: true }), '/v1/chat/completions', 7)).toBe('long');
  });

  it('tools of another API say nothing, its bound does', () => {
    expect(classOf({ tools: TOOLS }, '/v1/responses')).toBe('unknown');
    expect(classOf({ max_output_tokens: 100 }, '/v1/responses')).toBe('short');
  });
});
