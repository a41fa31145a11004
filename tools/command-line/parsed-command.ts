import { type Command, CommanderError, type Option } from 'commander';
import { badValue, FlagError, unexpectedArgument, unknownFlag } from '../../src/serve/flag-error.js';

const OTHERS = '\nAll commands: pointsman --help\n';

/** Arguments and options of a command that is to run. */
export interface ParsedCommand<Options> {
  readonly args: readonly string[];
  readonly options: Options;
}

/**
 * Parses the command line of a command. Returns undefined when it asked for the help, which is printed then.
 * @throws FlagError in one line, with the option and the remedy.
 */
export function parsedCommand<Options extends object>(
  command: Command,
  argv: readonly string[],
): ParsedCommand<Options> | undefined {
  prepare(command);
  try {
    command.parse([...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed' || error.code === 'commander.help') return undefined;
    throw explained(error, command);
  }
  return { args: command.args, options: command.opts<Options>() };
}

function prepare(command: Command): void {
  command
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
    .configureHelp({ optionDescription: described })
    .helpOption('-h, --help', 'show this help')
    .addHelpText('after', OTHERS);
}

/** Description of an option with its default, where there is one that is worth showing. */
function described({ description, defaultValue, defaultValueDescription }: Option): string {
  const shown = defaultValueDescription ?? (isPlain(defaultValue) ? String(defaultValue) : undefined);
  return shown === undefined ? description : `${description} (${shown})`;
}

function isPlain(value: unknown): boolean {
  return ['string', 'number', 'bigint'].includes(typeof value);
}

/** The error in the words that `serve` has for its flags. */
function explained({ code, message }: CommanderError, command: Command): FlagError {
  const see = `${command.name()} --help`;
  const text = message.replace(/^error: /, '').replaceAll(/\s*\n\s*/g, ' ');
  const [, quoted = ''] = /'([^']+)'/.exec(text) ?? [];
  const flag = /--([a-z-]+)/.exec(quoted)?.[1] ?? quoted;
  const [, placeholder] = / (<.*>)/.exec(quoted) ?? [];
  switch (code) {
    case 'commander.unknownOption': {
      const names = command.options.map(({ long }) => long?.slice(2) ?? '');
      return unknownFlag(quoted.replace(/^--?/, '').replace(/=.*$/s, ''), names, see);
    }
    case 'commander.missingArgument':
      return new FlagError(`missing <${quoted}>; see ${see}`);
    case 'commander.excessArguments':
      return unexpectedArgument(unexpected(command), `; see ${see}`);
    case 'commander.missingMandatoryOptionValue':
      return new FlagError(`--${flag}: must be given: ${quoted.replace(' ', '=')}`);
    case 'commander.optionMissingArgument':
      return new FlagError(`--${flag}: needs a value: --${flag}=${placeholder}`);
    case 'commander.invalidArgument': {
      const [, given = '', why = text] = /argument '(.*)' is invalid\. (.*)$/.exec(text) ?? [];
      return badValue(flag, inOurWords(why), given);
    }
    default:
      return new FlagError(text);
  }
}

/** The error of an option's value, in the words of `parseChoice`. */
function inOurWords(why: string): string {
  const [, choices] = /^Allowed choices are (.*)\.$/.exec(why) ?? [];
  return choices === undefined ? why : `expected one of ${choices}`;
}

function unexpected({ args, registeredArguments }: Command): string {
  return args[registeredArguments.length] ?? '';
}
