import { availableParallelism, cpus } from 'node:os';
import { performance } from 'node:perf_hooks';
import { Command, InvalidArgumentError } from 'commander';
import { type LoadedConfiguration, loadConfiguration } from '../../src/config/load.js';
import { type PluginRegistry, pluginRegistry, repeated } from '../../src/serve/plugin-registry.js';
import { parsedCommand } from '../command-line/parsed-command.js';
import { benchText, compareText, listText } from './bench-text.js';
import { type BenchmarkOptions, compareRows, listRows, type Measured, measureRows } from './benchmark.js';

interface BenchFlags {
  readonly plugin: readonly string[];
  readonly endpoints: number;
  readonly blocks: number;
  readonly compare: string | undefined;
  readonly seed: bigint;
  readonly time: number;
  readonly list: boolean;
  readonly json: boolean;
  readonly allowExperimentalPlugins: boolean;
}

/** `pointsman bench`: the time of a decision and of its parts, on this machine. @returns the exit code */
export async function runBench(argv: readonly string[]): Promise<number> {
  const parsed = parsedCommand<BenchFlags>(benchCommand(), argv);
  if (parsed === undefined) return 0;
  const { args, options } = parsed;
  process.stdout.write(benchOutput(args[0], options, await pluginRegistry(options.plugin)));
  return 0;
}

function benchCommand(): Command {
  return new Command('pointsman bench')
    .description('Time a decision and each filter, scorer and picker of a configuration, on this machine.')
    .argument('[config]', 'EndpointPickerConfig, YAML or JSON; the default configuration when absent')
    .option('--plugin <module>', 'as the flag of pointsman serve; may be repeated', repeated, [])
    .option('--endpoints <number>', 'endpoints of the pool', within(1, 4096), 64)
    .option('--blocks <number>', 'blocks of each prompt', within(0, 65_535), 64)
    .option('--compare <config>', 'time the parts that this configuration shares, in the same rounds')
    .option('--seed <number>', 'seed of the pool and the prompts', seed, 1n)
    .option('--time <ms>', 'time for each row', within(1, 600_000), 500)
    .option('--list', 'print the rows without measuring', false)
    .option('--json', 'print one JSON document', false)
    .option('--allow-experimental-plugins', 'as the flag of pointsman serve', false)
    .addHelpText('after', '\ndocs/benchmarks.md says what each row means, and what it does not.\n');
}

function benchOutput(file: string | undefined, flags: BenchFlags, { registry }: PluginRegistry): string {
  const load = (path: string | undefined): LoadedConfiguration =>
    loadConfiguration({ file: path }, { registry, allowExperimental: flags.allowExperimentalPlugins });
  const configuration = load(file);
  const { endpoints, blocks } = flags;
  const options: BenchmarkOptions = {
    ...{ registry, endpoints, blocks, seed: flags.seed, rowTimeMs: flags.time },
    now: () => performance.now(),
  };
  const conditions = { file: file ?? 'default configuration', other: flags.compare, endpoints, blocks };
  const json = (measured: Measured<unknown>) =>
    `${JSON.stringify({ ...conditions, machine: machine(), unit: 'ns', ...measured }, null, 2)}\n`;
  if (flags.list) {
    const rows = listRows(configuration, options).map(({ name, type, kind }) => ({ name, type, kind }));
    return flags.json ? `${JSON.stringify(rows, null, 2)}\n` : listText(rows);
  }
  if (flags.compare === undefined) {
    const measured = measureRows(configuration, options);
    return flags.json ? json(measured) : benchText(measured, conditions);
  }
  const compared = compareRows(configuration, load(flags.compare), options);
  return flags.json ? json(compared) : compareText(compared, conditions);
}

function machine() {
  return {
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    node: process.version,
    v8: process.versions.v8,
  };
}

function within(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`expected a whole number from ${min} to ${max}`);
    }
    return value;
  };
}

function seed(text: string): bigint {
  if (!/^\d{1,19}$/.test(text)) throw new InvalidArgumentError('expected a whole number');
  return BigInt(text);
}
