import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, metric, runToEnd, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const ENDPOINTS = [
  { name: 'new', port: 21_021, labels: { tier: 'new' } },
  { name: 'old', port: 21_022, labels: { tier: 'old' } },
];

/** Endpoints of this tier only. */
const tier = (name: string) => `plugins:
- {type: label-selector-filter, name: tier, parameters: {matchLabels: {tier: ${name}}}}
- {type: queue-scorer}
- {type: max-score-picker}
schedulingProfiles:
- name: default
  plugins: [{pluginRef: tier}, {pluginRef: queue-scorer}, {pluginRef: max-score-picker}]
`;
/** A configuration that reads prefix matches. */
const PREFIX = `plugins:
- {type: prefix-cache-scorer}
- {type: max-score-picker}
schedulingProfiles:
- name: default
  plugins: [{pluginRef: prefix-cache-scorer}, {pluginRef: max-score-picker}]
`;
const HEAD = 'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n';

async function setting(candidate: string) {
  const made = await Setting.create(ENDPOINTS, tier('new'));
  cleanups.push(() => made.remove());
  const file = join(made.folder, 'candidate.yaml');
  await writeFile(file, HEAD + candidate);
  return { made, file };
}

async function serve(candidate: string, ...flags: string[]) {
  const { made, file } = await setting(candidate);
  const { picker, ports } = await startPicker([...made.flags, `--candidate-config=${file}`, ...flags]);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  const decide = async (headers: Readonly<Record<string, string>> = {}) => {
    const reply = decodeReply(await firstReply(ask(client, 'a prompt', headers)));
    return reply.headers['x-gateway-destination-endpoint'];
  };
  /** Series that have not counted yet are not shown. */
  const shadow = async (name: string, labels = '') =>
    (await metric(ports.metricsPort, `pointsman_shadow_${name}`, labels)) ?? 0;
  return { file, decide, shadow, ports };
}

describe.each([1, 2])('a candidate configuration beside %i shards', (shards) => {
  it('a candidate configuration decides every request too, and changes no destination', async () => {
    const { decide, shadow } = await serve(tier('old'), `--shards=${shards}`);
    for (let i = 0; i < 5; i++) expect(await decide()).toMatch(/:21021$/);
    expect(await shadow('decisions_total')).toBe(5);
    expect(await shadow('different_total')).toBe(5);
    expect(await shadow('unplaced_total')).toBe(0);
    expect(await shadow('cost_targets_total', 'configuration="running"')).toBeGreaterThan(0);
    expect(await shadow('cost_targets_total', 'configuration="candidate"')).toBeGreaterThan(0);
  });
});

describe('a candidate configuration', () => {
  it('a candidate configuration that is the running one picks the same', async () => {
    const { decide, shadow } = await serve(tier('new'));
    for (let i = 0; i < 5; i++) await decide();
    expect([await shadow('decisions_total'), await shadow('different_total')]).toEqual([5, 0]);
  });

  it('a candidate configuration decides one request in --candidate-every', async () => {
    const { decide, shadow } = await serve(tier('old'), '--candidate-every=3', '--shards=1');
    for (let i = 0; i < 6; i++) await decide();
    expect([await shadow('decisions_total'), await shadow('every')]).toEqual([2, 3]);
  });

  it('a candidate configuration counts an endpoint that it does not find', async () => {
    const { decide, shadow } = await serve(tier('nowhere'));
    await decide();
    expect([await shadow('different_total'), await shadow('unplaced_total')]).toEqual([1, 1]);
  });

  it('a candidate configuration shows what it would have picked beside the reason of a request', async () => {
    const { decide, ports } = await serve(tier('old'));
    await decide({ 'x-request-id': 'shadowed' });
    const answer = await fetch(`http://127.0.0.1:${ports.metricsPort}/debug/requests/shadowed`);
    expect(await answer.json()).toMatchObject({
      decisions: [{ endpoint: 'default/new', shadow: { endpoint: 'default/old', cost: expect.any(Number) } }],
    });
  });

  it('a candidate configuration follows its file, and a version that cannot run leaves the one before in place', async () => {
    const { decide, shadow, file } = await serve(tier('new'));
    await writeFile(file, HEAD + tier('old'));
    await eventually(
      'the new version is applied',
      async () => (await shadow('config_reloads_total', '"applied"')) === 2,
    );
    await decide();
    expect(await shadow('different_total')).toBe(1);
    await writeFile(file, 'plugins: [{type: no-such-plugin}]');
    await eventually(
      'the broken version is seen',
      async () => (await shadow('config_reloads_total', '"invalid"')) === 1,
    );
    await writeFile(file, HEAD + PREFIX);
    await eventually(
      'the other version is seen',
      async () => (await shadow('config_reloads_total', '"refused"')) === 1,
    );
    await decide();
    expect(await shadow('different_total')).toBe(2);
  });
});

describe('a candidate configuration that cannot run', () => {
  const start = async (candidate: string) => {
    const { made, file } = await setting(candidate);
    return runToEnd(['serve', ...made.flags, `--candidate-config=${file}`]);
  };

  it('a candidate configuration ends the start with the place of its mistake', async () => {
    const { code, stderr } = await start('plugins: [{type: no-such-plugin}]\n');
    expect(code).toBe(1);
    expect(stderr).toMatch(/candidate\.yaml:3:\d+: .*no-such-plugin/);
  });

  it('a candidate configuration ends the start when it needs a prefix index that the running one does not keep', async () => {
    const { code, stderr } = await start(PREFIX);
    expect(code).toBe(1);
    expect(stderr).toContain('the running configuration keeps no prefix index: add its producer there');
  });

  it('a candidate configuration ends the start when its file is not there', async () => {
    const { made } = await setting(tier('new'));
    const { code, stderr } = await runToEnd(['serve', ...made.flags, '--candidate-config=/nowhere.yaml']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('--candidate-config: /nowhere.yaml cannot be read: ')]);
  });
});
