import { afterEach, describe, expect, it } from 'vitest';
import { requestBody, requestHeaders } from '../ingress/envoy-messages.ts';
import { dialPicker } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { metric, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

describe('the metrics of a shard', () => {
  it('the metrics of a shard show the stream, the slots and the bytes of a body that is coming, and none when it is reset', async () => {
    const setting = await Setting.create([{ name: 'one', port: 20_021 }]);
    cleanups.push(() => setting.remove());
    const { picker, ports } = await startPicker(setting.flags);
    cleanups.push(() => picker.stop(0));
    const client = dialPicker(ports.grpcPort);
    cleanups.push(() => client.close());
    const shows = async (name: string, fits: (value: number) => boolean): Promise<boolean> =>
      fits((await metric(ports.metricsPort, `pointsman_shard_${name}`, 'shard="1"')) ?? Number.NaN);
    const call = client.process();
    call.on('error', () => undefined);
    call.write(requestHeaders({ ':method': 'POST', ':path': '/v1/chat/completions' }));
    call.write(requestBody(`{"model":"m","messages":[{"role":"user","content":"${'x'.repeat(100_000)}`, false));
    await eventually('the stream is shown', () => shows('streams', (streams) => streams === 1));
    await eventually('its slots are shown', () => shows('body_slots', (slots) => slots > 0));
    await eventually('its bytes are shown', () => shows('held_bytes', (bytes) => bytes >= 100_000));
    call.cancel();
    for (const name of ['streams', 'body_slots', 'held_bytes']) {
      await eventually(`nothing is left of ${name}`, () => shows(name, (value) => value === 0));
    }
    expect(await metric(ports.metricsPort, 'pointsman_shard_busy_seconds_total', 'shard="1"')).toBeGreaterThan(0);
  });
});
