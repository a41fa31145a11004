// Writes test/compatibility/fixtures/<version>/: the configurations and the state files of this version of the program,
// and the names that its users write down. Run it while the version is not released yet: `npm run
// compatibility-fixtures`. Fixtures of a released version are never written again (docs/stability.md).

import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '../../dist/src/operations/log.js';
import { KeptState } from '../../dist/src/picker/control/kept-state.js';
import { decodeReply, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { ask, type ServeProcess, startServe } from '../picker/serving.ts';
import { ENDPOINTS, EngineDoubles, flagsOf, MISSING_TOKENS, PROMPTS, root, USED, VARIANTS } from './served-pool.ts';
import { stableNames } from './stable-names.ts';

const RECORDED_SECONDS = 6;
/** A pools file with every way to say where the endpoints of a pool are, and which requests are for it. */
const POOLS = `default: chat
pools:
- {name: chat, configFile: prefix-and-load.yaml, endpointsFile: endpoints.yaml, models: [llama-3.3-70b, "qwen-*"]}
- {name: code, inferencePool: {name: code, namespace: models}, models: [qwen-coder-32b], maxEndpoints: 32}
- name: batch
  configuration: {featureGates: [flowControl]}
  candidateFile: flow-control.yaml
  selector: {labels: app=batch, targetPorts: [8000]}
  port: 9012
`;

if (process.argv[1] === import.meta.filename) await writeFixtures();

async function writeFixtures(): Promise<void> {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string };
  const target = join(import.meta.dirname, 'fixtures', version);
  rmSync(target, { recursive: true, force: true });
  mkdirSync(join(target, 'state'), { recursive: true });
  cpSync(join(root, 'examples'), join(target, 'configurations'), {
    recursive: true,
    filter: (path) => !/\/(simulation|embedded)(\/|$)/.test(path),
  });
  writeFileSync(join(target, 'configurations/pools.yaml'), POOLS);
  for (const chart of ['gateway', 'standalone']) {
    const values = join(root, `deploy/charts/pointsman-${chart}/values.yaml`);
    cpSync(values, join(target, 'charts', `${chart}.yaml`));
  }
  writeFileSync(join(target, 'names.json'), `${JSON.stringify(stableNames(), null, 2)}\n`);
  await writeTenants(join(target, 'state/tenants.json'));
  const engines = await EngineDoubles.start();
  try {
    await writeState(target, ENDPOINTS, 'learned.json');
    const classes = ENDPOINTS.map((endpoint, i) => ({ ...endpoint, labels: { [VARIANTS]: `gpu-${i % 2}` } }));
    await writeState(target, classes, 'learned-classes.json');
  } finally {
    await engines.stop();
  }
}

/** The levels of buckets as JetStream keeps them. */
async function writeTenants(file: string): Promise<void> {
  const kept = new KeptState({
    store: {
      get: async () => undefined,
      put: async (name, value) => {
        if (name === 'tenants') writeFileSync(file, value);
      },
    },
    state: {
      learned: () => undefined,
      restoreLearned: () => undefined,
      missing: () => Object.entries(MISSING_TOKENS).map(([tenant, tokens]) => ({ tenant, tokens })),
      restore: () => undefined,
    },
    writes: () => true,
    log: createLogger({ verbosity: 0, zapLogLevel: 'panic' }),
  });
  await kept.start();
  await kept.stop();
}

/** Runs a picker over the requests of `USED` and keeps what it has written. @param learned name of its learned state */
async function writeState(target: string, endpoints: typeof ENDPOINTS, learned: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-fixtures-'));
  const picker = await startServe([
    ...flagsOf(folder, endpoints),
    `--state-dir=${join(folder, 'state')}`,
    `--usage-dir=${join(folder, 'usage')}`,
  ]);
  try {
    const recording = await serve(picker);
    picker.child.kill('SIGTERM');
    await picker.ended;
    cpSync(join(folder, 'state/learned.json'), join(target, 'state', learned));
    if (learned !== 'learned.json') return;
    for (const name of ['prefix-index.bin', 'hash-seed']) {
      cpSync(join(folder, 'state', name), join(target, 'state', name));
    }
    const day = new Date().toISOString().slice(0, 10);
    cpSync(join(folder, 'usage', `usage-${day}.ndjson`), join(target, 'state/usage.ndjson'));
    writeFileSync(join(target, 'state/recording.bin'), recording);
  } finally {
    picker.child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Sends every prompt as often as `USED` says, and answers it. @returns the recording of the decisions */
async function serve(picker: ServeProcess): Promise<Uint8Array> {
  const page = `http://127.0.0.1:${picker.metricsPort}/debug/recording`;
  const recording = await fetch(`${page}?seconds=${RECORDED_SECONDS}`, { method: 'POST' });
  const client = dialPicker(picker.grpcPort);
  for (const [tenant, { requests, inputTokens, outputTokens }] of Object.entries(USED)) {
    for (let i = 0; i < requests; i++) {
      const call = ask(client, PROMPTS[i % PROMPTS.length]!, { 'x-llm-d-inference-fairness-id': tenant });
      decodeReply(await firstReply(call));
      call.write(responseHeaders({ ':status': '200', 'content-type': 'text/event-stream' }));
      call.write(responseBody('data: {"choices":[{"delta":{"content":"a"}}]}\n\n', false));
      await new Promise((resolve) => setTimeout(resolve, 5));
      const [prompt, completion] = [inputTokens / requests, outputTokens / requests];
      const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
      call.write(responseBody(`data: {"choices":[],"usage":${JSON.stringify(usage)}}\n\ndata: [DONE]\n\n`, true));
      call.end();
    }
  }
  const bytes = new Uint8Array(await recording.arrayBuffer());
  client.close();
  return bytes;
}
