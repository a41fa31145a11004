import { Command } from 'commander';
import { stringify } from 'yaml';
import { CostModel } from '../../src/adaptation/cost-model.js';
import { decodeState } from '../../src/adaptation/saved-state.js';
import { builtinPlugins } from '../../src/config/builtin-plugins.js';
import type { EffectiveProfile } from '../../src/config/effective-configuration.js';
import { type LoadedConfiguration, loadConfiguration } from '../../src/config/load.js';
import type { Coefficients } from '../../src/core/coefficients.js';
import { errorMessage } from '../../src/runtime/error-message.js';
import { readPlainText, STATE_BYTES_MAX } from '../../src/runtime/plain-file.js';
import { readProblem } from '../../src/runtime/read-problem.js';
import { isReplaced } from '../../src/scheduling/learned-profile.js';
import { FlagError } from '../../src/serve/flag-error.js';
import { parsedCommand } from '../command-line/parsed-command.js';

interface ExportFlags {
  readonly configFile?: string;
  readonly stateFile?: string;
  readonly allowExperimentalPlugins: boolean;
}

const USAGE = 'write pointsman weights export';

/** `pointsman weights export`: what was learned as a configuration that learns no more, on standard output. */
export async function runWeights(argv: readonly string[]): Promise<void> {
  const [part, ...rest] = argv;
  if (part !== 'export' && !isHelp(part)) {
    throw new FlagError(part === undefined ? USAGE : `unexpected argument ${JSON.stringify(part)}: ${USAGE}`);
  }
  const command = new Command('pointsman weights export')
    .description('Print a configuration that decides by the costs in a state file, and learns nothing more.')
    .option('--config-file <file>', 'configuration that the state belongs to; absent = the default one')
    .option('--state-file <file>', 'state file; absent = adaptation.stateFile of the configuration')
    .option('--allow-experimental-plugins', 'as the flag of pointsman serve', false)
    .allowExcessArguments(false);
  const parsed = parsedCommand<ExportFlags>(command, part === 'export' ? rest : argv);
  if (parsed !== undefined) process.stdout.write(exported(parsed.options));
}

function isHelp(argument: string | undefined): boolean {
  return argument === '--help' || argument === '-h';
}

function exported({ configFile, stateFile, allowExperimentalPlugins }: ExportFlags): string {
  const configuration = loadConfiguration(
    { file: configFile },
    { registry: builtinPlugins, allowExperimental: allowExperimentalPlugins },
  );
  const path = stateFile ?? configuration.adaptation.stateFile;
  if (path === undefined) throw new Error('--state-file is needed: the configuration names no adaptation.stateFile');
  return stringify(staticConfiguration(configuration, learnedIn(path, configuration)));
}

function learnedIn(path: string, { adaptation }: LoadedConfiguration): Coefficients {
  const text = stateText(path);
  try {
    const model = new CostModel(adaptation.model);
    const { model: state } = decodeState(text, adaptation.model);
    if (!model.restore(state, 1)) throw new Error('its numbers do not fit together');
    return model.coefficients;
  } catch (error) {
    throw new Error(`${path} cannot be used: ${errorMessage(error)}`);
  }
}

function stateText(path: string): string {
  try {
    return readPlainText(path, STATE_BYTES_MAX);
  } catch (error) {
    throw new Error(`the state file ${path} ${readProblem(error)}`);
  }
}

const SCORER = 'marginal-cost-scorer';

/**
 * The configuration with marginal cost in the place of load and cache scorers, and with learned costs as assumptions.
 */
function staticConfiguration({ effective, scheduling }: LoadedConfiguration, learned: Coefficients): object {
  const { plugins } = effective;
  const operations = scheduling.profiles.flatMap((profile) => profile.operations);
  const replaced = new Set(operations.filter(isReplaced).map(({ name }) => name));
  const profiles = effective.schedulingProfiles.map((profile) => ({
    ...profile,
    plugins: withMarginalCost(profile.plugins, replaced),
  }));
  const used = profiles.some((profile) => profile.plugins.some(({ pluginRef }) => pluginRef === SCORER));
  const known = plugins.some(({ name }) => name === SCORER);
  return {
    ...effective,
    plugins: [
      ...plugins.filter(({ name }) => !replaced.has(name)),
      ...(used && !known ? [{ type: SCORER, name: SCORER }] : []),
    ],
    schedulingProfiles: profiles,
    adaptation: { ...effective.adaptation, mode: 'off', prior: priorOf(learned), stateFile: undefined },
  };
}

function withMarginalCost(plugins: EffectiveProfile['plugins'], replaced: ReadonlySet<string>) {
  const taken = plugins.filter(({ pluginRef }) => replaced.has(pluginRef));
  if (taken.length === 0) return plugins;
  const weight = taken.reduce((sum, each) => sum + (each.weight ?? 1), 0);
  const rest = plugins.filter(({ pluginRef }) => !replaced.has(pluginRef));
  return [...rest, { pluginRef: SCORER, weight: weight > 0 ? weight : 1 }];
}

function priorOf(learned: Coefficients) {
  const milliseconds = (value: number) => `${Number(value.toPrecision(4))}ms`;
  return {
    baseLatency: milliseconds(learned.baseMs),
    prefillPerThousandTokens: milliseconds(learned.prefillMsPerKiloToken),
    perWaitingRequest: milliseconds(learned.waitingMs),
    perOutputToken: milliseconds(learned.stepMs),
    perOutputTokenAndLoad: milliseconds(learned.growthMs),
    outputTokens: Math.max(1, Math.round(learned.outputTokens)),
  };
}
