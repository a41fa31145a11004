import { Command } from 'commander';
import { type Findings, findings } from '../../src/config/findings.js';
import { readBoundedFile } from '../../src/pool/discovery/file-watch.js';
import { BUILTIN_ENGINES } from '../../src/pool/engines/builtin-engines.js';
import { counted } from '../../src/runtime/counted.js';
import { errorMessage } from '../../src/runtime/error-message.js';
import { pluginRegistry, repeated } from '../../src/serve/plugin-registry.js';
import { parsedCommand } from '../command-line/parsed-command.js';
import { type EnvoyConfiguration, readEnvoyText } from '../envoy/configuration.js';
import type { EnvoyFinding, PickerNeeds, Severity } from '../envoy/finding.js';
import { envoyFindings } from '../envoy/findings.js';
import { needsOf } from '../envoy/picker-needs.js';
import { pathText } from '../envoy/setting.js';
import { lintReport, lintText } from './lint.js';

interface EnvoyLintFlags {
  readonly envoy: string;
  readonly pickerCluster: readonly string[];
  readonly strict: boolean;
  readonly json: boolean;
  readonly allowExperimentalPlugins: boolean;
  readonly plugin: readonly string[];
}

/**
 * `pointsman lint --envoy`: settings of an Envoy configuration that limit the picker. A configuration of the picker
 * beside it says what the picker reads, and how long requests may wait. @returns the exit code
 */
export async function runEnvoyLint(argv: readonly string[]): Promise<number> {
  const parsed = parsedCommand<EnvoyLintFlags>(envoyLintCommand(), argv);
  if (parsed === undefined) return 0;
  const { args, options: flags } = parsed;
  const own = args[0] === undefined ? undefined : await ownFindings(args[0], flags);
  const { configuration, found } = await readEnvoy(flags, needsOf(own?.configuration));
  const text = (own === undefined ? '' : `${lintText(own)}\n`) + envoyText(flags.envoy, configuration, found);
  const report = { ...(own && lintReport(own)), envoy: found.map((one) => envoyReport(configuration, one)) };
  process.stdout.write(flags.json ? `${JSON.stringify(report, null, 2)}\n` : text);
  const errors = (own?.errors.length ?? 0) + count(found, 'error');
  const warnings = (own?.warnings.length ?? 0) + count(found, 'warning');
  return errors > 0 || (flags.strict && warnings > 0) ? 1 : 0;
}

function envoyLintCommand(): Command {
  return new Command('pointsman lint')
    .description('Name the settings of an Envoy configuration that limit a picker.')
    .argument('[file]', "EndpointPickerConfig: its needs and waits take the place of llm-d's defaults")
    .requiredOption('--envoy <file>', 'Envoy configuration, YAML or JSON, or a saved /config_dump of its admin port')
    .option(
      '--picker-cluster <name>',
      'cluster of the picker, where several external processors are asked; may be repeated',
      repeated,
      [],
    )
    .option('--strict', 'warnings count as errors', false)
    .option('--allow-experimental-plugins', 'as the flag of pointsman serve', false)
    .option('--plugin <module>', 'as the flag of pointsman serve; may be repeated', repeated, [])
    .option('--json', 'print one JSON document', false)
    .addHelpText('after', '\nExit code: 0 without errors, 1 with errors (with --strict: or warnings).\n');
}

async function ownFindings(file: string, flags: EnvoyLintFlags): Promise<Findings> {
  const { registry } = await pluginRegistry(flags.plugin);
  const options = { registry, allowExperimental: flags.allowExperimentalPlugins, engines: BUILTIN_ENGINES };
  return findings({ file }, options);
}

async function readEnvoy({ envoy: file, pickerCluster }: EnvoyLintFlags, needs: PickerNeeds) {
  const text = await readBoundedFile(file).catch((error: unknown) => {
    throw new Error(`--envoy: ${errorMessage(error)}`);
  });
  try {
    const configuration = readEnvoyText(text);
    return { configuration, found: envoyFindings(configuration, needs, pickerCluster) };
  } catch (error) {
    throw new Error(`--envoy: ${file}: ${errorMessage(error)}`);
  }
}

/** Findings as lines that editors and CI systems know how to read. */
function envoyText(file: string, configuration: EnvoyConfiguration, found: readonly EnvoyFinding[]): string {
  const lines = found.map((one) => {
    const { line, column } = configuration.placeOf(one.path) ?? { line: 1, column: 1 };
    return `${file}:${line}:${column}: ${one.severity}: ${findingText(one)}`;
  });
  const counts = (['error', 'warning', 'note'] as const).map((severity) => counted(count(found, severity), severity));
  return `${[...lines, `${file}: ${counts.join(', ')}`].join('\n')}\n`;
}

/** A finding as one line: setting, its effect, remedy, path. */
function findingText({ setting, limits, remedy, path }: EnvoyFinding): string {
  return `${setting}: ${limits}; ${remedy} (${pathText(path)})`;
}

function envoyReport(configuration: EnvoyConfiguration, { path, ...rest }: EnvoyFinding) {
  return { ...rest, path: pathText(path), ...configuration.placeOf(path) };
}

function count(found: readonly EnvoyFinding[], severity: Severity): number {
  return found.filter((one) => one.severity === severity).length;
}
