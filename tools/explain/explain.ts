import { readFileSync } from 'node:fs';
import { Command, InvalidArgumentError } from 'commander';
import { loadConfiguration } from '../../src/config/load.js';
import type { PoolState } from '../../src/contract/endpoint.js';
import { readPlainText, TEXT_BYTES_MAX } from '../../src/runtime/plain-file.js';
import { readProblem } from '../../src/runtime/read-problem.js';
import { pluginRegistry, repeated } from '../../src/serve/plugin-registry.js';
import { parsedCommand } from '../command-line/parsed-command.js';
import { readPoolFile } from '../command-line/pool-file.js';
import { explain } from './explanation.js';
import { explanationText } from './explanation-text.js';
import { readSignals } from './signals-file.js';

interface ExplainFlags {
  readonly request: string;
  readonly endpoints: string | undefined;
  readonly signals: string | undefined;
  readonly header: ReadonlyMap<string, string>;
  readonly subset: readonly string[] | undefined;
  readonly seed: bigint;
  readonly json: boolean;
  readonly allowExperimentalPlugins: boolean;
  readonly plugin: readonly string[];
}

/** `pointsman explain`: the pick for one request, and its reasons. @returns the exit code */
export async function runExplain(argv: readonly string[]): Promise<number> {
  const parsed = parsedCommand<ExplainFlags>(explainCommand(), argv);
  if (parsed === undefined) return 0;
  const { args, options: flags } = parsed;
  const { registry } = await pluginRegistry(flags.plugin);
  const configuration = loadConfiguration(
    { file: args[0]! },
    { registry, allowExperimental: flags.allowExperimentalPlugins },
  );
  const endpointsPath = flags.endpoints ?? configuration.discovery?.path;
  if (endpointsPath === undefined) throw new Error('--endpoints: name the file with the endpoints');
  const pool = givenPool(endpointsPath);
  const signals = flags.signals === undefined ? '' : readText('--signals', flags.signals, TEXT_BYTES_MAX);
  const body = Buffer.from(readText('--request', flags.request, BODY_BYTES_MAX));
  const explanation = explain({
    configuration,
    registry,
    pool,
    states: readSignals(signals, flags.signals ?? '', pool.endpoints),
    headers: withPath(flags.header, body),
    body,
    subset: flags.subset,
    seed: flags.seed,
  });
  process.stdout.write(flags.json ? `${JSON.stringify(explanation, null, 2)}\n` : explanationText(explanation));
  return explanation.kind === 'rejected' ? 1 : 0;
}

function explainCommand(): Command {
  return new Command('pointsman explain')
    .description('Show scores, filters and pick for one request, without a pool: by the same core as the picker.')
    .argument('<file>', 'EndpointPickerConfig, YAML or JSON')
    .requiredOption('--request <file>', 'body of the request, - for standard input')
    .option('--endpoints <file>', "endpoints, objectives and rewrites; the configuration's own file when absent")
    .option('--signals <file>', 'state of endpoints by name; unknown when absent')
    .option('--header <name=value>', 'a request header; may be repeated', header, new Map())
    .option('--subset <addresses>', "the proxy's subset hint: ip:port or ip, with commas", list)
    .option('--seed <number>', 'seed of random choices', seed, 0n)
    .option('--allow-experimental-plugins', 'as the flag of pointsman serve', false)
    .option('--plugin <module>', 'as the flag of pointsman serve; may be repeated', repeated, [])
    .option('--json', 'print one JSON document', false)
    .addHelpText('after', `${SIGNALS_HELP}\nExit code: 0 when the request is read, 1 when it is rejected.\n`);
}

const SIGNALS_HELP = `
A signals file, every field of it optional:
  server-0: {waitingRequests: 3, runningRequests: 8, kvUsage: 0.5, cachedTokens: 4096}
  server-1: {loraAdapters: {running: [a], waiting: [], max: 4}, inFlightRequests: 2, inFlightTokens: 900}
  server-2: {attributes: {GPUUtilization: 0.4}}

Without --header :path=… the path is guessed from the body: messages, input or prompt.
`;

/** Bytes of a body, as a picker takes at most. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;

function readText(flag: string, path: string, bytesMax: number): string {
  try {
    return path === '-' ? readFileSync(0, 'utf8') : readPlainText(path, bytesMax);
  } catch (error) {
    throw new Error(`${flag}: ${path}: ${readProblem(error)}`);
  }
}

function givenPool(path: string): PoolState {
  const { pool, problems } = readPoolFile(path);
  if (problems[0] !== undefined) throw new Error(problems[0]);
  return pool;
}

/** First member of a body that tells its API, and the path of the API. */
const PATHS = [
  ['messages', '/v1/chat/completions'],
  ['input', '/v1/responses'],
  ['prompt', '/v1/completions'],
] as const;

function withPath(headers: ReadonlyMap<string, string>, body: Buffer): ReadonlyMap<string, string> {
  if (headers.has(':path')) return headers;
  const path = PATHS.find(([member]) => hasMember(body, member))?.[1];
  return path === undefined ? headers : new Map([...headers, [':path', path]]);
}

function hasMember(body: Buffer, member: string): boolean {
  try {
    const value: unknown = JSON.parse(body.toString());
    return typeof value === 'object' && value !== null && member in value;
  } catch {
    // The scanner says where the body is no JSON.
    return false;
  }
}

function header(text: string, earlier: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const [, name, value] = /^(:?[^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError('expected name=value');
  return new Map([...earlier, [name.toLowerCase(), value]]);
}

function list(text: string): readonly string[] {
  return text.split(',').map((part) => part.trim());
}

function seed(text: string): bigint {
  if (!/^\d{1,19}$/.test(text)) throw new InvalidArgumentError('expected a whole number');
  return BigInt(text);
}
