import { existsSync } from 'node:fs';
import { Command } from 'commander';
import type { ConfigurationError } from '../../src/config/error.js';
import { type Findings, type FindingsOptions, findingsOf } from '../../src/config/findings.js';
import { missingFiles } from '../../src/config/missing-files.js';
import { type PoolEntry, type PoolsFile, poolsFileFindings } from '../../src/config/pools-file.js';
import { readBoundedFile } from '../../src/pool/discovery/file-watch.js';
import { BUILTIN_ENGINES } from '../../src/pool/engines/builtin-engines.js';
import { counted } from '../../src/runtime/counted.js';
import { errorMessage } from '../../src/runtime/error-message.js';
import { parseInteger } from '../../src/serve/flag-values.js';
import { pluginRegistry, repeated } from '../../src/serve/plugin-registry.js';
import {
  type EntryFiles,
  entryDocument,
  entryFiles,
  entryLoad,
  entrySource,
  sourceError,
} from '../../src/serve/pool-entry.js';
import { parsedCommand } from '../command-line/parsed-command.js';
import { programText } from '../command-line/program-text.js';
import { lintReport, marked, summary, withRouting } from './lint.js';

interface PoolsLintFlags {
  readonly pools: string;
  readonly poolName: string | undefined;
  readonly maxPools: number;
  readonly strict: boolean;
  readonly json: boolean;
  readonly allowExperimentalPlugins: boolean;
  readonly plugin: readonly string[];
}

/** Findings of one pool. */
interface PoolFindings extends Findings {
  readonly name: string;
}

/**
 * `pointsman lint --pools`: errors and warnings of a pools file and of the configuration of each pool.
 * @returns the exit code
 */
export async function runPoolsLint(argv: readonly string[]): Promise<number> {
  const parsed = parsedCommand<PoolsLintFlags>(poolsLintCommand(), argv);
  if (parsed === undefined) return 0;
  const { options: flags } = parsed;
  const { registry } = await pluginRegistry(flags.plugin);
  const options = { registry, allowExperimental: flags.allowExperimentalPlugins, engines: BUILTIN_ENGINES };
  const text = await readBoundedFile(flags.pools).catch((error: unknown) => {
    throw new Error(`--pools: ${errorMessage(error)}`);
  });
  const { errors, read } = poolsFileFindings(text, flags.pools, { own: flags.poolName, max: flags.maxPools });
  const pools = read?.pools.map((_, index) => entryFindings(read, index, flags.pools, options)) ?? [];
  const found = merged(errors, pools);
  const report = { ...lintReport(found), pools: pools.map(poolReport) };
  process.stdout.write(flags.json ? `${JSON.stringify(report, null, 2)}\n` : poolsText(found, pools));
  return found.errors.length > 0 || (flags.strict && found.warnings.length > 0) ? 1 : 0;
}

function poolsLintCommand(): Command {
  const max = parseInteger(1, 1024);
  return new Command('pointsman lint')
    .description('Check a pools file and the configuration of each of its pools, without starting anything.')
    .requiredOption('--pools <file>', 'pools file, YAML or JSON')
    .option('--pool-name <name>', "name of the process's own pool, where it has one beside those of the file")
    .option('--max-pools <number>', 'as the flag of pointsman serve', (text) => max(text, 'max-pools', 256), 256)
    .option('--strict', 'warnings count as errors', false)
    .option('--allow-experimental-plugins', 'as the flag of pointsman serve', false)
    .option('--plugin <module>', 'as the flag of pointsman serve; may be repeated', repeated, [])
    .option('--json', 'print one JSON document', false)
    .allowExcessArguments(false)
    .addHelpText('after', '\nExit code: 0 without errors, 1 with errors (with --strict: or warnings).\n');
}

/** Findings of an entry: its files and labels, its configuration, its source of endpoints. */
function entryFindings(read: PoolsFile, index: number, file: string, options: FindingsOptions): PoolFindings {
  const entry = read.pools[index]!;
  const { name } = entry;
  const files = entryFiles(entry, file);
  const missing = missingFiles(namedFiles(entry, index, files), read.document);
  const place = `${file}: pools[${index}]`;
  const configuration = configurationFindings(entry, files, place, options);
  const source = configuration.configuration && sourceError(entry, configuration.configuration, place);
  const errors = [...missing.errors, ...labelErrors(read, index), ...configuration.errors];
  return {
    name,
    errors: source === undefined ? errors : [...errors, source],
    warnings: [...missing.warnings, ...configuration.warnings],
    notes: configuration.notes,
    configuration: configuration.configuration,
  };
}

function namedFiles(
  { configFile, candidateFile, endpointsFile }: PoolEntry,
  index: number,
  { config, candidate, endpoints }: EntryFiles,
) {
  return [
    ...(config === undefined ? [] : [{ path: ['pools', index, 'configFile'], given: configFile!, file: config }]),
    ...(candidate === undefined
      ? []
      : [{ path: ['pools', index, 'candidateFile'], given: candidateFile!, file: candidate }]),
    ...(endpoints === undefined
      ? []
      : [{ path: ['pools', index, 'endpointsFile'], given: endpointsFile!, file: endpoints }]),
  ];
}

/** Findings of the configuration with its endpoints. None of a file that is missing. */
function configurationFindings(entry: PoolEntry, files: EntryFiles, place: string, options: FindingsOptions): Findings {
  if (files.config !== undefined && !existsSync(files.config)) {
    return { errors: [], warnings: [], notes: [], configuration: undefined };
  }
  const found = findingsOf(() => entryDocument(entry, files, place), entryLoad(options, files));
  const endpoints = files.endpoints !== undefined && existsSync(files.endpoints) ? files.endpoints : undefined;
  return withRouting(found, options.registry, endpoints);
}

function labelErrors({ pools, document }: PoolsFile, index: number): readonly ConfigurationError[] {
  try {
    entrySource(pools[index]!);
    return [];
  } catch (error) {
    return [document.error(['pools', index, 'selector', 'labels'], errorMessage(error))];
  }
}

/** All findings, those of a file that several pools name once. */
function merged(errors: readonly ConfigurationError[], pools: readonly PoolFindings[]): Findings {
  const all = [...errors, ...pools.flatMap((pool) => pool.errors)];
  return {
    errors: [...new Map(all.map((error) => [error.message, error])).values()],
    warnings: [...new Set(pools.flatMap(({ warnings }) => warnings))],
    notes: [...new Set(pools.flatMap(({ notes }) => notes))],
    configuration: undefined,
  };
}

function poolsText({ errors, warnings, notes }: Findings, pools: readonly PoolFindings[]): string {
  const programs = pools.flatMap(({ name, configuration }) =>
    configuration === undefined ? [] : ['', `pool ${name}`, programText(configuration, 'from Kubernetes')],
  );
  const lines = [
    ...errors.map(({ message }) => marked(message, 'error')),
    ...warnings.map((warning) => marked(warning, 'warning')),
    ...notes.map((note) => marked(note, 'note')),
    `${counted(pools.length, 'pool')}: ${summary(errors.length, warnings.length)}`,
    ...programs,
  ];
  return `${lines.join('\n')}\n`;
}

function poolReport({ name, ...found }: PoolFindings) {
  const { profiles, needs, effective } = lintReport(found);
  return { name, profiles, needs, effective };
}
