import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { HeldBytes } from '../../../dist/src/ingress/byte-budget.js';
import type { ProcessHandler } from '../../../dist/src/ingress/transport.js';
import { createTransport } from '../../../dist/src/ingress/transports/create.js';
import { frame, PREFACE, parseFrames, settings } from './frames.ts';

const BAD_PING = frame('PING', 0, 0, Buffer.alloc(7));
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function listen(): Promise<number> {
  const transport = await createTransport('lean');
  cleanups.push(() => transport.close());
  const sizes = { maxReceiveBytes: 4_194_304, maxSendBytes: 4_194_304, streamsMax: 100, stallMs: 60_000 };
  const where = { host: '127.0.0.1', port: 0, reusePort: false };
  return transport.listen({ ...where, ...sizes, budget: new HeldBytes(1e8) }, (): ProcessHandler => {
    throw new Error('a stream was opened');
  });
}

/** Sends all of it before it reads anything. */
async function say(port: number, ...bytes: readonly Buffer[]): Promise<{ heard: Buffer; error: Error | undefined }> {
  const socket = connect({ port, host: '127.0.0.1' });
  cleanups.push(() => socket.destroy());
  const pieces: Buffer[] = [];
  let error: Error | undefined;
  socket.on('error', (problem) => {
    error = problem;
  });
  await once(socket, 'connect');
  for (const piece of bytes) await new Promise((written) => socket.write(piece, written));
  socket.on('data', (piece: Buffer) => pieces.push(piece));
  await once(socket, 'close');
  return { heard: Buffer.concat(pieces), error };
}

describe('a connection that the picker closes', () => {
  it('a closed connection is read to its end, so that its peer hears why', async () => {
    const more = Array.from({ length: 16 }, () => Buffer.alloc(65_536));
    const { heard, error } = await say(await listen(), Buffer.concat([PREFACE, settings(), BAD_PING]), ...more);
    expect(parseFrames(heard).at(-1)).toMatchObject({ type: 'GOAWAY' });
    expect(error).toBeUndefined();
  });

  it('a closed connection is broken off when the peer sends on and on', async () => {
    const more = Array.from({ length: 512 }, () => Buffer.alloc(65_536));
    const { error } = await say(await listen(), Buffer.concat([PREFACE, settings(), BAD_PING]), ...more);
    expect(error).toMatchObject({ code: expect.stringMatching(/^(ECONNRESET|EPIPE)$/) });
  });
});
