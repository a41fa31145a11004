import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { complaints } from './configuration.ts';
import {
  chartFolder,
  container,
  find,
  helm,
  helmSkipReason,
  KUBERNETES_VERSION,
  type Manifest,
  RELEASE,
  refusal,
  render,
} from './helm.ts';
import type { Chart } from './value-sets.ts';

const CONFIGURATION = {
  apiVersion: 'llm-d.ai/v1alpha1',
  kind: 'EndpointPickerConfig',
  plugins: [{ type: 'queue-scorer' }],
  schedulingProfiles: [{ name: 'default', plugins: [{ pluginRef: 'queue-scorer', weight: 2 }] }],
};
const values = (epp: object) => ({ router: { modelServers: { matchLabels: { app: 'vllm' } }, epp } });
const files = (manifests: readonly Manifest[]): Record<string, string> => find(manifests, 'ConfigMap', 'rel-epp').data;
const charts: readonly Chart[] = ['gateway', 'standalone'];

describe(`router.epp.pluginsConfig${helmSkipReason}`, { skip: helmSkipReason !== '', concurrent: true }, () => {
  test.each(charts)('pluginsConfig takes the place of the default configuration in the %s chart', async (chart) => {
    const data = files(await render(chart, values({ pluginsConfig: CONFIGURATION })));
    expect(parse(data['default-plugins.yaml']!)).toEqual(CONFIGURATION);
    expect(complaints(data['default-plugins.yaml']!)).toEqual([]);
    expect(Object.keys(data)).toEqual(['default-plugins.yaml', 'payload-agnostic.yaml']);
  });

  test('pluginsConfig is the file that pluginsConfigFile names, beside the others', async () => {
    const own = {
      pluginsConfig: CONFIGURATION,
      pluginsConfigFile: 'mine.yaml',
      pluginsCustomConfig: { other: 'text' },
    };
    const manifests = await render('gateway', values(own));
    expect(parse(files(manifests)['mine.yaml']!)).toEqual(CONFIGURATION);
    expect(files(manifests).other).toBe('text');
    expect(container(manifests).args).toContain('--config-file=/config/mine.yaml');
  });

  test('an empty pluginsConfig leaves the files as they are', async () => {
    const plain = files(await render('gateway', values({})));
    expect(files(await render('gateway', values({ pluginsConfig: {} })))).toEqual(plain);
  });

  test('a further file of values adds fields to pluginsConfig', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pointsman-values-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = (name: string, content: object) => {
      writeFileSync(join(folder, name), stringify(content));
      return ['--values', join(folder, name)];
    };
    const version = ['--kube-version', KUBERNETES_VERSION];
    const base = file('base.yaml', values({ pluginsConfig: CONFIGURATION }));
    const overlay = file('overlay.yaml', values({ pluginsConfig: { featureGates: ['flowControl'] } }));
    const { stdout } = await helm('template', RELEASE, chartFolder('gateway'), ...version, ...base, ...overlay);
    const [text] = /default-plugins\.yaml: \|-?\n((?: {4}.*\n)+)/.exec(stdout)!.slice(1);
    expect(parse(text!)).toEqual({ ...CONFIGURATION, featureGates: ['flowControl'] });
  });

  test('pluginsConfig beside a text of the same file is refused', async () => {
    const both = { pluginsConfig: CONFIGURATION, pluginsCustomConfig: { 'default-plugins.yaml': 'text' } };
    expect(await refusal('gateway', values(both))).toContain(
      'router.epp.pluginsConfig: "default-plugins.yaml" is in router.epp.pluginsCustomConfig too; keep one of them',
    );
  });

  test('pluginsConfig that is no mapping is refused', async () => {
    await expect(render('gateway', values({ pluginsConfig: 'text' }))).rejects.toThrow(/pluginsConfig.*object/s);
  });

  test('pluginsConfig with lists of destinations is refused behind the proxy of the standalone chart', async () => {
    const picker = { type: 'max-score-picker', parameters: { maxNumOfEndpoints: 2 } };
    expect(await refusal('standalone', values({ pluginsConfig: { ...CONFIGURATION, plugins: [picker] } }))).toContain(
      'router.epp.pluginsConfig: maxNumOfEndpoints above 1 names lists of destinations',
    );
  });
});
