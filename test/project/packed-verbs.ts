// The main use of every verb of the program, as users of the package run it: from the folder that it was installed
// into.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../../dist/src/serve/port.js';
import { ask, eventually } from '../tools/gateway/client.ts';

const CHAT = '{"model":"demo-model","max_tokens":3,"messages":[{"role":"user","content":"Hello"}]}';
const EXAMPLE = 'node_modules/pointsman/examples/prefix-and-load.yaml';
const CONFIGURATION = `apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- {type: file-discovery, parameters: {path: endpoints.yaml, watchFile: true}}
- {type: queue-scorer}
- {type: prefix-cache-scorer}
- {type: max-score-picker}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: queue-scorer, weight: 2}, {pluginRef: prefix-cache-scorer, weight: 3}, \
{pluginRef: max-score-picker}]}
dataLayer: {discovery: {pluginRef: file-discovery}}
adaptation: {mode: shadow, stateFile: learned.json}
`;
const SUITE = `fleet: { hardware: qwen3-32b-h100-tp2, endpoints: 3 }
workloads:
- { name: chat, kind: chat, rate: 2, seconds: 10 }
policies: [{ name: default }, { name: round-robin }, { name: mine, configuration: mine.yaml }]
seeds: 2
`;

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Two model servers, a picker and a gateway, each a process of the installed program, and a folder for the other verbs.
 */
export class PackedVerbs {
  readonly #folder: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #running: { readonly child: ChildProcess; readonly output: () => string }[] = [];
  /** Ports by name, chosen before anything starts. */
  readonly ports = { one: 0, two: 0, grpc: 0, health: 0, metrics: 0, gateway: 0 };

  /** @param folder with the package in its node_modules */
  constructor(folder: string, env: NodeJS.ProcessEnv) {
    this.#folder = folder;
    this.#env = env;
  }

  /** The metrics port, as the verbs that look at a running picker are given it. */
  get picker(): string {
    return `http://127.0.0.1:${this.ports.metrics}`;
  }

  #spawn(argv: readonly string[]): ChildProcess {
    const program = join(this.#folder, 'node_modules/.bin/pointsman');
    return spawn(program, argv, { cwd: this.#folder, env: this.#env, stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** Runs the program to its end. */
  async run(...argv: readonly string[]): Promise<Ended> {
    const child = this.#spawn(argv);
    let [stdout, stderr] = ['', ''];
    child.stdout!.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr!.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    await once(child, 'close');
    return { code: child.exitCode, stdout, stderr };
  }

  /** Starts the program; resolves when it has said `ready`. @returns the process and its output so far */
  async start(ready: RegExp, ...argv: readonly string[]): Promise<{ child: ChildProcess; output: () => string }> {
    const child = this.#spawn(argv);
    let text = '';
    for (const stream of [child.stdout!, child.stderr!])
      stream.setEncoding('utf8').on('data', (more) => (text += more));
    const started = { child, output: () => text };
    this.#running.push(started);
    await eventually(`${argv.join(' ')}: ${text}`, () => ready.test(text) || child.exitCode !== null, 30_000);
    expect(text).toMatch(ready);
    return started;
  }

  /** Starts the four processes. */
  async startAll(): Promise<void> {
    for (const name of Object.keys(this.ports) as (keyof PackedVerbs['ports'])[]) this.ports[name] = await freePort();
    const { one, two, grpc, health, metrics, gateway } = this.ports;
    await this.write('mine.yaml', CONFIGURATION);
    await this.write('suite.yaml', SUITE);
    await this.write('request.json', CHAT);
    const entries = Object.entries({ one, two });
    const lines = entries.map(([name, port]) => `- {name: ${name}, address: 127.0.0.1, port: "${port}"}\n`);
    await this.write('endpoints.yaml', `endpoints:\n${lines.join('')}`);
    for (const [name, port] of entries) {
      const flags = [`--port=${port}`, `--name=${name}`, '--speedup=20'];
      await this.start(/^model server \w+ on http/, 'model-server', ...flags);
    }
    const ports = [`--grpc-port=${grpc}`, `--grpc-health-port=${health}`, `--metrics-port=${metrics}`];
    await this.start(/pointsman is serving/, 'serve', '--config-file=mine.yaml', '--secure-serving=false', ...ports);
    const through = [`--port=${gateway}`, `--picker=127.0.0.1:${grpc}`];
    await this.start(/^gateway on http/, 'gateway', ...through);
  }

  /** The running process whose command line begins with `verb`; ends as on Ctrl-C. @returns its exit code */
  async stop(verb: string): Promise<number | null> {
    const { child } = this.#running.find(({ child }) => child.spawnargs.includes(verb))!;
    const ended = once(child, 'close');
    child.kill('SIGINT');
    await ended;
    return child.exitCode;
  }

  async close(): Promise<void> {
    const open = this.#running.filter(({ child }) => child.exitCode === null && child.signalCode === null);
    await Promise.all(
      open.map(async ({ child }) => {
        const ended = once(child, 'close');
        child.kill('SIGKILL');
        await ended;
      }),
    );
  }

  write(file: string, text: string): Promise<void> {
    return writeFile(join(this.#folder, file), text);
  }

  read(file: string): Promise<string> {
    return readFile(join(this.#folder, file), 'utf8');
  }

  chat(id: string) {
    return ask(this.ports.gateway, { body: CHAT, headers: { 'x-request-id': id } });
  }

  async page(path: string): Promise<string> {
    return (await fetch(`${this.picker}${path}`)).text();
  }

  /** Saves the answer to a POST. */
  async save(path: string, file: string): Promise<void> {
    const answer = await fetch(`${this.picker}${path}`, { method: 'POST' });
    const stream = createWriteStream(join(this.#folder, file));
    stream.end(Buffer.from(await answer.arrayBuffer()));
    await once(stream, 'finish');
  }
}

/** What each verb is for. In this order: the last ones end what the others ask. */
export const PACKED_VERBS: Readonly<Record<string, (verbs: PackedVerbs) => Promise<void>>> = {
  'model-server': async (verbs) => {
    const answer = await ask(verbs.ports.one, { body: CHAT });
    expect(answer.headers['x-inference-pod']).toBe('one');
    expect(JSON.parse(answer.body.toString())).toMatchObject({ object: 'chat.completion' });
  },
  gateway: async (verbs) => {
    const answer = await verbs.chat('packed-1');
    expect(answer.status).toBe(200);
    expect(['one', 'two']).toContain(answer.headers['x-inference-pod']);
  },
  serve: async (verbs) => {
    await eventually('the request is counted', async () =>
      /^llm_d_epp_request_total\{[^}]*\} [1-9]/m.test(await verbs.page('/metrics')),
    );
  },
  why: async (verbs) => {
    const { code, stdout } = await verbs.run('why', 'packed-1', '--picker', verbs.picker);
    expect(stdout).toMatch(/^result {4}completed: 3 tokens/m);
    expect(stdout).toMatch(/^ {2}pick +default\/(one|two) of 2 candidates/m);
    expect(code).toBe(0);
  },
  top: async (verbs) => {
    const { code, stdout } = await verbs.run('top', '--once', '--picker', verbs.picker);
    expect(stdout).toMatch(/^default\/one +live/m);
    expect(stdout).toMatch(/ packed-1 +default\/(one|two) .* completed$/m);
    expect(code).toBe(0);
  },
  doctor: async (verbs) => {
    const { stdout } = await verbs.run('doctor', '--seconds=1', '--all', '--picker', verbs.picker);
    expect(stdout).toMatch(/^pool default, pointsman .*, 2 endpoints, \d+ requests?/);
    expect(stdout).toMatch(/^bounds: endpoints/m);
  },
  replay: async (verbs) => {
    const recorded = verbs.save('/debug/recording?seconds=2', 'decisions.bin');
    for (let i = 0; i < 5; i++) {
      await verbs.chat(`recorded-${i}`);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    await recorded;
    const { code, stdout } = await verbs.run('replay', 'decisions.bin', '--config', EXAMPLE);
    expect(stdout).toMatch(/^recording {2}pool default, .*: [1-5] decisions$/m);
    expect(stdout).toMatch(/^again {6}100\.0 %/m);
    expect(code).toBe(0);
  },
  lint: async (verbs) => {
    const good = await verbs.run('lint', EXAMPLE);
    expect(good.stdout).toContain('0 errors, 0 warnings');
    expect(good.code).toBe(0);
    await verbs.write('wrong.yaml', CONFIGURATION.replace('type: queue-scorer', 'type: queu-scorer'));
    const bad = await verbs.run('lint', 'wrong.yaml');
    expect(bad.stdout + bad.stderr).toContain('queue-scorer');
    expect(bad.code).toBe(1);
    const envoy = await verbs.run('lint', EXAMPLE, '--envoy', 'node_modules/pointsman/deploy/envoy/envoy.yaml');
    expect(envoy.stdout).toMatch(/envoy\.yaml: 0 errors/);
    await verbs.write('pools.yaml', 'pools:\n- {name: chat, configFile: mine.yaml}\n');
    const pools = await verbs.run('lint', '--pools', 'pools.yaml');
    expect(pools.stdout + pools.stderr).toContain('chat');
  },
  explain: async (verbs) => {
    await verbs.write('signals.yaml', 'one: {waitingRequests: 4}\ntwo: {waitingRequests: 0}\n');
    const { code, stdout } = await verbs.run(
      'explain',
      'mine.yaml',
      '--request=request.json',
      '--signals=signals.yaml',
    );
    expect(stdout).toMatch(/two/);
    expect(stdout).toContain('picked');
    expect(code).toBe(0);
  },
  schema: async (verbs) => {
    const { code, stdout } = await verbs.run('schema');
    expect(JSON.parse(stdout)).toMatchObject({ title: 'EndpointPickerConfig' });
    expect(code).toBe(0);
  },
  simulate: async (verbs) => {
    const flags = ['--report=report.html', '--json=results.json', '--jobs=2'];
    const { code, stdout, stderr } = await verbs.run('simulate', 'suite.yaml', ...flags);
    expect(stderr).not.toContain('pointsman:');
    expect(stdout).toMatch(/^chat\n(.*\n)+ {2}default .* reference$/m);
    expect(stdout).toMatch(/^ {2}mine /m);
    expect(JSON.parse(await verbs.read('results.json'))).toBeTypeOf('object');
    expect(await verbs.read('report.html')).toContain('</html>');
    expect(code).toBe(0);
  },
  bench: async (verbs) => {
    const { code, stdout } = await verbs.run('bench', 'mine.yaml', '--time=5', '--endpoints=8', '--blocks=4');
    expect(stdout).toMatch(/^decision +whole +[\d,]+/m);
    expect(stdout).toMatch(/^prefix-cache-scorer +scorer/m);
    expect(code).toBe(0);
  },
  demo: async (verbs) => {
    const load = ['--servers=2', '--conversations=2', '--turns=2', '--speedup=50', '--port=0'];
    const { code, stdout } = await verbs.run('demo', '--once', ...load);
    expect(stdout).toMatch(/^ +1 +2 +0 /m);
    expect(stdout).toMatch(/^ +2 +2 +0 /m);
    expect(code).toBe(0);
  },
  preflight: async (verbs) => {
    const flags = [`--gateway=http://127.0.0.1:${verbs.ports.gateway}`, `--picker=${verbs.picker}`];
    const small = ['--endpoints-file=endpoints.yaml', '--seconds=1', '--concurrency=20'];
    const gateway = await verbs.run('preflight', ...flags, ...small);
    expect(gateway.stdout).toMatch(/^ok +way /m);
    expect(gateway.stdout).toMatch(/^ok +bodies /m);
    expect(gateway.stdout).toMatch(/^ok +20 at once /m);
    expect(await verbs.read('endpoints.yaml')).toContain('name: two');
    await verbs.write('kubeconfig', 'apiVersion: v1\nkind: Config\n');
    const cluster = await verbs.run('preflight', '--pool-name=llama');
    expect(cluster).toMatchObject({ code: 1, stdout: '' });
    expect(cluster.stderr).toMatch(/^pointsman: .*kubeconfig/);
  },
  weights: async (verbs) => {
    expect(await verbs.stop('serve')).toBe(0);
    const { code, stdout, stderr } = await verbs.run('weights', 'export', '--config-file=mine.yaml');
    expect(stderr).toBe('');
    expect(parse(stdout)).toMatchObject({ kind: 'EndpointPickerConfig', adaptation: { mode: 'off' } });
    expect(code).toBe(0);
  },
};
