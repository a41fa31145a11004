// The usage of streams behind a real Envoy: asked for in the request, taken out of the answer, counted.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Backend, type Behaviour, startBackend } from '../tools/gateway/backend.ts';
import { ask, chatBody, eventually } from '../tools/gateway/client.ts';
import { skipReason } from './envoy.ts';
import { pickerMetric, startTestBed, type TestBed } from './test-bed.ts';

const chunk = (rest: string) => `data: {"id":"c","object":"chat.completion.chunk","model":"m",${rest}}\n\n`;
const token = (text: string) => chunk(`"choices":[{"index":0,"delta":{"content":"${text}"}}]`);
const USAGE = chunk('"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":3,"total_tokens":14}');
const TOKENS = token('one') + token('twö') + token('three');
const DONE = 'data: [DONE]\n\n';

/** Answers as vLLM does: the usage comes where it was asked for. Each piece of so many bytes is a write of its own. */
const streaming: Behaviour = async ({ body, headers }, response) => {
  const asked = JSON.parse(body.toString()) as { stream_options?: { include_usage?: boolean } };
  const text = Buffer.from(TOKENS + (asked.stream_options?.include_usage === true ? USAGE : '') + DONE);
  const step = Number(headers['x-piece-bytes']);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let at = 0; at < text.length; at += step) {
    response.write(text.subarray(at, at + step));
    await new Promise((resolve) => setImmediate(resolve));
  }
  response.end();
};

/** A body of several messages of ext_proc. */
const LONG = 'ö'.repeat(150_000);

function bedWith(...flags: readonly string[]): Promise<TestBed<Backend>> {
  return startBackend('s0', streaming).then((backend) => startTestBed([backend], { flags }));
}

async function answered(bed: TestBed<Backend>, body: string, pieceBytes: number): Promise<string> {
  const headers = { 'x-piece-bytes': String(pieceBytes) };
  const answer = await ask(bed.envoy.port, { body, headers });
  expect(answer.status).toBe(200);
  return answer.body.toString();
}

const received = ({ servers: [server] }: TestBed<Backend>) => server!.received.at(-1)!.body.toString();

describe.skipIf(skipReason !== '')(`Envoy in front of a picker that asks for the usage${skipReason}`, () => {
  let bed: TestBed<Backend>;
  beforeAll(async () => {
    bed = await bedWith('--stream-usage');
  });
  afterAll(() => bed?.stop());

  test.each([7, 61, 1_000])('Envoy passes on a stream without the usage, in pieces of %i bytes', async (pieceBytes) => {
    const before = await pickerMetric(bed.picker, 'llm_d_epp_request_output_tokens_sum');
    const body = chatBody(LONG, { stream: true });
    expect(await answered(bed, body, pieceBytes)).toBe(TOKENS + DONE);
    expect(received(bed)).toBe(`{"stream_options":{"include_usage":true},${body.slice(1)}`);
    await eventually(
      'its tokens are counted',
      async () => (await pickerMetric(bed.picker, 'llm_d_epp_request_output_tokens_sum')) === before + 3,
    );
    expect(await pickerMetric(bed.picker, 'pointsman_request_estimated_output_tokens_total')).toBe(0);
  });

  test('Envoy passes on the usage to a client that asks for it, and its body as it is', async () => {
    const body = chatBody(LONG, { stream: true, stream_options: { include_usage: true } });
    expect(await answered(bed, body, 61)).toBe(TOKENS + USAGE + DONE);
    expect(received(bed)).toBe(body);
  });

  test('Envoy passes on a body that wants no usage with the question in its place', async () => {
    const body = chatBody(LONG, { stream: true, stream_options: { include_usage: false } });
    expect(await answered(bed, body, 61)).toBe(TOKENS + DONE);
    expect(received(bed)).toBe(body.replace('"include_usage":false', '"include_usage":true'));
  });
});

describe.skipIf(skipReason !== '')(`Envoy in front of a picker that does not ask${skipReason}`, () => {
  let bed: TestBed<Backend>;
  beforeAll(async () => {
    bed = await bedWith();
  });
  afterAll(() => bed?.stop());

  test('Envoy passes on a stream without usage as it is, and its chunks count as estimated tokens', async () => {
    const body = chatBody(LONG, { stream: true });
    expect(await answered(bed, body, 61)).toBe(TOKENS + DONE);
    expect(received(bed)).toBe(body);
    await eventually(
      'its chunks are counted',
      async () => (await pickerMetric(bed.picker, 'pointsman_request_estimated_output_tokens_total')) === 3,
    );
    expect(await pickerMetric(bed.picker, 'llm_d_epp_request_output_tokens_sum')).toBe(0);
  });
});
