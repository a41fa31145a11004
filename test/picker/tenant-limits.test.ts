import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { ask, metric, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const PROFILE = `featureGates: [flowControl]
plugins:
- type: queue-scorer
flowControl:
  tenantLimits:
  - {fairnessId: free, tokensPerSecond: 0.001, burstTokens: 1000}
`;

describe("a tenant's bucket", () => {
  it("a tenant's bucket holds while the pool is idle, over all shards, and for this tenant alone", async () => {
    const setting = await Setting.create([{ name: 'server', port: 20_000 }], PROFILE);
    cleanups.push(() => setting.remove());
    const { picker, ports } = await startPicker([...setting.flags, '--shards=2']);
    cleanups.push(() => picker.stop(0));
    const send = async (tenant: string) => {
      // A connection of its own each: the shards take turns.
      const client = dialPicker(ports.grpcPort);
      cleanups.push(() => client.close());
      // 600 tokens, estimated, and the expected output.
      const call = ask(client, 'x'.repeat(2_400), { 'x-llm-d-inference-fairness-id': tenant });
      return decodeReply(await firstReply(call));
    };
    const answers = [];
    for (let i = 0; i < 6; i++) answers.push(await send('free'));
    const [first, ...others] = answers;
    expect(first!.headers).toHaveProperty('x-gateway-destination-endpoint');
    for (const { kind, status, headers } of others) {
      expect([kind, status, headers['x-llm-d-request-dropped-reason']]).toEqual([
        'immediate',
        429,
        'rejected-saturated',
      ]);
      expect(Number(headers['retry-after'])).toBe(60);
    }
    for (let i = 0; i < 4; i++) {
      expect((await send('paying')).headers).toHaveProperty('x-gateway-destination-endpoint');
    }
    const refused = 'pointsman_flow_control_refusals_total';
    expect(await metric(ports.metricsPort, refused, 'cause="tenant-limit"')).toBe(5);
  });
});
