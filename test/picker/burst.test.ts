import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { type Call, firstReply } from '../ingress/proxy-client.ts';
import { ask, type FileEndpoint, overConnection, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const endpoints: FileEndpoint[] = [2, 3, 4, 5].map((last) => ({
  name: `pod-${last}`,
  address: `127.0.0.${last}`,
  port: 9,
}));

describe('a burst of equal prompts', () => {
  it('a burst of equal prompts is placed together', async () => {
    const profile = `plugins:
- {type: burst-prefix-cache-producer, parameters: {windowDurationMs: 400}}
- {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: burst-prefix-cache-producer}}
`;
    const setting = await Setting.create(endpoints, profile);
    cleanups.push(() => setting.remove());
    const { picker, ports } = await startPicker([...setting.flags, '--shards=1', '--allow-experimental-plugins']);
    cleanups.push(() => picker.stop(0));
    const prompts = ['one', 'two', 'three'].flatMap((word) => Array.from({ length: 6 }, () => `${word} `.repeat(100)));
    await overConnection(ports.grpcPort, async (client) => {
      const calls: Call[] = prompts.map((prompt) => ask(client, prompt));
      // One that hangs up while it is held takes nobody along.
      ask(client, prompts[0]!).cancel();
      const replies = await Promise.all(calls.map((call) => firstReply(call)));
      const places = replies.map((reply) => decodeReply(reply).headers['x-gateway-destination-endpoint']);
      const groups = [0, 6, 12].map((from) => new Set(places.slice(from, from + 6)));
      expect(groups.map(({ size }) => size)).toEqual([1, 1, 1]);
      expect(new Set(groups.flatMap((group) => [...group])).size).toBe(3);
      for (const call of calls) call.cancel();
    });
  });
});
