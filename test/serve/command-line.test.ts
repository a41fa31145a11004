import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parseServeFlags } from '../../dist/src/serve/flags.js';
import { COMMANDS } from '../../dist/tools/commands.js';
import { pointsman } from './program.ts';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));

const EXAMPLE = fileURLToPath(new URL('../../examples/prefix-and-load.yaml', import.meta.url));
const ENDPOINTS = fileURLToPath(new URL('../../examples/endpoints.yaml', import.meta.url));

describe('the help', () => {
  it('the help of the program begins with every command and goes on with the flags of the default one', () => {
    const { status, stdout } = pointsman('--help');
    expect(status).toBe(0);
    const [list, flags] = stdout.split('Usage: pointsman serve');
    for (const { name } of COMMANDS) expect(list).toMatch(new RegExp(`^ {2}pointsman \\[?${name}`, 'm'));
    expect(flags).toContain('--grpc-port <port>');
    expect(pointsman('help').stdout).toBe(stdout);
  });

  it.each(COMMANDS.map(({ name }) => [name]))('the help of %s is printed with exit code 0 and no error', (name) => {
    const { status, stdout, stderr } = pointsman(name, '--help');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(new RegExp(`^Usage: pointsman ${name}`));
    expect(pointsman('help', name).stdout).toBe(stdout);
  });

  it('the help shows no default of a flag without effect, and says why it has none', () => {
    const [, compatible] = pointsman('serve', '--help').stdout.split('without effect:\n');
    expect(compatible).toMatch(/--enable-pprof\[=false\] +The metrics port serves no profiles of Go\.\n/);
    expect(compatible).toMatch(/--zap-devel\[=false\] +The log has one form [a-z\s]+\.\n/);
  });
});

describe('the version', () => {
  it.each([['--version'], ['version']])('the version is that of the package, for %s', (argument) => {
    expect(pointsman(argument)).toEqual({
      status: 0,
      stdout: `pointsman ${version}, Node.js ${process.versions.node}\n`,
      stderr: '',
    });
  });
});

describe('a command line that cannot be used', () => {
  it.each([
    [['lnit'], 'unknown command "lnit"; did you mean "lint"?'],
    [['--tls'], 'unknown flag --tls; did you mean --tls-min-version or --tls-cipher-suites?'],
    [['--tlsmin=1'], 'unknown flag --tlsmin; did you mean --tls-min-version?'],
    [['serve', '--gprc-port=1'], 'unknown flag --gprc-port; did you mean --grpc-port?'],
    [['lint', '--strct', 'x'], 'unknown flag --strct; did you mean --strict?'],
    [['lint', '--colour=red', 'x'], 'unknown flag --colour; see pointsman lint --help'],
    [['lint'], 'missing <file>; see pointsman lint --help'],
    [['lint', 'a', 'b'], 'unexpected argument "b"; see pointsman lint --help'],
    [['explain', 'x'], '--request: must be given: --request=<file>'],
    [['gateway', '--picker'], '--picker: needs a value: --picker=<host:port>'],
    [['gateway', '--port=abc'], '--port: expected a number from 0 to 65535, got "abc"'],
    [['gateway', '--fail-open'], '--fail-open needs the model servers to spread over: add --endpoint=<host:port>'],
    [['demo', '--overload', '--shift'], '--overload and --shift exclude each other: give only one of them'],
    [['demo', '--shift', '--shared-prompt'], '--shift and --shared-prompt exclude each other: give only one of them'],
    [['doctor', '--token-file=/no/such'], '--token-file: /no/such does not exist: create it or correct the path'],
    [['demo', '--servers=0'], '--servers: expected a number from 1 to 10000, got "0"'],
    [['weights'], 'write pointsman weights export'],
    [['weights', 'exprt'], 'unexpected argument "exprt": write pointsman weights export'],
    [['preflight'], 'preflight reads a cluster or asks a gateway: give --pool-name, --endpoint-selector or --gateway'],
    [['preflight', '--gateway=x'], '--gateway: expected a URL, as in http://127.0.0.1:8081, got "x"'],
    [['preflight', '--gateway=http://x', '--pool-name=y'], 'unknown flag --pool-name; see pointsman preflight --help'],
    [
      ['explain', 'no.yaml', '--request', 'x'],
      'no.yaml: the configuration does not exist: create it or correct the path',
    ],
    [['explain', EXAMPLE, '--request', 'no.json'], '--request: no.json: does not exist: create it or correct the path'],
    [
      ['serve', `--config-file=${ENDPOINTS}`],
      `${ENDPOINTS}:3:1: endpoints: this is a list of endpoints, no configuration`,
    ],
    [['schema', 'x'], 'unexpected argument "x"; see pointsman schema --help'],
  ])('%j ends with one line', (argv, message) => {
    const { status, stdout, stderr } = pointsman(...argv);
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/^pointsman: [^\n]+\n$/);
    expect(stderr).toContain(`pointsman: ${message}`);
  });
});

describe('a flag without effect', () => {
  const warnings = (...argv: string[]) => {
    const flags = parseServeFlags(argv, {});
    return 'help' in flags ? [] : flags.warnings;
  };

  it.each([
    ['--enable-pprof=true', '--enable-pprof=true has no effect: the metrics port serves no profiles of Go'],
    ['--health-checking=false', '--health-checking=false has no effect: gRPC health is always served'],
    ['--refresh-prometheus-metrics-interval=1s', '--refresh-prometheus-metrics-interval=1s has no effect'],
    ['--zap-devel', '--zap-devel=true has no effect'],
    ['--zap-stacktrace-level=info', '--zap-stacktrace-level=info has no effect'],
    ['--zap-time-encoding=iso8601', '--zap-time-encoding=iso8601 has no effect'],
  ])('%s is warned of', (argument, warning) => {
    expect(warnings(argument)).toEqual([expect.stringContaining(warning)]);
  });

  it('--tracing is warned of where no variable says where traces go', () => {
    expect(warnings('--tracing')).toEqual([expect.stringContaining('--tracing: no traces are written')]);
    expect(warnings()).toEqual([]);
  });

  it('a flag without effect is not warned of where it asks for what the program does', () => {
    expect(warnings('--tracing=false', '--enable-pprof=false', '--health-checking', '--zap-devel=false')).toEqual([]);
  });
});
