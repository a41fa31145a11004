import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { dialPicker } from '../ingress/proxy-client.ts';
import { askAndEnd, Setting, startServe } from './serving.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

describe('a filter that matches no endpoint', () => {
  it('a filter that matches no endpoint gives every request a 503 that names it, and one line in the log', async () => {
    const setting = await Setting.create(
      [{ name: 'a', port: 20_001, labels: { gpu: 'a100' } }],
      `plugins:
- {type: label-selector-filter, name: big-gpu, parameters: {matchLabels: {gpu: h100}}}
- {type: queue-scorer}
schedulingProfiles:
- name: default
  plugins: [{pluginRef: big-gpu}, {pluginRef: queue-scorer}]
`,
    );
    cleanups.push(() => setting.remove());
    const serve = await startServe(setting.flags);
    cleanups.push(() => serve.kill());
    const client = dialPicker(serve.grpcPort);
    cleanups.push(() => client.close());
    for (let i = 0; i < 3; i++) {
      const { replies } = await askAndEnd(client, 'hello');
      const reply = decodeReply(replies[0]!);
      expect(reply.status).toBe(503);
      expect(reply.headers['x-llm-d-request-dropped-reason']).toBe('rejected-no-endpoints');
      expect(reply.body.toString()).toContain('the filter "big-gpu" leaves none');
    }
    expect(serve.log().match(/a filter leaves no endpoint/g)).toHaveLength(1);
  });
});
