import { readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse, stringify } from 'yaml';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { ask, Setting, startPicker } from './serving.ts';

const folder = fileURLToPath(new URL('../../examples/incumbent/', import.meta.url));
const samples = readdirSync(folder).filter((name) => name.endsWith('.yaml'));

/** Endpoints of every role on ports where nobody listens: nothing is sent to them but scrapes. */
const ENDPOINTS = ['decode', 'prefill', 'encode'].map((role, i) => ({
  name: role,
  port: 21_011 + i,
  labels: { 'llm-d.ai/role': role },
}));

/** The sample as its team would run it here: with endpoints from a file in the place of those of a pool. */
async function withEndpoints(setting: Setting, sample: string): Promise<void> {
  const configuration = parse(readFileSync(join(folder, sample), 'utf8')) as {
    plugins: unknown[];
    dataLayer?: Record<string, unknown>;
  };
  const path = join(setting.folder, 'endpoints.yaml');
  configuration.plugins.push({ type: 'file-discovery', parameters: { path } });
  configuration.dataLayer = { ...configuration.dataLayer, discovery: { pluginRef: 'file-discovery' } };
  await writeFile(setting.configFile, stringify(configuration));
}

describe('the sample configurations of llm-d-router', () => {
  it.each(samples)('%s loads and routes', async (sample) => {
    const setting = await Setting.create(ENDPOINTS);
    onTestFinished(() => setting.remove());
    await withEndpoints(setting, sample);
    const { picker, ports } = await startPicker([...setting.flags, '--allow-experimental-plugins']);
    onTestFinished(() => picker.stop(0));
    const client = dialPicker(ports.grpcPort);
    onTestFinished(() => client.close());
    const call = ask(client, 'a prompt that is long enough for several blocks '.repeat(40));
    const { headers } = decodeReply(await firstReply(call));
    call.cancel();
    // The handler of ranks names the port of the server's proxy, 8000 unless configured.
    const byRank = sample === 'data-parallel.yaml';
    expect(headers['x-gateway-destination-endpoint']).toMatch(
      byRank ? /^127\.0\.0\.1:8000$/ : /^127\.0\.0\.1:2101[1-3]$/,
    );
  });
});
