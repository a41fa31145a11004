import { didYouMean } from '../src/runtime/nearest-name.js';
import { runProgram } from '../src/serve/program-run.js';
import { COMMANDS, commandList } from './commands.js';

/** Runs the command line. Errors end with one line on standard error and exit code 1. */
export function main(argv: readonly string[]): Promise<void> {
  return runProgram(() => run(argv));
}

/** Runs the command that is named, else `serve`. Resolves to the exit code. */
async function run(argv: readonly string[]): Promise<number> {
  const [first, ...rest] = argv;
  if (first === 'help') return help(rest[0]);
  if (first === '--version' || first === '-version' || first === 'version') {
    const { packageVersion } = await import('../src/serve/package-version.js');
    process.stdout.write(`pointsman ${packageVersion()}, Node.js ${process.versions.node}\n`);
    return 0;
  }
  if (argv.length === 1 && ['--help', '-help', '-h'].includes(first!)) return help(undefined);
  if (first === undefined || first.startsWith('-')) return command('serve').run(argv);
  return command(first).run(rest);
}

function command(name: string): (typeof COMMANDS)[number] {
  const found = COMMANDS.find((each) => each.name === name);
  if (found !== undefined) return found;
  const names = COMMANDS.map((each) => each.name);
  const hint = didYouMean(name, names) || `; there are ${names.join(', ')}`;
  throw new Error(`unknown command "${name}"${hint}`);
}

/** Prints the help of a command, or all commands and the flags of the default one. */
async function help(name: string | undefined): Promise<number> {
  if (name !== undefined && !name.startsWith('-')) return command(name).run(['--help']);
  const { serveHelp } = await import('../src/serve/flags.js');
  process.stdout.write(`${commandList()}\n${serveHelp()}`);
  return 0;
}
