// Many long prompts at one time through one connection of a real Envoy: none is refused for what is under way.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Backend, type Behaviour, startBackend } from '../tools/gateway/backend.ts';
import { ask, chatBody, manyConnections } from '../tools/gateway/client.ts';
import { skipReason } from './envoy.ts';
import { pickerMetric, startTestBed, type TestBed } from './test-bed.ts';

const REQUESTS = 60;
const PROMPT_BYTES = 1024 * 1024;

const digesting: Behaviour = async ({ body }, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ model: 'm', received: digest(body) }));
};

describe.skipIf(skipReason !== '')(`long prompts through Envoy${skipReason}`, () => {
  let bed: TestBed<Backend>;
  beforeAll(async () => {
    bed = await startTestBed(await Promise.all(['s0', 's1'].map((name) => startBackend(name, digesting))));
  });
  afterAll(() => bed?.stop());

  test('long prompts through Envoy arrive whole, sixty megabytes of them at one time', async () => {
    const bodies = Array.from({ length: REQUESTS }, (_, i) =>
      chatBody(`${i} `.repeat(PROMPT_BYTES).slice(0, PROMPT_BYTES)),
    );
    const agent = manyConnections();
    const answers = await Promise.all(bodies.map((body) => ask(bed.envoy.port, { body }, agent)));
    agent.destroy();
    expect(answers.map(({ status, body }) => (status === 200 ? JSON.parse(body.toString()).received : body))).toEqual(
      bodies.map(digest),
    );
    expect(await pickerMetric(bed.picker, 'pointsman_overload_rejections_total')).toBe(0);
  });
});

function digest(body: string | Buffer): string {
  return createHash('sha256').update(body).digest('hex');
}
