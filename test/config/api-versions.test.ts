import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { MOVED_FIELDS } from '../../dist/src/config/api-versions.js';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { type LoadedConfiguration, loadConfiguration } from '../../dist/src/config/load.js';

const options = { allowExperimental: true, registry: builtinPlugins };

function load(version: string, body: string): LoadedConfiguration {
  return loadConfiguration({ text: `apiVersion: ${version}\nkind: EndpointPickerConfig\n${body}\n` }, options);
}

const v1 = (body: string) => load('llm-d.ai/v1', body);
const v1alpha1 = (body: string) => load('llm-d.ai/v1alpha1', body);

const FILE = 'plugins: [{type: file-discovery, name: disc, parameters: {path: endpoints.yaml}}]\n';

describe('a configuration of llm-d.ai/v1', () => {
  it('it loads without a warning and without a conversion', () => {
    const { warnings, notes, discovery } = v1(`${FILE}dataLayer: {discovery: {endpoints: {pluginRef: disc}}}`);
    expect({ warnings, notes }).toEqual({ warnings: [], notes: [] });
    expect(discovery).toMatchObject({ type: 'file-discovery', path: expect.stringMatching(/endpoints\.yaml$/) });
  });

  it.each([
    ['dataLayer: {discovery: {pluginRef: disc}}', 'dataLayer.discovery.pluginRef', 'discovery.endpoints.pluginRef'],
    ['dataLayer: {peerDiscovery: {pluginRef: disc}}', 'dataLayer.peerDiscovery', 'dataLayer.discovery.peers'],
    ['dataLayer: {crossReplicaSyncInterval: 5s}', 'dataLayer.crossReplicaSyncInterval', 'crossReplica.syncInterval'],
    ['parser: {pluginRef: openai-parser}', 'parser', 'requestHandler.parsers'],
    ['saturationDetector: {pluginRef: utilization-detector}', 'saturationDetector', 'flowControl.saturationDetector'],
  ])('a field that only older versions have is refused with its new place: %s', (body, field, place) => {
    expect(() => v1(FILE + body)).toThrow(`${field}: llm-d.ai/v1 does not have this field: use`);
    expect(() => v1(FILE + body)).toThrow(place);
  });
});

describe('a configuration of llm-d.ai/v1alpha1', () => {
  it('it is converted, with a line that names what moved', () => {
    const old = v1alpha1(`${FILE}dataLayer: {discovery: {pluginRef: disc}}`);
    expect(old.warnings).toEqual([]);
    expect(old.notes).toEqual([
      '--config-text:1:13: apiVersion: llm-d.ai/v1alpha1 is read as llm-d.ai/v1: dataLayer.discovery.pluginRef is ' +
        'dataLayer.discovery.endpoints.pluginRef',
    ]);
    expect(old.effective).toEqual(v1(`${FILE}dataLayer: {discovery: {endpoints: {pluginRef: disc}}}`).effective);
  });

  it('an error about a moved field names the field and the place that were written', () => {
    expect(() => v1alpha1('dataLayer: {discovery: {pluginRef: gone}}')).toThrow(
      '--config-text:3:36: dataLayer.discovery.pluginRef: plugin "gone" is not defined',
    );
    expect(() => v1alpha1('dataLayer: {crossReplicaSyncInterval: soon}')).toThrow(
      '--config-text:3:39: dataLayer.crossReplicaSyncInterval: ',
    );
  });

  it('the newer place wins where both are written, and the older one has a warning', () => {
    const { warnings, discovery } = v1alpha1(
      'plugins:\n- {type: file-discovery, name: a, parameters: {path: a.yaml}}\n' +
        '- {type: file-discovery, name: b, parameters: {path: b.yaml}}\n' +
        'dataLayer: {discovery: {pluginRef: a, endpoints: {pluginRef: b}}}',
    );
    expect(discovery?.path).toMatch(/b\.yaml$/);
    expect(warnings).toEqual([
      expect.stringContaining(
        'dataLayer.discovery.pluginRef: is ignored, because dataLayer.discovery.endpoints.pluginRef is set',
      ),
    ]);
  });

  it('the effective configuration has the newest form and loads to itself', () => {
    const { effective } = v1alpha1(`${FILE}dataLayer: {discovery: {pluginRef: disc}}`);
    expect(effective).toMatchObject({
      apiVersion: 'llm-d.ai/v1',
      dataLayer: { discovery: { endpoints: { pluginRef: 'disc' } } },
    });
    const again = loadConfiguration({ text: JSON.stringify(effective) }, options);
    expect(again.effective).toEqual(effective);
    expect(again.notes).toEqual([]);
  });
});

describe('how replicas of llm-d-router share state', () => {
  const SYNCER = 'plugins: [{type: redis-syncer, name: shared, parameters: {address: "redis:6379"}}]\n';

  it.each([
    ['llm-d.ai/v1', 'dataLayer: {crossReplica: {syncerPluginRef: shared, syncInterval: 200ms, publishTimeout: 2s}}'],
    ['llm-d.ai/v1alpha1', 'dataLayer: {crossReplicaSyncerPluginRef: shared, crossReplicaSyncInterval: 200ms}'],
  ])('a replica syncer loads in %s with a warning that Pointsman replicates by itself', (version, body) => {
    const { warnings } = load(version, SYNCER + body);
    expect(warnings).toContainEqual(
      expect.stringMatching(/^--config-text:4:\d+: dataLayer\..*: "shared" has no effect: Pointsman replicates by/),
    );
  });

  it('a discovery of peers loads with the same warning', () => {
    const peers = 'plugins: [{type: k8s-peer-discovery, name: peers, parameters: {selector: app=epp}}]\n';
    const { warnings } = v1(`${peers}dataLayer: {discovery: {peers: {pluginRef: peers}}}`);
    expect(warnings).toContainEqual(expect.stringContaining('dataLayer.discovery.peers.pluginRef: "peers" has no'));
  });

  it('an interval without a syncer has a warning', () => {
    expect(v1('dataLayer: {crossReplica: {syncInterval: 5s}}').warnings).toEqual([
      expect.stringContaining('dataLayer.crossReplica.syncInterval: has no effect without a syncerPluginRef'),
    ]);
  });

  it('a syncer of another kind is refused', () => {
    const body = 'plugins: [{type: queue-scorer}]\ndataLayer: {crossReplica: {syncerPluginRef: queue-scorer}}';
    expect(() => v1(body)).toThrow('plugin "queue-scorer" is of kind scorer, expected replica-syncer');
  });
});

describe('policies of the evictor', () => {
  it.each(['sheddable-eviction-filter', 'priority-then-time-eviction-order-policy'])(
    '%s loads with a warning',
    (type) => {
      expect(v1(`plugins: [{type: ${type}}]`).warnings).toEqual([
        expect.stringContaining('has no effect: `flowControl.enableEviction` brings its own choice of victims'),
      ]);
    },
  );
});

describe('producers in a list of extractors', () => {
  it.each(['mm-embeddings-cache-producer', 'inflight-load-producer', 'precise-prefix-cache-producer'])(
    '%s may stand there',
    (type) => {
      const { warnings } = v1(
        `plugins: [{type: endpoint-notification-source}, {type: ${type}}, {type: queue-scorer}]\n` +
          'dataLayer:\n  sources:\n' +
          `  - {pluginRef: endpoint-notification-source, extractors: [{pluginRef: ${type}}]}`,
      );
      expect(warnings.filter((text) => text.includes('dataLayer'))).toEqual([]);
    },
  );

  it('another producer may not', () => {
    const body =
      'plugins: [{type: endpoint-notification-source}, {type: token-producer}]\ndataLayer:\n  sources:\n' +
      '  - {pluginRef: endpoint-notification-source, extractors: [{pluginRef: token-producer}]}';
    expect(() => v1(body)).toThrow('plugin "token-producer" is of kind producer, expected extractor');
  });
});

describe('the table of versions in docs/configuration.md', () => {
  it('it lists every field that has moved', () => {
    const page = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
    for (const { from, to } of MOVED_FIELDS) {
      const [older, newer] = [from, to].map((path) => path.filter((part) => typeof part === 'string').join('.'));
      expect(page).toMatch(new RegExp(`\\| \`${older}\`( \\(deprecated\\))? \\| \`${newer}\` \\|`));
    }
  });
});
