import { createServer } from 'node:net';
import { threadId } from 'node:worker_threads';
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
    // Without a host Node.js tries `::` and then `0.0.0.0`, and looks nothing up.
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, resolve);
    });
    const address = server.address();
    return typeof address === 'object' && address?.address === '::' ? '::' : '0.0.0.0';
  } catch {
    return '0.0.0.0';
  } finally {
    server.close();
  }
}

/**
 * Ports below those that the kernel gives to outgoing connections (Linux: from 32768). A port of that range could go to
 * a client before its server listens, or while the server restarts.
 */
const PORTS = { first: 12_000, count: 18_000 };

/** Ports that a process takes before it reaches the range of the next one. */
const PORTS_OF_PROCESS = 60;

/** Number of the next port to try. Processes and threads that run side by side begin at different places. */
let next = ((process.pid + 97 * threadId) * PORTS_OF_PROCESS) % PORTS.count;

/**
 * `count` different ports of 127.0.0.1 that are free now and stay so while their servers are down. Rejects when none is
 * left.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  for (let tries = 0; tries < PORTS.count; tries++) {
    const port = PORTS.first + next;
    next = (next + 1) % PORTS.count;
    if (await isFree(port)) ports.push(port);
    if (ports.length === count) return ports;
  }
  throw new Error(`fewer than ${count} free ports from ${PORTS.first} to ${PORTS.first + PORTS.count - 1}`);
}

/** One port of {@link freePorts}. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port as number;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
