import { beforeAll, describe, expect, it } from 'vitest';
import { attachCore, createPoolMemory } from '../../dist/src/core/memory.js';
import { ResponseScanner } from '../../dist/src/core/response-scanner.js';
import { AnswerForm } from '../../dist/src/core/types.js';
import {
  cutAt,
  embedResponse,
  engineChunk,
  engineComplete,
  frame,
  httpBody,
  packedFrame,
  singly,
} from './grpc-messages.ts';
import { SCANNER_SIZES } from './scanner-sizes.ts';

let scanner: ResponseScanner;

beforeAll(() => {
  scanner = new ResponseScanner(attachCore(createPoolMemory(SCANNER_SIZES), 0));
});

function read(form: AnswerForm, pieces: readonly Buffer[]) {
  const id = scanner.open({ streaming: true, form });
  const out = pieces.map((piece) => Buffer.from(scanner.feed(id, piece, false)));
  scanner.feed(id, Buffer.alloc(0), true);
  const found = { usage: scanner.usage(id), events: scanner.events(id), output: Buffer.concat(out) };
  scanner.close(id);
  return found;
}

/** What an answer tells, the same however it is cut; it passes as it is. */
function tells(form: AnswerForm, bytes: Buffer) {
  const whole = read(form, [bytes]);
  expect(whole.output).toEqual(bytes);
  expect(read(form, singly(bytes))).toEqual(whole);
  for (let at = 0; at <= bytes.length; at++) expect(read(form, cutAt(bytes, at))).toEqual(whole);
  return { ...whole.usage, events: whole.events };
}

const usage = (promptTokens: number, completionTokens: number, totalTokens: number, cachedTokens: number) => ({
  promptTokens,
  completionTokens,
  totalTokens,
  cachedTokens,
});

describe("an answer of vLLM's engine service", () => {
  const chunk = (completion: number) => frame(engineChunk({ prompt: 300, completion, cached: 2 }));
  const complete = { prompt: 300, completion: 5, cached: 2 };

  it("an answer of vLLM's engine service tells its usage when it comes whole", () => {
    expect(tells(AnswerForm.engine, frame(engineComplete(complete)))).toEqual({ ...usage(300, 5, 305, 2), events: 1 });
  });

  it("an answer of vLLM's engine service tells zero cached tokens when it leaves them out: proto3 does so with zeros", () => {
    const bytes = frame(engineComplete({ prompt: 300, completion: 5, cached: 0 }));
    expect(tells(AnswerForm.engine, bytes)).toEqual({ ...usage(300, 5, 305, 0), events: 1 });
  });

  it("an answer of vLLM's engine service tells its usage once when every chunk repeats it", () => {
    const stream = Buffer.concat([chunk(1), chunk(2), frame(engineComplete(complete))]);
    expect(tells(AnswerForm.engine, stream)).toEqual({ ...usage(300, 5, 305, 2), events: 3 });
  });

  it("an answer of vLLM's engine service tells what the last whole chunk said when it is cut", () => {
    const stream = Buffer.concat([chunk(1), chunk(2), chunk(3).subarray(0, 9)]);
    expect(tells(AnswerForm.engine, stream)).toEqual({ ...usage(300, 2, 302, 2), events: 3 });
  });

  it("an answer of vLLM's engine service is read when it is compressed", () => {
    const stream = Buffer.concat([packedFrame(engineChunk(complete)), chunk(9)]);
    expect(tells(AnswerForm.engine, stream)).toEqual({ ...usage(300, 9, 309, 2), events: 2 });
  });

  it("an answer of vLLM's engine service to an embedding tells the prompt", () => {
    expect(tells(AnswerForm.engineEmbed, frame(embedResponse(12)))).toEqual({ ...usage(12, -1, 12, -1), events: 1 });
  });

  it("an answer of vLLM's engine service that is no message tells nothing", () => {
    expect(tells(AnswerForm.engine, frame(Buffer.from('ffffff', 'hex')))).toEqual({
      ...usage(-1, -1, -1, -1),
      events: 1,
    });
    expect(tells(AnswerForm.engine, frame(Buffer.from('no gzip'), 1))).toMatchObject(usage(-1, -1, -1, -1));
  });
});

describe('an answer of Vertex AI', () => {
  const document = '{"model":"m","usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}';

  it('an answer of Vertex AI tells the usage of the JSON in it', () => {
    expect(tells(AnswerForm.vertex, frame(httpBody(document)))).toEqual({ ...usage(7, 3, 10, -1), events: 1 });
  });

  it('an answer of Vertex AI tells the usage of whichever message has it', () => {
    const stream = Buffer.concat([
      frame(httpBody('{"a":1}')),
      packedFrame(httpBody(document)),
      frame(httpBody('{"b":2}')),
    ]);
    expect(tells(AnswerForm.vertex, stream)).toEqual({ ...usage(7, 3, 10, -1), events: 3 });
  });

  it('an answer of Vertex AI tells the usage of server-sent events that go from message to message', () => {
    const event = `data: {"type":"response.completed","response":{"usage":{"input_tokens":4,"output_tokens":6}}}\n\n`;
    const stream = Buffer.concat(
      [`data: {}\n\n`, event.slice(0, 50), event.slice(50)].map((text) => frame(httpBody(text))),
    );
    expect(tells(AnswerForm.vertex, stream)).toEqual({ ...usage(4, 6, 10, -1), events: 2 });
  });
});
