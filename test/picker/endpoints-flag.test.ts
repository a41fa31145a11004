import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { firstReply } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, overConnection, Setting, startPicker, TRANSPORT_FLAGS } from './serving.ts';

const PORTS = ['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0', '--secure-serving=false'];

async function destination(port: number): Promise<string | undefined> {
  return overConnection(port, async (client) => {
    const call = ask(client, 'hello');
    const { headers } = decodeReply(await firstReply(call));
    call.cancel();
    return headers['x-gateway-destination-endpoint'];
  });
}

it('a picker with --endpoints-file routes without a configuration and follows the file', async () => {
  const setting = await Setting.create([{ name: 'server', port: 20_001 }]);
  onTestFinished(() => setting.remove());
  const file = join(setting.folder, 'endpoints.yaml');
  const { picker, ports } = await startPicker([`--endpoints-file=${file}`, ...PORTS, ...TRANSPORT_FLAGS]);
  onTestFinished(() => picker.stop(0));
  expect(await destination(ports.grpcPort)).toBe('127.0.0.1:20001');
  await setting.writeEndpoints([{ name: 'other', port: 20_002 }]);
  await eventually('the new endpoint serves', async () => (await destination(ports.grpcPort)) === '127.0.0.1:20002');
});

it('--endpoints-file takes the place of the discovery of the configuration', async () => {
  const setting = await Setting.create([{ name: 'server', port: 20_001 }]);
  onTestFinished(() => setting.remove());
  const file = join(setting.folder, 'mine.yaml');
  await writeFile(file, 'endpoints:\n- {name: mine, address: 127.0.0.1, port: 20003}\n');
  const { picker, ports } = await startPicker([...setting.flags, `--endpoints-file=${file}`]);
  onTestFinished(() => picker.stop(0));
  expect(await destination(ports.grpcPort)).toBe('127.0.0.1:20003');
});

it('endpoints with one name in two namespaces have a series each, by namespace and name', async () => {
  const setting = await Setting.create([{ name: 'server', port: 20_001 }]);
  onTestFinished(() => setting.remove());
  const file = join(setting.folder, 'mine.yaml');
  const entry = (name: string, port: number, namespace = 'default') =>
    `- {name: ${name}, namespace: ${namespace}, address: 127.0.0.1, port: ${port}}\n`;
  await writeFile(
    file,
    `endpoints:\n${entry('vllm', 20_001)}${entry('vllm', 20_002, 'prod')}${entry('other', 20_003)}`,
  );
  const { picker, ports } = await startPicker([...setting.flags, `--endpoints-file=${file}`]);
  onTestFinished(() => picker.stop(0));
  const names = async () => {
    const page = await (await fetch(`http://127.0.0.1:${ports.metricsPort}/metrics`)).text();
    return [...page.matchAll(/^pointsman_endpoint_inflight_requests\{endpoint="([^"]*)"/gm)].map(([, name]) => name);
  };
  expect((await names()).sort()).toEqual(['default/vllm', 'other', 'prod/vllm']);
  await writeFile(file, `endpoints:\n${entry('vllm', 20_001)}${entry('other', 20_003)}`);
  await eventually('the name alone is enough', async () => (await names()).sort().join() === 'other,vllm');
});
