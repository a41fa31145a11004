import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { ask, startPicker, TRANSPORT_FLAGS } from './serving.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const yaml = readdirSync(`${root}examples`, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.yaml'),
);
const text = (name: string): string => readFileSync(`${root}examples/${name}`, 'utf8');

/** Configurations of a picker, and suites of the simulator: lists of endpoints are part of others' commands. */
const configurations = yaml.filter((name) => /^kind: EndpointPickerConfig$/m.test(text(name)));
const suites = yaml.filter((name) => /^policies:$/m.test(text(name)));

/** The command in the head of an example: one comment line, or more that end in a backslash. */
function commandOf(name: string): string {
  const head = text(name).split(/^[^#]/m)[0]!;
  const joined = head.replaceAll(/\\\n#\s*/g, '');
  return /pointsman (serve|simulate) .*$/m.exec(joined)?.[0] ?? '';
}

describe('the examples', () => {
  it('the examples are configurations, suites and lists of endpoints', () => {
    const rest = yaml.filter((name) => !configurations.includes(name) && !suites.includes(name));
    expect(rest.filter((name) => !/(^|\/)endpoints[a-z-]*\.yaml$/.test(name))).toEqual([]);
    expect(configurations.length).toBeGreaterThan(20);
  });

  it.each([...configurations, ...suites])('the example %s says by which command it is run', (name) => {
    expect(commandOf(name)).toContain(` examples/${name}`);
  });

  it.each([...configurations, 'endpoints.yaml'])('the example %s routes with its command', async (name) => {
    const flags = commandOf(name).split(/\s+/).slice(2);
    const ports = ['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0'];
    const { picker, ports: open } = await startPicker([...flags, ...ports, ...TRANSPORT_FLAGS]);
    onTestFinished(() => picker.stop(0));
    const client = dialPicker(open.grpcPort);
    onTestFinished(() => client.close());
    const call = ask(client, 'a prompt that is long enough for several blocks '.repeat(40));
    const { headers } = decodeReply(await firstReply(call));
    call.cancel();
    expect(headers['x-gateway-destination-endpoint']).toMatch(/^127\.0\.0\.1:800[0-2](,127\.0\.0\.1:800[0-2])?$/);
  });
});
