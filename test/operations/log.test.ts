import { describe, expect, test } from 'vitest';
import type { LogOptions } from '../../dist/src/contract/observe-settings.js';
import { createLogger, logLevel, partLogger } from '../../dist/src/operations/log.js';

function capture(options: LogOptions) {
  const lines: string[] = [];
  const logger = createLogger(options, { write: (line) => lines.push(line) });
  return { lines, logger };
}

describe('log level', () => {
  test.each([
    [{ verbosity: 0 }, 'info'],
    [{ verbosity: 2 }, 'info'],
    [{ verbosity: 3 }, 'debug'],
    [{ verbosity: 4 }, 'debug'],
    [{ verbosity: 5 }, 'trace'],
    [{ verbosity: 2, zapLogLevel: 'debug' }, 'debug'],
    [{ verbosity: 5, zapLogLevel: 'Error' }, 'error'],
    [{ verbosity: 2, zapLogLevel: 'panic' }, 'fatal'],
    [{ verbosity: 2, zapLogLevel: '5' }, 'trace'],
  ] as [LogOptions, string][])('%o logs from %s on', (options, level) => {
    expect(logLevel(options)).toBe(level);
  });

  test.each(['loud', '0', '-1', '1.5'])('--zap-log-level %s is refused with the valid ones', (zapLogLevel) => {
    expect(() => logLevel({ verbosity: 2, zapLogLevel })).toThrow(/--zap-log-level: ".*" is no level: use debug, info/);
  });
});

describe('log lines', () => {
  test('log lines are JSON with level, ts in seconds, logger and msg', () => {
    const { lines, logger } = capture({ verbosity: 2 });
    partLogger(logger, 'discovery').warn({ entry: 'bad-port' }, 'entry skipped');
    logger.debug('not shown');
    expect(lines).toHaveLength(1);
    const line = JSON.parse(lines[0]!);
    expect(line).toMatchObject({ level: 'warn', logger: 'discovery', entry: 'bad-port', msg: 'entry skipped' });
    expect(line.ts).toBeGreaterThan(1e9);
    expect(line.ts).toBeLessThan(1e11);
    expect(Object.keys(line)).not.toContain('pid');
  });

  test('log lines are readable text with --zap-encoder console', () => {
    const { lines, logger } = capture({ verbosity: 2, zapEncoder: 'console' });
    partLogger(logger, 'setup').info({ port: 9002 }, 'listening');
    expect(lines[0]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z\tINFO\tsetup\tlistening\t\{"port":9002\}\n$/);
  });
});
