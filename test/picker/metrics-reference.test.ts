import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { metricChapters } from '../../scripts/reference-docs.ts';
import { dialPicker } from '../ingress/proxy-client.ts';
import { tokenizerJson } from '../request/tokens/model-files.ts';
import { eventually } from '../tools/gateway/client.ts';
import { askAndEnd, type FileEndpoint, metricsPage, Setting, startPicker } from './serving.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/**
 * Every part that registers metrics of its own, but Kubernetes and replication, whose tests have a cluster and a
 * nats-server.
 */
const everything = (model: string) => `featureGates: [flowControl]
plugins:
- {type: queue-scorer}
- {type: prefix-cache-scorer}
- {type: precise-prefix-cache-producer}
- {type: predicted-latency-producer, parameters: {trainingServerURL: 'http://127.0.0.1:9'}}
- {type: token-producer, parameters: {local: {path: ${JSON.stringify(model)}}}}
- {type: models-data-source}
- {type: models-data-extractor}
- type: disaggregatedset-rollout-screener
  parameters: {scope: {labelSelector: a=b}, revisionGating: {mode: sum, requireRoles: {values: [decode]}}}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: queue-scorer}, {pluginRef: prefix-cache-scorer}]}
`;

const SOURCES = '[{pluginRef: models-data-source, extractors: [{pluginRef: models-data-extractor}]}]';

/** An endpoint that the rollout screener lets through. */
const LABELS = {
  a: 'b',
  'disaggregatedset.x-k8s.io/revision': 'r1',
  'disaggregatedset.x-k8s.io/role': 'decode',
};

interface Family {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
}

/** The families of a page with the labels of their samples. */
function families(page: string): Family[] {
  return [...page.matchAll(/^# TYPE (\S+) (\S+)\n((?:[^#].*\n)*)/gm)].map(([, name, type, samples]) => ({
    name: name!,
    type: type!,
    labels: [...new Set([...samples!.matchAll(/[{,](\w+)="/g)].map(([, label]) => label!))].filter(
      (label) => label !== 'le' && label !== 'quantile',
    ),
  }));
}

/** A setting of every part, over one endpoint. */
async function settingOf(endpoint: FileEndpoint): Promise<Setting> {
  const model = mkdtempSync(join(tmpdir(), 'pointsman-model-'));
  cleanups.push(() => rmSync(model, { recursive: true, force: true }));
  writeFileSync(join(model, 'tokenizer.json'), JSON.stringify(tokenizerJson()));
  const setting = await Setting.create([endpoint], everything(model));
  cleanups.push(() => setting.remove());
  return setting;
}

async function livePage(): Promise<string> {
  const setting = await settingOf({ name: 'one', port: 20_011, labels: LABELS });
  const configuration = readFileSync(setting.configFile, 'utf8');
  writeFileSync(setting.configFile, configuration.replace('dataLayer:\n', `dataLayer:\n  sources: ${SOURCES}\n`));
  const { picker, ports } = await startPicker(
    [
      ...setting.flags,
      '--enable-grpc-stream-metrics',
      '--allow-experimental-plugins',
      `--candidate-config=${setting.configFile}`,
    ],
    undefined,
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' },
  );
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  await Promise.all(['a', 'b', 'c'].map((prompt) => askAndEnd(client, prompt)));
  const shown = async (series: string) => (await metricsPage(ports.metricsPort)).includes(`${series}{`);
  await eventually('the ends of the streams are counted', () => shown('llm_d_epp_extproc_streams_total'));
  await eventually('the shard has told of itself', () => shown('pointsman_shard_streams'));
  return metricsPage(ports.metricsPort);
}

describe('docs/reference/metrics.md and a running picker', () => {
  it('the reference has every metric of the page, with its type and its labels', async () => {
    const documented = metricChapters().flatMap(({ metrics }) => metrics);
    for (const { name, type, labels } of families(await livePage())) {
      const row = documented.find((metric) => metric.name === name || metric.older.includes(name));
      expect(row?.type, name).toBe(type);
      // An older name may have labels of its own.
      if (row!.name === name) expect([...row!.labels], name).toEqual(expect.arrayContaining([...labels]));
    }
  });

  it('the page has every metric of the reference that is not counted first', async () => {
    const shown = new Set(families(await livePage()).map(({ name }) => name));
    const expected = metricChapters()
      .filter(({ atStart, title }) => atStart && !['Kubernetes', 'Replication', 'Further pools'].includes(title))
      .flatMap(({ metrics }) => metrics.flatMap(({ name, older }) => [name, ...older]));
    expect(expected.length).toBeGreaterThan(80);
    expect(expected.filter((name) => !shown.has(name))).toEqual([]);
  });

  it('the page has the metrics of requests once there were some', async () => {
    const shown = new Set(families(await livePage()).map(({ name }) => name));
    const counted = [
      'llm_d_epp_request_total',
      'llm_d_epp_scheduler_attempts_total',
      'llm_d_epp_extproc_streams_total',
    ];
    expect(counted.filter((name) => !shown.has(name))).toEqual([]);
  });
});

/** Content types of pages that are no JSON. */
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '/metrics': 'text/plain',
  '/ui/': 'text/html',
  '/ui/events': 'text/event-stream',
  '/debug/recording': 'application/octet-stream',
};

describe('docs/reference/http.md and a running picker', () => {
  const page = readFileSync(new URL('../../docs/reference/http.md', import.meta.url), 'utf8');
  const paths = [...page.matchAll(/^\| `(\/[\w/-]*)`(?: \(POST\))? \|/gm)].map(([, path]) => path!);
  const actions = [...page.matchAll(/^\| `(\/[\w/-]*)` \(POST\) \|/gm)].map(([, path]) => path!);

  it('http.md has the paths that the metrics port routes, and no others', () => {
    const control = new URL('../../src/picker/control/', import.meta.url);
    const sources = ['metrics-page.ts', 'pool-pages.ts'].map((file) => readFileSync(new URL(file, control), 'utf8'));
    const routes = sources.join('');
    const routed = [...routes.matchAll(/\['(\/[\w/-]*)', /g)].map(([, path]) => path!);
    expect(routed.length).toBeGreaterThan(2);
    expect([...paths].sort()).toEqual([...routed, '/metrics'].sort());
  });

  it('the metrics port answers every documented path, 404 and 405 elsewhere', async () => {
    const setting = await settingOf({ name: 'one', port: 20_012 });
    const { picker, ports } = await startPicker([...setting.flags, '--allow-experimental-plugins']);
    cleanups.push(() => picker.stop(0));
    const ask = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${ports.metricsPort}${path}`, init);
    // Their tests are among those of several pools and of replicas.
    for (const path of paths.filter((each) => !['/debug/pools', '/debug/replicas'].includes(each))) {
      const { status, headers, body } = await ask(path, { method: actions.includes(path) ? 'POST' : 'GET' });
      await body?.cancel();
      const kind = CONTENT_TYPES[path] ?? 'application/json';
      expect([path, status, headers.get('content-type')]).toEqual([path, 200, expect.stringContaining(kind)]);
    }
    expect((await ask('/debug/decisions?limit=1001')).status).toBe(400);
    expect((await ask('/debug')).status).toBe(404);
    for (const path of actions) {
      const got = await ask(path);
      expect([path, got.status, got.headers.get('allow')]).toEqual([path, 405, 'POST']);
    }
    const post = await ask('/metrics', { method: 'POST' });
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  it('the metrics port has no page of flow control without its feature gate', async () => {
    const setting = await Setting.create([{ name: 'one', port: 20_013 }]);
    cleanups.push(() => setting.remove());
    const { picker, ports } = await startPicker(setting.flags);
    cleanups.push(() => picker.stop(0));
    expect((await fetch(`http://127.0.0.1:${ports.metricsPort}/debug/flow-control`)).status).toBe(404);
  });
});
