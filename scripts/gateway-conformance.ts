// Runs the conformance suite of the Gateway API Inference Extension against Istio with Pointsman as its picker:
// `node scripts/gateway-conformance.ts [--only TEST] [--logs FOLDER]`, as root, after `npm run build`. Istio's control
// plane and the API server are real; gateways are a plain Envoy, and a small stand-in for the kubelet runs the pods as
// processes in network namespaces. All of it lives in namespaces that are gone with the command. Needs what
// scripts/install-envoy.sh, install-kubernetes.sh and install-istio.sh install. Exit code 1: a test failed.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { findEnvoy } from '../dist/tools/demo/envoy-process.js';
import {
  GATEWAY_CLASS,
  ISTIOD_PORT,
  start,
  startIstio,
  startKubernetes,
  trustPickers,
} from './gateway-conformance/control-plane.ts';
import { gatewayEnvoy } from './gateway-conformance/gateway-envoy.ts';
import { prepareInside, runInside } from './gateway-conformance/isolation.ts';
import { Kubelet } from './gateway-conformance/kubelet.ts';
import type { ContainerSpec, Pod, Program } from './gateway-conformance/pod.ts';
import { resultsOf } from './gateway-conformance/results.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TOOLS = join(ROOT, '.tools');
/** The suite waits up to five minutes for one condition. */
const SUITE_MINUTES = 40;
/** The pool whose picker Istio asks for a route with two pools (gateway-conformance/pools.yaml). */
const LAST_POOL_OF_ROUTE = 'secondary-inference-pool';
const RUN_MINUTES = SUITE_MINUTES + 5;

const { values } = parseArgs({
  options: { only: { type: 'string' }, logs: { type: 'string' }, inside: { type: 'string' } },
});
process.exitCode = values.inside === undefined ? await outside() : await inside(values.inside);

/** Checks what the run needs and starts it in namespaces; its files are gone at the end, logs in `--logs` excepted. */
async function outside(): Promise<number> {
  const missing = missingParts();
  if (missing.length > 0) {
    process.stderr.write(missing.map((line) => `${line}\n`).join(''));
    return 2;
  }
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-conformance-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const logs = resolve(values.logs ?? join(folder, 'logs'));
  mkdirSync(logs, { recursive: true });
  const only = values.only === undefined ? [] : ['--only', values.only];
  const args = ['--inside', folder, '--logs', logs, ...only];
  return runInside(fileURLToPath(import.meta.url), args, folder, RUN_MINUTES * 60_000);
}

function missingParts(): readonly string[] {
  const installed = (path: string, script: string) =>
    existsSync(join(TOOLS, path)) ? [] : [`${path} is not installed: run sh scripts/${script}`];
  return [
    ...(process.getuid?.() === 0 ? [] : ['network namespaces need root: run the command with sudo']),
    ...(existsSync(join(ROOT, 'dist/program/main.js')) ? [] : ['Pointsman is not built: run npm run build']),
    ...(findEnvoy() === undefined ? ['no Envoy: run sh scripts/install-envoy.sh'] : []),
    ...installed('kubernetes/bin/apiserver', 'install-kubernetes.sh'),
    ...installed('istio/versions', 'install-istio.sh'),
  ];
}

/** The run itself, as the first process of its namespaces. @returns its exit code */
async function inside(folder: string): Promise<number> {
  prepareInside();
  const logs = values.logs!;
  const say = (line: string) => process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);
  const kubernetes = await startKubernetes(logs);
  say('Kubernetes API server and controllers run');
  await startIstio(kubernetes, folder, logs);
  say('istiod runs');
  const { apiServer, cluster } = kubernetes;
  const ended = new AbortController();
  const kubelet = new Kubelet({
    ...{ cluster, apiServerPort: apiServer.port, ca: apiServer.ca, logs, folder, programOf, say },
  });
  const loops = [kubelet.run(ended.signal), trustPickers(cluster, ended.signal, say)];
  const code = await runSuite(kubernetes.kubeconfig, logs);
  ended.abort();
  await Promise.all(loops);
  process.stdout.write(`${resultsOf(readFileSync(join(logs, 'conformance.log'), 'utf8'))}\n`);
  process.exit(code);
}

/** The program in the place of a container's image. */
function programOf(pod: Pod, { image, args = [] }: ContainerSpec): Program {
  if (image.includes('/echo-basic:')) return { argv: [join(TOOLS, 'istio/echo-basic')] };
  if (image === 'plain-envoy') return { argv: envoyOf(pod) };
  if (!image.includes('/lwepp:')) throw new Error(`no program is known for the image ${image}`);
  const settings = join(ROOT, 'scripts/gateway-conformance');
  // Istio sends requests of this route elsewhere when it has chosen the other pool: no failure of the endpoint picked.
  const twoPools = ['--pools', join(settings, 'pools.yaml'), '--disable-endpoint-ejection'];
  const pools = args.includes(LAST_POOL_OF_ROUTE) ? twoPools : [];
  const flags = [...args, '--config-file', join(settings, 'picker.yaml'), ...pools];
  return { argv: [process.execPath, join(ROOT, 'bin/pointsman.js'), ...flags] };
}

function envoyOf(pod: Pod): readonly string[] {
  const file = join(pod.folder, 'envoy.json');
  const { name, namespace, address, serviceAccount, object } = pod;
  const labels = object.metadata.labels ?? {};
  writeFileSync(file, JSON.stringify(gatewayEnvoy({ name, namespace, address, serviceAccount, labels }, ISTIOD_PORT)));
  return [findEnvoy()!, '-c', file, '--concurrency', '1', '--disable-hot-restart', '--log-level', 'warning'];
}

function runSuite(kubeconfig: string, logs: string): Promise<number> {
  const suite = start(
    'conformance',
    logs,
    [
      ...['-test.v', '-test.run', 'TestConformance', '-test.timeout', `${SUITE_MINUTES}m`],
      ...[`--gateway-class=${GATEWAY_CLASS}`, ...(values.only === undefined ? [] : [`--run-test=${values.only}`])],
    ],
    { KUBECONFIG: kubeconfig },
  );
  return new Promise((done, fail) => {
    suite.once('error', fail);
    suite.once('exit', (code) => done(code ?? 1));
  });
}
