import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Backend, startBackend } from '../tools/gateway/backend.ts';
import { ask, chatBody } from '../tools/gateway/client.ts';
import { skipReason } from './envoy.ts';
import { startTestBed, type TestBed } from './test-bed.ts';

/** Only servers with the prefill role may serve, and none has it. */
const NOBODY_FITS = `plugins:
- type: prefill-filter
- type: queue-scorer
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: prefill-filter}
  - {pluginRef: queue-scorer, weight: 1}
`;

describe.skipIf(skipReason !== '')(`refusals reach the client through Envoy${skipReason}`, () => {
  const beds: TestBed<Backend>[] = [];
  let ordinary: TestBed<Backend>;
  beforeAll(async () => {
    ordinary = await startTestBed([await startBackend('s0')], { flags: ['--max-request-body-size', '1048576'] });
    beds.push(ordinary);
  });
  afterAll(async () => {
    for (const bed of beds) await bed.stop();
  });

  test('400 for a body that is not JSON', async () => {
    const answer = await ask(ordinary.envoy.port, { body: '{"model": "m", ' });
    expect(answer.status).toBe(400);
    expect(answer.body.toString()).toMatch(/^inference error: BadRequest - /);
    expect(ordinary.servers[0]!.received).toHaveLength(0);
  });

  test('400 for a body without a model', async () => {
    const answer = await ask(ordinary.envoy.port, { body: '{"messages":[{"role":"user","content":"hi"}]}' });
    expect(answer.status).toBe(400);
    expect(answer.body.toString()).toBe('inference error: BadRequest - model not found in request body');
  });

  test('413 for a body over the bound', async () => {
    const answer = await ask(ordinary.envoy.port, { body: chatBody('x'.repeat(2 * 1024 * 1024)) });
    expect(answer.status).toBe(413);
    expect(answer.body.toString()).toMatch(/^inference error: /);
    expect(ordinary.servers[0]!.received).toHaveLength(0);
  });

  test('503 that names the filter which leaves no endpoint', async () => {
    const bed = await startTestBed([await startBackend('s0')], { profile: NOBODY_FITS });
    beds.push(bed);
    const answer = await ask(bed.envoy.port, { body: chatBody('hi') });
    expect(answer.status).toBe(503);
    expect(answer.body.toString()).toMatch(/^inference error: ServiceUnavailable - .*: the filter ".+" leaves none$/);
  });

  test('503 when there are no endpoints', async () => {
    const bed = await startTestBed<Backend>([]);
    beds.push(bed);
    const answer = await ask(bed.envoy.port, { body: chatBody('hi') });
    expect(answer.status).toBe(503);
    expect(answer.body.toString()).toContain('failed to find endpoint candidates');
  });
});
