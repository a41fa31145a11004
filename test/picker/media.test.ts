import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply, requestBody, requestHeaders } from '../ingress/envoy-messages.ts';
import { firstReply } from '../ingress/proxy-client.ts';
import { type FileEndpoint, metric, overConnection, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const endpoints: FileEndpoint[] = [2, 3, 4, 5].map((last) => ({
  name: `pod-${last}`,
  address: `127.0.0.${last}`,
  port: 9,
}));

/** Where a chat with these images goes. */
function destination(port: number, ...urls: readonly string[]): Promise<string | undefined> {
  const content = [
    { type: 'text', text: 'what is this?' },
    ...urls.map((url) => ({ type: 'image_url', image_url: { url } })),
  ];
  return overConnection(port, async (client) => {
    const call = client.process();
    call.on('error', () => undefined);
    call.write(requestHeaders({ ':path': '/v1/chat/completions' }));
    call.write(requestBody(JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] })));
    return decodeReply(await firstReply(call)).headers['x-gateway-destination-endpoint'];
  });
}

describe('images that were sent before', () => {
  it('images that were sent before go to the endpoint that has them', async () => {
    const setting = await Setting.create(endpoints, 'plugins:\n- type: mm-embeddings-cache-scorer\n');
    cleanups.push(() => setting.remove());
    const { picker, ports } = await startPicker([...setting.flags, '--shards=1']);
    cleanups.push(() => picker.stop(0));
    const first = await destination(ports.grpcPort, 'http://x/1.png');
    for (let i = 0; i < 12; i++) expect(await destination(ports.grpcPort, 'http://x/1.png')).toBe(first);
    const queries = 'llm_d_epp_encoder_cache_queries_total';
    expect(await metric(ports.metricsPort, queries, 'modality="image"')).toBe(13);
  });
});
