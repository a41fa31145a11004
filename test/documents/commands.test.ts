import { spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { skipReason as noEnvoy } from '../envoy/envoy.ts';
import { skipReason as noKubernetes, sharedCluster } from '../kubernetes/api-server.ts';
import type { Cluster, KubernetesObject } from '../kubernetes/cluster.ts';
import { writeKubeconfig } from '../kubernetes/kubeconfig.ts';
import { Kubelet } from '../kubernetes/kubelet.ts';
import { skipReason as noNats } from '../replication/nats-server.ts';
import { skipReason as noCollector } from '../tracing/collector.ts';
import { blocksOf, type CommandBlock, type Component, missingLine } from './blocks.ts';
import type { BlockResult } from './run-document.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const DOCUMENT_MS_MAX = 180_000;
/** test/tools/tutorial.test.ts runs it: its reader carries port numbers from one command to the next. */
const TUTORIAL = 'docs/tutorial.md';

/** Commands that no test can run, by document, with the reason that stands there. Keep it short. */
const NOT_RUN = [
  'CONTRIBUTING.md: minutes to hours each, and builds beside the running suite; that the scripts exist is tested',
  'CONTRIBUTING.md: mutation runs take an hour',
  'README.md: a cluster that runs pods',
  'README.md: installs and builds, as .ci/run does before the suite',
  'README.md: the suite itself',
  'docs/guides/engines.md: needs Envoy and the programs of others',
  'docs/guides/tracing.md: builds for minutes, as .ci/run does before the suite',
  'docs/internals/past-bugs.md: checks an old commit out and builds it, which takes minutes',
  'docs/kubernetes.md: a cluster that runs pods',
  'docs/kubernetes.md: a cluster that runs pods',
  'docs/kubernetes.md: a cluster that runs pods',
  'docs/kubernetes.md: builds and runs for minutes, as root',
  'docs/kv-events.md: a GPU and vLLM',
  'docs/outside-benchmarks.md: installs 2 GB and runs for an hour',
  // One for each result; test/tools/simulator/published-results.test.ts runs the program for one.
  ...Array.from({ length: 14 }, () => 'docs/published-results.md: minutes of simulation'),
  'docs/upgrading.md: a cluster that runs pods',
];

const folders = ['docs', 'deploy', 'examples'].flatMap((folder) =>
  readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
);
const pages = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...folders].filter((file) => file.endsWith('.md'));
const commandsOf = (page: string) =>
  blocksOf(readFileSync(`${root}${page}`, 'utf8')).filter((block): block is CommandBlock => !('file' in block));
const withCommands = pages.filter(
  (page) => page !== TUTORIAL && commandsOf(page).some(({ notRun }) => notRun === undefined),
);

/** A component that is asked for by POINTSMAN_REQUIRE_… counts as there, so that its absence fails. */
const present: readonly Component[] = [
  ...(noEnvoy === '' ? (['envoy'] as const) : []),
  ...(noNats === '' ? (['nats'] as const) : []),
  ...(noKubernetes === '' ? (['kubernetes'] as const) : []),
  ...(noCollector === '' ? (['otelcol'] as const) : []),
  ...(process.platform === 'linux' ? (['linux'] as const) : []),
];

/** Documents use the default ports, as every other document: a network for each, where that is allowed. */
const OWN_NETWORK = ['--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh'];
const canIsolate = spawnSync('unshare', [...OWN_NETWORK, 'true']).status === 0;

/** The cluster that the page about Kubernetes describes: its own pool in its own namespace, with one pod. */
async function clusterOf(page: string): Promise<Cluster> {
  const cluster = await sharedCluster();
  onTestFinished(() => cluster.close());
  const examples = [...readFileSync(`${root}${page}`, 'utf8').matchAll(/```yaml\n([\s\S]*?)```/g)].flatMap(([, text]) =>
    parseAllDocuments(text!).map((document) => document.toJS() as KubernetesObject | null),
  );
  const pool = examples.find((one) => one?.kind === 'InferencePool')!;
  await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: pool.metadata.namespace! } });
  await cluster.create(pool);
  await new Kubelet(cluster, pool.metadata.namespace!).run('llama-0', { ip: '10.0.0.1' });
  return cluster;
}

async function run(page: string): Promise<{ results: BlockResult[]; errors: string }> {
  const runner = [process.execPath, `${root}test/documents/run-document.ts`, page, present.join()];
  const env = { ...process.env };
  const inCluster = noKubernetes === '' && commandsOf(page).some(({ needs }) => needs.includes('kubernetes'));
  if (inCluster) {
    const kubeconfig = writeKubeconfig(await clusterOf(page));
    onTestFinished(kubeconfig.remove);
    env.KUBECONFIG = kubeconfig.file;
  }
  // The API server is in the network of the suite.
  const [program, ...args] = canIsolate && !inCluster ? ['unshare', ...OWN_NETWORK, ...runner] : runner;
  const child = spawn(program!, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill());
  let [stdout, errors] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  await new Promise((resolve) => child.once('close', resolve));
  const lines = stdout.split('\n').filter((line) => line !== '');
  return { results: lines.map((line) => JSON.parse(line) as BlockResult), errors };
}

describe('the commands of the documents', () => {
  it.each(withCommands)(
    'the commands of %s do what it says',
    async (page) => {
      const { results, errors } = await run(page);
      expect(results.map(({ failure }) => failure).filter(Boolean)).toEqual([]);
      expect(errors).toBe('');
      expect(results.map(({ line }) => line)).toEqual(
        blocksOf(readFileSync(`${root}${page}`, 'utf8')).map(({ line }) => line),
      );
    },
    DOCUMENT_MS_MAX,
  );

  it('the commands that no test runs are those of the list, each with its reason', () => {
    const listed = pages.flatMap((page) =>
      commandsOf(page).flatMap(({ notRun }) => (notRun === undefined ? [] : [`${page}: ${notRun}`])),
    );
    expect(listed.sort()).toEqual(NOT_RUN);
  });

  it('the commands of the tutorial need no tags: a test of its own runs all of them', () => {
    expect(readFileSync(`${root}${TUTORIAL}`, 'utf8')).not.toContain('<!--');
  });
});

describe('a fenced block', () => {
  const only = (page: string) => blocksOf(page)[0] as CommandBlock;

  it('a block takes the tags right before its fence', () => {
    const block = only(
      '<!-- needs: envoy, nats -->\n<!-- before: a; b -->\n<!-- instead: x -> y -->\n```sh\nrun x\n```\n',
    );
    expect(block).toMatchObject({
      line: 4,
      text: 'run x\n',
      needs: ['envoy', 'nats'],
      before: ['a; b'],
      instead: [['x', 'y']],
    });
  });

  it('a block shows what the text below it has', () => {
    expect(only('```sh background\nrun\n```\n\n```text\na …\nb\n```\n')).toMatchObject({
      stays: true,
      shows: ['a …', 'b'],
    });
  });

  it('a block in a list loses its indentation', () => {
    expect(only('1. It\n\n   ```sh\n   run \\\n     on\n   ```\n').text).toBe('run \\\n  on\n');
  });

  it.each([
    ['<!-- neds: envoy -->\n```sh\na\n```\n', 'no tag is called neds'],
    ['<!-- needs: envoi -->\n```sh\na\n```\n', 'there is no component envoi'],
    ['<!-- needs: envoy -->\n\n```sh\na\n```\n', 'right before a fence'],
    ['<!-- instead: b -> c -->\n```sh\na\n```\n', 'the block has no b'],
    ['```bash\na\n```\n', 'write ```sh for ```bash'],
    ['<!-- needs: envoy -->\n```yaml\na: 1\n```\n', 'no command'],
  ])('a page with %j is refused', (page, error) => {
    expect(() => blocksOf(page)).toThrow(error);
  });

  it('a missing line is the first that an output lacks in its place', () => {
    expect(missingLine('a 1\nb 2\n', ['a …', 'b 2'])).toBeUndefined();
    expect(missingLine('b 2\na 1\n', ['a …', 'b 2'])).toBe('b 2');
  });
});
