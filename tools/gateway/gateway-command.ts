import { Command, InvalidArgumentError, Option } from 'commander';
import { FlagError } from '../../src/serve/flag-error.js';
import { listenFailure, portNumber } from '../../src/serve/port.js';
import { parsedCommand } from '../command-line/parsed-command.js';
import { startGateway } from './gateway.js';
import { parseDestination } from './headers.js';

interface GatewayFlags {
  readonly host: string;
  readonly port: number;
  readonly picker: { host: string; port: number };
  readonly failOpen: boolean;
  readonly endpoint: string[];
}

/**
 * `pointsman gateway`: the embedded development gateway in front of a picker that runs already. Resolves after SIGINT
 * or SIGTERM.
 * @throws {Error} one line, when the port cannot be bound.
 */
export async function runGateway(argv: readonly string[]): Promise<void> {
  const parsed = parsedCommand<GatewayFlags>(gatewayCommand(), argv);
  if (parsed === undefined) return;
  const flags = parsed.options;
  if (flags.failOpen && flags.endpoint.length === 0) {
    throw new FlagError(
      '--fail-open needs the model servers to spread over: add --endpoint=<host:port>, once for each',
    );
  }
  const gateway = await startGateway({ ...flags, endpoints: flags.endpoint }).catch((error: unknown) => {
    throw new Error(listenFailure(error, flags.port));
  });
  console.log(`gateway on http://${gateway.address}:${gateway.port}, picker ${flags.picker.host}:${flags.picker.port}`);
  await new Promise<void>((resolve) => {
    process.once('SIGINT', resolve);
    process.once('SIGTERM', resolve);
  });
  await gateway.stop();
}

function gatewayCommand(): Command {
  return new Command('pointsman gateway')
    .description(
      'A small HTTP proxy that asks a picker over ext_proc, as Envoy does. It is for trying out, not for production: ' +
        'a request takes some three times the CPU time that it takes in Envoy.',
    )
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <port>', 'port to listen on', portNumber, 8081)
    .addOption(
      new Option('--picker <host:port>', 'ext_proc address of the picker (plain text)')
        .argParser(hostAndPort)
        .default({ host: '127.0.0.1', port: 9002 }, '127.0.0.1:9002'),
    )
    .option('--fail-open', 'without the picker, spread requests over the endpoints instead of answering 500', false)
    .option('--endpoint <host:port>', 'a model server for --fail-open; may be repeated', collect, []);
}

function hostAndPort(text: string): { host: string; port: number } {
  const place = parseDestination(text);
  if (place === undefined) throw new InvalidArgumentError('expected host:port, as in 127.0.0.1:9002');
  return place;
}

function collect(endpoint: string, earlier: string[]): string[] {
  hostAndPort(endpoint);
  return [...earlier, endpoint];
}
