import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { firstReply } from '../ingress/proxy-client.ts';
import { ask, overConnection, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const HEADER = 'x-kv-cache-source-host-port';
const PROFILE = `plugins:
- {type: p2p-source-producer}
- {type: header-based-testing-filter}
schedulingProfiles: [{name: p, plugins: [{pluginRef: header-based-testing-filter}]}]
`;

describe('p2p-source-producer over the wire', () => {
  it('p2p-source-producer over the wire names the endpoint that holds the prompt, and takes out what a client sends', async () => {
    const endpoints = [2, 3].map((last) => ({ name: `pod-${last}`, address: `127.0.0.${last}`, port: 9 }));
    const setting = await Setting.create(endpoints, PROFILE);
    cleanups.push(() => setting.remove());
    const { picker, ports } = await startPicker([...setting.flags, '--shards=1', '--allow-experimental-plugins']);
    cleanups.push(() => picker.stop(0));
    await overConnection(ports.grpcPort, async (client) => {
      const send = async (address: string) => {
        const headers = { 'test-epp-endpoint-selection': address, [HEADER]: '6.6.6.6:1' };
        const call = ask(client, 'a long prompt '.repeat(200), headers);
        const reply = decodeReply(await firstReply(call));
        call.cancel();
        return reply;
      };
      const first = await send('127.0.0.2');
      expect(first.headers['x-gateway-destination-endpoint']).toBe('127.0.0.2:9');
      expect(first.removed).toContain(HEADER);
      const second = await send('127.0.0.3');
      expect(second.headers).toMatchObject({
        'x-gateway-destination-endpoint': '127.0.0.3:9',
        [HEADER]: '127.0.0.2:9',
      });
      expect((await send('127.0.0.3')).removed).toContain(HEADER);
    });
  });
});
