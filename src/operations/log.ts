import { type DestinationStream, destination, type Level, type Logger, pino } from 'pino';
import type { LogOptions } from '../contract/observe-settings.js';
import { LineBudget } from './line-budget.js';

export type { Logger } from 'pino';

const zapLevels = new Map<string, Level>([
  ['debug', 'debug'],
  ['info', 'info'],
  ['warn', 'warn'],
  ['error', 'error'],
  ['panic', 'fatal'],
]);

function levelOfVerbosity(verbosity: number): Level {
  if (verbosity >= 5) return 'trace';
  return verbosity >= 3 ? 'debug' : 'info';
}

/** @throws when `--zap-log-level` is neither a level nor a number above 0. */
export function logLevel(options: LogOptions): Level {
  const { zapLogLevel } = options;
  if (zapLogLevel === undefined || zapLogLevel === '') return levelOfVerbosity(options.verbosity);
  const named = zapLevels.get(zapLogLevel.toLowerCase());
  if (named) return named;
  const number = Number(zapLogLevel);
  if (Number.isInteger(number) && number > 0) return levelOfVerbosity(number);
  throw new Error(
    `--zap-log-level: "${zapLogLevel}" is no level: use debug, info, error, panic or a whole number above 0`,
  );
}

/** Number of pino's level `info`: lines below it help to find a fault and have no bound. */
const INFO = 30;

/**
 * The logger of this thread. Each line is written to standard error before the call returns: lines are few (none per
 * request by default), and the last ones before a crash matter most. Lines of one kind are bounded: `lines` is the
 * number that a line stands for.
 */
export function createLogger(
  options: LogOptions,
  output: DestinationStream = destination({ fd: 2, sync: true }),
): Logger {
  const budget = new LineBudget();
  const stream = options.zapEncoder === 'console' ? consoleEncoder(output) : output;
  return pino(
    {
      level: logLevel(options),
      base: null,
      messageKey: 'msg',
      timestamp: () => `,"ts":${Date.now() / 1000}`,
      formatters: { level: (label) => ({ level: label }) },
      hooks: {
        logMethod(given, method, level) {
          const [fields, message] = typeof given[0] === 'string' ? [{}, given[0]] : [given[0], given[1]];
          if (level < INFO || typeof message !== 'string') {
            method.apply(this, given);
            return;
          }
          budget.take(level, message, (lines) =>
            lines === 1 ? method.apply(this, given) : method.apply(this, [{ ...(fields as object), lines }, message]),
          );
        },
      },
    },
    stream,
  );
}

/** A logger whose lines name their part of the program. */
export function partLogger(logger: Logger, part: string): Logger {
  return logger.child({ logger: part });
}

/** Turns JSON lines into `time LEVEL part message {fields}`, separated by tabs. */
function consoleEncoder(output: DestinationStream): DestinationStream {
  return {
    write(line: string): void {
      const { level, ts, logger, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
      const parts = [new Date(Number(ts) * 1000).toISOString(), String(level).toUpperCase()];
      if (logger !== undefined) parts.push(String(logger));
      parts.push(String(msg ?? ''));
      if (Object.keys(fields).length > 0) parts.push(JSON.stringify(fields));
      output.write(`${parts.join('\t')}\n`);
    },
  };
}
