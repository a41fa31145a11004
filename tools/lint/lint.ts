import { existsSync } from 'node:fs';
import { Command } from 'commander';
import { ConfigurationError } from '../../src/config/error.js';
import { type Findings, findings } from '../../src/config/findings.js';
import { proxyNeeds } from '../../src/config/proxy-needs.js';
import { BUILTIN_ENGINES } from '../../src/pool/engines/builtin-engines.js';
import { counted } from '../../src/runtime/counted.js';
import { errorMessage } from '../../src/runtime/error-message.js';
import type { PluginDefinition } from '../../src/scheduling/plugin.js';
import { pluginRegistry, repeated } from '../../src/serve/plugin-registry.js';
import { parsedCommand } from '../command-line/parsed-command.js';
import { readPoolFile } from '../command-line/pool-file.js';
import { programText } from '../command-line/program-text.js';
import { routingFindings } from './routing.js';

interface LintFlags {
  readonly strict: boolean;
  readonly json: boolean;
  readonly endpoints: string | undefined;
  readonly allowExperimentalPlugins: boolean;
  readonly plugin: readonly string[];
}

/** `pointsman lint`: errors and warnings of a configuration file and the program it makes. @returns the exit code */
export async function runLint(argv: readonly string[]): Promise<number> {
  const parsed = parsedCommand<LintFlags>(lintCommand(), argv);
  if (parsed === undefined) return 0;
  const { args, options: flags } = parsed;
  const { registry } = await pluginRegistry(flags.plugin);
  const checked = findings(
    { file: args[0]! },
    { registry, allowExperimental: flags.allowExperimentalPlugins, engines: BUILTIN_ENGINES },
  );
  const found = withRouting(checked, registry, flags.endpoints);
  process.stdout.write(flags.json ? `${JSON.stringify(lintReport(found), null, 2)}\n` : lintText(found));
  return found.errors.length > 0 || (flags.strict && found.warnings.length > 0) ? 1 : 0;
}

/** Adds what is found when the configuration meets its endpoints. */
export function withRouting(
  found: Findings,
  registry: readonly PluginDefinition[],
  given: string | undefined,
): Findings {
  const { configuration } = found;
  const path = given ?? configuration?.discovery?.path;
  if (configuration === undefined || path === undefined || (given === undefined && !existsSync(path))) return found;
  try {
    const { pool, problems } = readPoolFile(path);
    const { errors, warnings } = routingFindings(configuration, registry, pool, path);
    return {
      ...found,
      errors: [...found.errors, ...errors.map((text) => new ConfigurationError(text))],
      warnings: [...found.warnings, ...problems, ...warnings],
    };
  } catch (error) {
    return { ...found, errors: [...found.errors, new ConfigurationError(errorMessage(error))] };
  }
}

const HELP = `
Further flags, with --envoy:
  --picker-cluster <name>       cluster of the picker, where several external processors are asked
With --pools:
  --pool-name <name>            name of the process's own pool, where it has one beside those of the file
  --max-pools <number>          as the flag of pointsman serve (256)
With --kubernetes: every flag of pointsman serve, see pointsman preflight --help.

Exit code: 0 without errors, 1 with errors (with --strict: or warnings).
`;

function lintCommand(): Command {
  return new Command('pointsman lint')
    .description('Check a configuration file without starting anything, and show what it makes the picker do.')
    .argument('<file>', 'EndpointPickerConfig, YAML or JSON')
    .option('--strict', 'warnings count as errors', false)
    .option('--allow-experimental-plugins', 'as the flag of pointsman serve', false)
    .option('--plugin <module>', 'as the flag of pointsman serve; may be repeated', repeated, [])
    .option(
      '--endpoints <file>',
      "try a request over these endpoints (not with --pools); the configuration's own file when absent",
    )
    .option(
      '--kubernetes',
      'check the rights and the pool in a cluster, as pointsman preflight does; <file> must be left out then ' +
        '(--config-file)',
    )
    .option('--pools <file>', 'a pools file and the configurations of its pools; <file> must be left out then')
    .option('--envoy <file>', 'settings of an Envoy configuration that limit the picker; <file> may be left out then')
    .option('--json', 'print one JSON document', false)
    .addHelpText('after', HELP);
}

/** `file:line:column: error: …`, which editors and CI systems know how to read. */
const PLACE = /^(.*?:\d+:\d+): /s;

/** Findings as lines for people, and behind them the program. */
export function lintText({ errors, warnings, notes, configuration }: Findings): string {
  const lines = [
    ...errors.map(({ message }) => marked(message, 'error')),
    ...warnings.map((warning) => marked(warning, 'warning')),
    ...notes.map((note) => marked(note, 'note')),
    summary(errors.length, warnings.length),
  ];
  if (configuration !== undefined) lines.push('', programText(configuration));
  return `${lines.join('\n')}\n`;
}

/** A message with its severity behind its place. */
export function marked(message: string, mark: string): string {
  const place = PLACE.exec(message);
  return place === null ? `${mark}: ${message}` : `${place[1]}: ${mark}: ${message.slice(place[0].length)}`;
}

/** Numbers of errors and warnings as text. */
export function summary(errors: number, warnings: number): string {
  return `${counted(errors, 'error')}, ${counted(warnings, 'warning')}`;
}

/** Findings as data; the effective configuration is missing when there are errors. */
export function lintReport({ errors, warnings, notes, configuration }: Findings) {
  return {
    errors: errors.map(({ message, field, place }) => ({ message, field, line: place?.line, column: place?.column })),
    warnings,
    notes,
    profiles: configuration?.scheduling.profiles,
    needs: configuration && proxyNeeds(configuration),
    effective: configuration?.effective,
  };
}
