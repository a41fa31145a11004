import { setTimeout as pause } from 'node:timers/promises';
import { Command, InvalidArgumentError } from 'commander';
import { type LoadedConfiguration, loadConfiguration } from '../../src/config/load.js';
import { errorMessage } from '../../src/runtime/error-message.js';
import { readPlainText, replaceFile, TEXT_BYTES_MAX } from '../../src/runtime/plain-file.js';
import { readProblem } from '../../src/runtime/read-problem.js';
import { FlagError } from '../../src/serve/flag-error.js';
import { pluginRegistry, repeated } from '../../src/serve/plugin-registry.js';
import { parsedCommand } from '../command-line/parsed-command.js';
import { askPicker } from '../command-line/picker-pages.js';
import { readSamples, sumOf } from '../doctor/exposition.js';
import type { EnvoyFinding, PickerNeeds } from '../envoy/finding.js';
import { needsOf } from '../envoy/picker-needs.js';
import { parseDestination } from '../gateway/headers.js';
import { endpointsYaml } from '../simulator/server/fleet.js';
import { EnvoyAdmin, movedSettings } from './envoy-admin.js';
import { GatewayClient } from './gateway-client.js';
import { atOnce, hangUps } from './load-probes.js';
import { bodies, failure, longAnswer, reach, silence, slowUpload, stream, trailers } from './probes.js';
import { startTestEndpoint, type TestEndpoint } from './test-endpoint.js';
import type { ProbeResult, TestRun } from './test-run.js';
import { exitCodeOf, type Verdict, verdictOf, verdictText } from './verdict.js';

/** An endpoints file that names the test endpoint alone for the time of a run. */
class BorrowedFile {
  readonly #file: string;
  readonly #before: string;

  private constructor(file: string, before: string) {
    this.#file = file;
    this.#before = before;
  }

  /** Puts the endpoint in the place of the file's endpoints. @throws {Error} when the file cannot be read or written */
  static async take(file: string, place: { readonly address: string; readonly port: number }): Promise<BorrowedFile> {
    const borrowed = new BorrowedFile(file, endpointsText(file));
    await borrowed.#write(endpointsYaml([{ name: 'preflight', ...place }]));
    return borrowed;
  }

  /** Puts the file back as it was. */
  give(): Promise<void> {
    return this.#write(this.#before);
  }

  #write(text: string): Promise<void> {
    return replaceFile(this.#file, text);
  }
}

function endpointsText(file: string): string {
  try {
    return readPlainText(file, TEXT_BYTES_MAX);
  } catch (error) {
    throw new Error(`--endpoints-file: ${file} ${readProblem(error)}`);
  }
}

interface GatewayFlags {
  readonly gateway: URL;
  readonly picker?: URL;
  readonly tokenFile?: string;
  readonly admin?: URL;
  readonly pickerCluster: readonly string[];
  readonly configFile?: string;
  readonly plugin: readonly string[];
  readonly allowExperimentalPlugins: boolean;
  readonly listen: { readonly host: string; readonly port: number };
  readonly endpointsFile?: string;
  readonly header: Readonly<Record<string, string>>;
  readonly model: string;
  readonly concurrency: number;
  readonly seconds: number;
  readonly wait: number;
  readonly json: boolean;
}

/** Time beyond the long answers after which an answer counts as missing. */
const ANSWER_MS = 60_000;
const RETRY_MS = 250;

type Probe = (run: TestRun) => Promise<ProbeResult>;

/** The probes in their order. One runs at a time, so that Envoy's counters name the exceeded limit. */
const PROBES: readonly Probe[] = [
  ...[bodies, stream, trailers, hangUps, atOnce],
  ...[silence, longAnswer, slowUpload, failure],
];

/**
 * `pointsman preflight --gateway`: sends test requests through a gateway to an endpoint of its own, and names the
 * settings that limit.
 * @returns the exit code
 */
export async function runGatewayPreflight(argv: readonly string[]): Promise<number> {
  const parsed = parsedCommand<GatewayFlags>(gatewayCommand(), argv);
  if (parsed === undefined) return 0;
  const { options: flags } = parsed;
  refuseMissingFiles(flags);
  const needs = needsOf(await configurationOf(flags));
  const { host, port } = flags.listen;
  const endpoint = await startTestEndpoint(host, port);
  process.stderr.write(`test endpoint on ${endpoint.address}:${endpoint.port}\n`);
  const borrowed =
    flags.endpointsFile === undefined ? undefined : await BorrowedFile.take(flags.endpointsFile, endpoint);
  const interrupted = () => void Promise.resolve(borrowed?.give()).finally(() => process.exit(1));
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  try {
    return await preflight(flags, needs, endpoint);
  } finally {
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
    await borrowed?.give();
    await endpoint.stop();
  }
}

/** Files that are needed later: a run of minutes ends with them otherwise. */
function refuseMissingFiles({ endpointsFile, tokenFile }: GatewayFlags): void {
  for (const [flag, file] of Object.entries({ 'endpoints-file': endpointsFile, 'token-file': tokenFile })) {
    if (file === undefined) continue;
    try {
      readPlainText(file, TEXT_BYTES_MAX);
    } catch (error) {
      throw new FlagError(`--${flag}: ${file} ${readProblem(error)}`);
    }
  }
}

async function preflight(flags: GatewayFlags, needs: PickerNeeds, endpoint: TestEndpoint): Promise<number> {
  const admin = flags.admin === undefined ? undefined : new EnvoyAdmin(flags.admin);
  const found = (await admin?.findings(needs, flags.pickerCluster)) ?? [];
  const run = testRun(flags, endpoint);
  try {
    const verdicts = await allVerdicts(run, flags.wait, admin, found);
    const report = { probes: verdicts, envoy: found };
    process.stdout.write(flags.json ? `${JSON.stringify(report, null, 2)}\n` : verdictText(verdicts, admin && found));
    return exitCodeOf(verdicts, found);
  } finally {
    run.client.close();
  }
}

/** The picker's configuration. @throws {FlagError} one line, when it cannot be loaded */
async function configurationOf({
  configFile,
  plugin,
  allowExperimentalPlugins,
}: GatewayFlags): Promise<LoadedConfiguration | undefined> {
  if (configFile === undefined) return undefined;
  const { registry } = await pluginRegistry(plugin);
  try {
    return loadConfiguration({ file: configFile }, { registry, allowExperimental: allowExperimentalPlugins });
  } catch (error) {
    throw new FlagError(`--config-file: ${errorMessage(error)}`);
  }
}

function testRun(flags: GatewayFlags, endpoint: TestEndpoint): TestRun {
  const { gateway, header, model, seconds, concurrency, picker, tokenFile } = flags;
  const address = picker && { picker, ...(tokenFile === undefined ? {} : { tokenFile }) };
  return {
    ...{ endpoint, model, seconds, concurrency },
    client: new GatewayClient(gateway, header, seconds * 1000 + ANSWER_MS),
    charged:
      address &&
      (async () => {
        const answer = await askPicker(address, '/metrics');
        return sumOf(readSamples(await answer.text()), 'pointsman_ledger_entries');
      }),
  };
}

/** Results of all probes; of the way alone when no request comes to the test endpoint. */
async function allVerdicts(
  run: TestRun,
  waitSeconds: number,
  admin: EnvoyAdmin | undefined,
  found: readonly EnvoyFinding[],
): Promise<readonly Verdict[]> {
  const way = verdictOf(await reached(run, waitSeconds), [], found);
  if (!way.ok) return [way];
  const verdicts: Verdict[] = [way];
  for (const probe of PROBES) {
    const before = await admin?.counters();
    const result = await probe(run);
    const after = await admin?.counters();
    const moved = before === undefined || after === undefined ? [] : movedSettings(before, after);
    verdicts.push(verdictOf(result, moved, found));
  }
  return verdicts;
}

/** Asks until a request comes to the test endpoint: the picker needs a moment to see it. */
async function reached(run: TestRun, waitSeconds: number): Promise<ProbeResult> {
  const deadline = performance.now() + waitSeconds * 1000;
  for (;;) {
    const result = await reach(run);
    if (result.ok || result.isFinal === true || performance.now() > deadline) return result;
    await pause(RETRY_MS);
  }
}

const HELP = `
The picker behind the gateway needs the test endpoint as its pool: name the address of --listen in an endpoints \
file of its own, or let
--endpoints-file do it for the time of the run. Do not run it against a gateway with live traffic: it fills its bounds.

Without --gateway this command checks a cluster: pointsman preflight --help.
Exit code: 0 when every probe passed and the configuration dump has no error, 1 otherwise.
`;

function gatewayCommand(): Command {
  return new Command('pointsman preflight')
    .description('Send test requests through a gateway, and name the settings that limit.')
    .requiredOption('--gateway <url>', 'the gateway', url)
    .option('--admin <url>', "Envoy's admin port: its configuration dump and counters name the setting", url)
    .option(
      '--picker-cluster <name>',
      "the picker's cluster, where Envoy asks several external processors; may be repeated",
      repeated,
      [],
    )
    .option('--config-file <file>', "the picker's configuration: --admin measures Envoy by what it reads and names")
    .option('--plugin <module>', 'as the flag of pointsman serve; may be repeated', repeated, [])
    .option('--allow-experimental-plugins', 'as the flag of pointsman serve', false)
    .option('--picker <url>', "the picker's metrics port: charges of clients that hang up are looked for", url)
    .option('--token-file <file>', 'file with the bearer token, when the metrics port asks for one')
    .option('--listen <host:port>', 'address of the test endpoint; port 0 = a free one', address, {
      host: '127.0.0.1',
      port: 0,
    })
    .option('--endpoints-file <file>', 'endpoints file that names the test endpoint alone for the time of the run')
    .option('--header <name=value>', 'header of every request, such as host=…; may be repeated', header, {})
    .option('--model <name>', 'model of the requests', 'preflight')
    .option('--concurrency <count>', 'requests at once', wholeNumber(20_000), 2000)
    .option('--seconds <count>', 'length of the long answers', wholeNumber(3_600), 20)
    .option('--wait <seconds>', 'time until the first request comes to the test endpoint', wholeNumber(3_600), 30)
    .option('--json', 'print one JSON document', false)
    .addHelpText('after', HELP);
}

function url(text: string): URL {
  const value = URL.canParse(text) ? new URL(text) : undefined;
  if (value?.protocol !== 'http:' && value?.protocol !== 'https:') {
    throw new InvalidArgumentError('expected a URL, as in http://127.0.0.1:8081');
  }
  return value;
}

function address(text: string): { host: string; port: number } {
  const place = text.endsWith(':0') ? { host: text.slice(0, -2), port: 0 } : parseDestination(text);
  if (place === undefined) throw new InvalidArgumentError('expected host:port, as in 127.0.0.1:9002');
  return place;
}

function header(text: string, earlier: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const [, name, value] = /^([^=\s]+)=(.*)$/.exec(text) ?? [];
  if (name === undefined) throw new InvalidArgumentError('expected name=value');
  return { ...earlier, [name.toLowerCase()]: value! };
}

function wholeNumber(max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < 1 || value > max) {
      throw new InvalidArgumentError(`expected a whole number from 1 to ${max}`);
    }
    return value;
  };
}
