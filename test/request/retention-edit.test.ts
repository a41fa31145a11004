import { describe, expect, it } from 'vitest';
import { leftOutHints, retentionEdit, usageEdit } from '../../dist/src/request/engine-asks.js';
import { editAll } from '../../dist/src/request/model-edit.js';

const SGLANG = { engine: 'sglang', priority: 7 } as const;
const DYNAMO = { engine: 'dynamo', priority: 7 } as const;

/** The body after the edit; undefined = there is none. */
function edited(body: string, hint: typeof SGLANG | typeof DYNAMO): string | undefined {
  const chunks = [Buffer.from(body)];
  const edit = retentionEdit(chunks, hint);
  return edit && Buffer.concat(editAll(chunks, [edit])).toString();
}

describe('the edit that asks an engine to keep blocks', () => {
  it('the edit that asks an engine to keep blocks inserts one member, and leaves all other bytes', () => {
    const body = ' { "model" : "m",\n "messages":[ {"role":"user", "content":"\\u00e4" } ] } ';
    expect(edited(body, SGLANG)).toBe(` {"priority":7,${body.slice(2)}`);
    expect(edited(body, DYNAMO)).toBe(` {"nvext":{"agent_hints":{"priority":7}},${body.slice(2)}`);
  });

  it.each([
    ['{"priority":3,"prompt":"p"}', SGLANG],
    ['{"prompt":"p", "priority" : null}', SGLANG],
    ['{"nvext":{"ignore_eos":true},"prompt":"p"}', DYNAMO],
  ] as const)('the edit that asks an engine to keep blocks leaves a member of the client alone: %s', (body, hint) => {
    expect(edited(body, hint)).toBeUndefined();
  });

  it.each([
    '{"messages":[{"content":"\\"priority\\":1"}]}',
    '{"tools":[{"parameters":{"priority":{"type":"number"}}}],"prompt":"p"}',
    '{"prompt":"priority"}',
  ])('the edit that asks an engine to keep blocks is made where the name stands elsewhere only: %s', (body) => {
    expect(edited(body, SGLANG)).toBe(`{"priority":7,${body.slice(1)}`);
  });

  it('the edit that asks an engine to keep blocks works on bodies in pieces, beside another edit', () => {
    const chunks = [Buffer.from(' {'), Buffer.from('"prompt":'), Buffer.from('"p","stream":true}')];
    const edits = [usageEdit(chunks)!, retentionEdit(chunks, SGLANG)!];
    expect(JSON.parse(Buffer.concat(editAll(chunks, edits)).toString())).toEqual({
      prompt: 'p',
      stream: true,
      stream_options: { include_usage: true },
      priority: 7,
    });
  });
});

describe('the log of turns without a retention hint', () => {
  it('the log of turns without a retention hint has one line a minute, with their number and the member', () => {
    const lines: object[] = [];
    const hints = leftOutHints({ warn: (details) => lines.push(details) });
    for (let i = 0; i < 10; i++) hints.note('dynamo', 1_000 + i);
    hints.note('dynamo', 61_000);
    expect(lines).toMatchObject([
      { member: 'nvext', count: 1 },
      { member: 'nvext', count: 10 },
    ]);
  });
});
