import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FileEndpoint } from '../picker/serving.ts';

export const root = fileURLToPath(new URL('../../', import.meta.url));

/** Label that tells hardware classes apart. */
export const VARIANTS = 'llm-d.ai/accelerator-variant';

/** The pool of the fixtures. A kept prefix index names endpoints by these addresses: they never change. */
export const ENDPOINTS: readonly FileEndpoint[] = [1, 2, 3].map((i) => ({
  name: `server-${i}`,
  address: `127.0.71.${i}`,
  port: 28_471,
}));

/** Prompts of many blocks with nothing in common. */
export const PROMPTS: readonly string[] = Array.from(
  { length: 6 },
  (_, i) => `${i} ${`sentence ${i} of it. `.repeat(120)}`,
);

/** Requests and tokens that the tenants have used when the fixtures were written. */
export const USED: Readonly<
  Record<string, { readonly requests: number; readonly inputTokens: number; readonly outputTokens: number }>
> = {
  blue: { requests: 90, inputTokens: 90_000, outputTokens: 1_800 },
  green: { requests: 30, inputTokens: 30_000, outputTokens: 600 },
};

/** Tokens that are missing in the buckets of tenants. */
export const MISSING_TOKENS = { blue: 1_200, green: 40.5 } as const;

/** Model servers that are there and say nothing: an endpoint without one is dead, and its prompts leave the index. */
export class EngineDoubles {
  readonly #servers: readonly Server[];

  private constructor(servers: readonly Server[]) {
    this.#servers = servers;
  }

  static async start(): Promise<EngineDoubles> {
    const servers = ENDPOINTS.map(({ port, address }) =>
      createServer((_, answer) => answer.end()).listen(port, address),
    );
    await Promise.all(servers.map((server) => once(server, 'listening')));
    return new EngineDoubles(servers);
  }

  async stop(): Promise<void> {
    for (const server of this.#servers) server.closeAllConnections();
    await Promise.all(this.#servers.map((server) => once(server.close(), 'close')));
  }
}

/** Flags of a plain-text picker on free ports over these endpoints. @param folder gets its files */
export function flagsOf(folder: string, endpoints: readonly FileEndpoint[] = ENDPOINTS): readonly string[] {
  const file = join(folder, 'endpoints.yaml');
  writeFileSync(file, JSON.stringify({ endpoints: endpoints.map((one) => ({ ...one, port: String(one.port) })) }));
  return [
    `--endpoints-file=${file}`,
    ...['--grpc-port=0', '--grpc-health-port=0', '--metrics-port=0', '--bind-address=127.0.0.1'],
    ...['--metrics-endpoint-auth=false', '--secure-serving=false', '--lame-duck=0s'],
  ];
}
