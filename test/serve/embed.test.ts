import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { type EmbeddedPicker, embedPicker } from '../../dist/src/serve/embed.js';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { firstReply } from '../ingress/proxy-client.ts';
import { ask, overConnection, Setting } from '../picker/serving.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));
const QUIET = [
  ...['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0'],
  ...['--secure-serving=false', '--metrics-endpoint-auth=false', '--zap-log-level=panic'],
];
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function pool(name: string, port: number): Promise<Readonly<Record<string, unknown>>> {
  const setting = await Setting.create([{ name, port }]);
  cleanups.push(() => setting.remove());
  return {
    plugins: [{ type: 'file-discovery', parameters: { path: `${setting.folder}/endpoints.yaml` } }],
    dataLayer: { discovery: { pluginRef: 'file-discovery' } },
  };
}

async function embed(configuration: Readonly<Record<string, unknown>>): Promise<EmbeddedPicker> {
  const picker = await embedPicker({ configuration, flags: QUIET });
  cleanups.push(() => picker.stop());
  return picker;
}

const destination = (port: number) =>
  overConnection(port, async (client) => {
    const { headers } = decodeReply(await firstReply(ask(client, 'hello')));
    return headers['x-gateway-destination-endpoint'];
  });

describe('an embedded picker', () => {
  it('an embedded picker serves one pool beside another in one process', async () => {
    const [first, second] = [await embed(await pool('a', 9001)), await embed(await pool('b', 9002))];
    expect(await destination(first.grpcPort)).toBe('127.0.0.1:9001');
    expect(await destination(second.grpcPort)).toBe('127.0.0.1:9002');
  });

  it('an embedded picker goes with stop(), and its port with it', async () => {
    const picker = await embed(await pool('a', 9001));
    await picker.stop();
    await expect(destination(picker.grpcPort)).rejects.toThrow();
  });

  it('an embedded picker takes its configuration as a text too', async () => {
    const picker = await embedPicker({ configuration: JSON.stringify(await pool('a', 9001)), flags: QUIET });
    cleanups.push(() => picker.stop());
    expect(await destination(picker.grpcPort)).toBe('127.0.0.1:9001');
  });

  it('an embedded picker says in one line what is wrong', async () => {
    await expect(embedPicker({ configuration: { plugin: [] }, flags: QUIET })).rejects.toThrow(
      /plugin: unknown field "plugin"; did you mean "plugins"\?$/,
    );
    await expect(embedPicker({ flags: ['--no-such-flag'] })).rejects.toThrow('unknown flag --no-such-flag');
    await expect(embedPicker({ plugins: ['./none.js'], flags: QUIET })).rejects.toThrow(/none\.js: cannot be loaded/);
  });
});

describe('examples/embedded/two-choices-pool.js', () => {
  it('examples/embedded/two-choices-pool.js serves with its own scheduler', async () => {
    const child = spawn(process.execPath, ['examples/embedded/two-choices-pool.js', ...QUIET], {
      cwd: project,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const closed = once(child, 'close');
    cleanups.push(async () => {
      child.kill();
      await closed;
    });
    const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
    const port = Number(/^serving on port (\d+)$/.exec(line)?.[1]);
    const seen = new Set<string>();
    for (let i = 0; i < 20; i++) seen.add((await destination(port))!);
    expect(seen.size).toBeGreaterThan(1);
    for (const address of seen) expect(address).not.toContain(',');
  });
});
