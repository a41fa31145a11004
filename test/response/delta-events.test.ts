import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AnswerForm } from '../../dist/src/core/types.js';
import { DeltaEvents } from '../../dist/src/response/delta-events.js';

const delta = (end: string) => `event: content_block_delta${end}data: {"delta":{"text":"event: é"}}${end}${end}`;
const stream = (end: string) =>
  [
    `event: message_start${end}data: {}${end}${end}`,
    delta(end),
    `: content_block_delta${end}${end}`,
    `event:content_block_delta${end}data: {"text":"${'x'.repeat(300)}"}${end}${end}`,
    `event: ${'content_block_delta'.repeat(20)}${end}data: {}${end}${end}`,
    delta(end),
  ].join('');

/** Events with output of a stream that comes in these pieces. */
function counted(form: AnswerForm, pieces: readonly Buffer[]): number | undefined {
  const events = DeltaEvents.of(form);
  for (const piece of pieces) {
    // Transports overwrite their buffers.
    const given = Buffer.from(piece);
    events?.feed(given);
    given.fill(0xdd);
  }
  return events?.count;
}

describe('the events with output of a stream', () => {
  it.each(['\n', '\r\n'])('events with output are counted however they are cut, with lines that end in %j', (end) => {
    const bytes = Buffer.from(stream(end));
    const cuts = fc.array(fc.nat(bytes.length), { maxLength: 40 });
    fc.assert(
      fc.property(cuts, (places) => {
        const all = [0, ...[...places].sort((a, b) => a - b), bytes.length];
        const pieces = all.slice(1).map((to, i) => bytes.subarray(all[i], to));
        expect(counted(AnswerForm.messages, pieces)).toBe(3);
      }),
    );
  });

  it('events of OpenAI have output when their name is that of a response and ends with delta', () => {
    const names = [
      'response.output_text.delta',
      'response.function_call_arguments.delta',
      'response.completed',
      'delta',
    ];
    const text = names.map((name) => `event: ${name}\ndata: {}\n\n`).join('');
    expect(counted(AnswerForm.responses, [Buffer.from(text)])).toBe(2);
  });

  it('events without names have output in every other form', () => {
    expect(DeltaEvents.of(AnswerForm.usage)).toBeUndefined();
    expect(DeltaEvents.of(AnswerForm.sglang)).toBeUndefined();
  });
});
