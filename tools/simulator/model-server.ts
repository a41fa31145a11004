import { Command, InvalidArgumentError } from 'commander';
import { didYouMean } from '../../src/runtime/nearest-name.js';
import { factor, listenFailure, portNumber } from '../../src/serve/port.js';
import { parsedCommand } from '../command-line/parsed-command.js';
import { HARDWARE } from './fleet/hardware.js';
import { engineOf } from './server/engine.js';
import { startModelServer } from './server/model-server.js';

interface ModelServerFlags {
  readonly host: string;
  readonly port: number;
  readonly name?: string;
  readonly model: string;
  readonly hardware: string;
  readonly speedup: number;
}

/**
 * `pointsman model-server`: one simulated vLLM server, until SIGINT or SIGTERM.
 * @throws {Error} one line, when the port cannot be bound.
 */
export async function runModelServer(argv: readonly string[]): Promise<void> {
  const parsed = parsedCommand<ModelServerFlags>(modelServerCommand(), argv);
  if (parsed === undefined) return;
  const { hardware, speedup, ...place } = parsed.options;
  const engine = { ...engineOf(hardware), speedup };
  const server = await startModelServer({ ...place, engine }).catch((error: unknown) => {
    throw new Error(listenFailure(error, place.port));
  });
  console.log(`model server ${server.name} on http://${server.address}:${server.port}, model ${place.model}`);
  await new Promise<void>((resolve) => {
    process.once('SIGINT', resolve);
    process.once('SIGTERM', resolve);
  });
  await server.stop();
}

function modelServerCommand(): Command {
  return new Command('pointsman model-server')
    .description(
      'A simulated vLLM server: OpenAI chat and completions, /v1/models, /health, /metrics, a prefix cache and the ' +
        'times of a real engine.',
    )
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <port>', 'port to listen on; 0 = a free one', portNumber, 8000)
    .option('--name <name>', 'answered as the header x-inference-pod; address and port when absent')
    .option('--model <name>', 'name of the model', 'demo-model')
    .option('--hardware <name>', 'model and accelerator whose times it keeps', hardwareName, 'llama-8b-l40s')
    .option('--speedup <factor>', 'how much faster than these it computes', factor, 1);
}

function hardwareName(text: string): string {
  const names = Object.keys(HARDWARE);
  if (!names.includes(text))
    throw new InvalidArgumentError(`expected one of ${names.join(', ')}${didYouMean(text, names)}`);
  return text;
}
