// How a picker starts on a configuration of llm-d-router: this project's, or llm-d-router's own.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parse, stringify } from 'yaml';
import { freePorts } from '../../dist/src/serve/port.js';

const PROGRAM = fileURLToPath(new URL('../../bin/pointsman.js', import.meta.url));
const START_MS_MAX = 30_000;
const WORDS_MAX = 200_000;

/** `warns` = it starts, and says in a warning what it does not take as it is written. */
export type Outcome = 'starts' | 'warns' | 'refuses';

/** A picker by its program, and how a warning looks in its log. */
export interface ComparedPicker {
  readonly command: readonly string[];
  readonly warning: RegExp;
}

export const POINTSMAN: ComparedPicker = {
  command: [process.execPath, PROGRAM, 'serve'],
  // Only what is said of the configuration: the endpoint of the test answers nobody, which is a warning too.
  warning: /"level":"warn"[^\n]*configuration\.yaml:\d+:\d+: /,
};

/** @param path of llm-d-router's program, which tells of deprecated fields and ignored sections at level info */
export function llmdRouter(path: string): ComparedPicker {
  return { command: [path], warning: /"level":"warn"|DEPRECATION|is deprecated|[Ii]gnor(?:ed|ing)/ };
}

interface Document {
  plugins?: { type: string; name?: string; parameters?: Record<string, unknown> }[];
  dataLayer?: Record<string, unknown>;
  [field: string]: unknown;
}

/** The configuration with endpoints from a file, so that no cluster is needed; a discovery of its own stays. */
export function withEndpoints(text: string, endpointsFile: string): string {
  const document = parse(text) as Document;
  if (document.dataLayer?.discovery !== undefined) {
    for (const { type, parameters } of document.plugins ?? []) {
      if (type === 'file-discovery' && parameters !== undefined) parameters.path = endpointsFile;
    }
    return stringify(document);
  }
  const discovery = { type: 'file-discovery', name: 'endpoints-of-test', parameters: { path: endpointsFile } };
  return stringify({
    ...document,
    plugins: [...(document.plugins ?? []), discovery],
    dataLayer: { ...document.dataLayer, discovery: { pluginRef: discovery.name } },
  });
}

/** How a picker starts on a configuration, and the line by which it refused it. */
export async function startOf(picker: ComparedPicker, text: string): Promise<{ outcome: Outcome; words: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-start-'));
  const [grpc, health, metrics] = await freePorts(3);
  const file = (name: string, content: string) => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };
  const endpoints = file('endpoints.yaml', 'endpoints:\n- {name: a, address: 127.0.0.1, port: "9"}\n');
  const [program, ...before] = picker.command;
  const flags = [
    `--config-file=${file('configuration.yaml', withEndpoints(text, endpoints))}`,
    ...[`--grpc-port=${grpc}`, `--grpc-health-port=${health}`, `--metrics-port=${metrics}`],
    ...['--pool-name=pool', '--secure-serving=false', '--metrics-endpoint-auth=false', '--tracing=false'],
    '--allow-experimental-plugins',
  ];
  const child = spawn(program!, [...before, ...flags], { stdio: ['ignore', 'pipe', 'pipe'] });
  let words = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (piece: string) => {
      words = (words + piece).slice(-WORDS_MAX);
    });
  }
  try {
    await servingOrEnded(child, metrics!);
    if (child.exitCode !== null) return { outcome: 'refuses', words: lastComplaint(words) };
    return { outcome: picker.warning.test(words) ? 'warns' : 'starts', words: '' };
  } finally {
    child.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  }
}

/** Waits until the picker shows its endpoint, or has ended. */
async function servingOrEnded(child: ChildProcess, metricsPort: number): Promise<void> {
  for (const until = performance.now() + START_MS_MAX; performance.now() < until; await pause(50)) {
    if (child.exitCode !== null) return;
    const page = await fetch(`http://127.0.0.1:${metricsPort}/metrics`).then(
      (answer) => answer.text(),
      () => '',
    );
    if (/^llm_d_epp_ready_endpoints(?:\{[^}]*\})? \d+$/m.test(page)) return;
  }
  throw new Error(`neither serving nor ended in ${START_MS_MAX / 1000} s`);
}

function lastComplaint(words: string): string {
  const lines = words.split('\n').filter((line) => line.trim() !== '');
  return (lines.findLast((line) => /pointsman: |error|fail/i.test(line)) ?? lines.at(-1) ?? '').slice(0, 400);
}
