import { createServer } from 'node:net';
import { InvalidArgumentError } from 'commander';

/** The port of a command-line flag. */
export function portNumber(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError('expected a number from 0 to 65535');
  return port;
}

/** The value of a flag that multiplies. */
export function factor(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value <= 1_000)) throw new InvalidArgumentError('expected a number above 0, at most 1000');
  return value;
}

/** Returns the message for a failed listening socket, with a remedy for a busy port. */
export function listenFailure(error: unknown, port: number): string {
  const failure = error as NodeJS.ErrnoException;
  return failure.code === 'EADDRINUSE' ? `port ${port} is in use; choose another with --port` : failure.message;
}

/** The address that listens on every interface: IPv4 alone where the machine has no IPv6. */
export async function everyAddress(): Promise<'::' | '0.0.0.0'> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '::', resolve);
    });
    return '::';
  } catch {
    return '0.0.0.0';
  } finally {
    server.close();
  }
}

/** `count` different ports of 127.0.0.1 that are free now. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
