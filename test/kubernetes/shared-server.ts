import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the tests ask for the API server of the run. */
    kubernetesBroker: string;
  }
}

interface RunServer {
  readonly url: string;
  readonly ca: string;
  stop(): Promise<void>;
}

let broker: Server | undefined;
let started: Promise<RunServer> | undefined;

/**
 * Offers the API server of a run (globalSetup of vitest). The first test that asks for it starts it, in vitest's own
 * process, so that it outlives the test files.
 */
export async function setup(project: TestProject): Promise<void> {
  const server = createServer((_request, response) => {
    started ??= start();
    started.then(
      ({ url, ca }) => response.end(JSON.stringify({ url, ca })),
      (error: Error) => response.writeHead(500).end(error.message),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  broker = server;
  project.provide('kubernetesBroker', `http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
}

/** Ends it with the run. */
export async function teardown(): Promise<void> {
  broker?.close();
  await started?.then((server) => server.stop()).catch(() => {});
}

async function start(): Promise<RunServer> {
  const { ApiServer } = await import('./api-server-process.ts');
  const { gieCrds } = await import('./cluster.ts');
  const server = new ApiServer();
  await server.start();
  await server.cluster().installCrds(gieCrds('v1.5.0'));
  return server;
}
