// A server that reads whatever comes and throws it away: `node sink.ts` prints its port.
import { createServer } from 'node:net';
import { freePorts } from '../../dist/src/serve/port.js';

if (process.argv[1] === import.meta.filename) {
  const [port] = await freePorts(1);
  createServer((socket) => socket.on('error', () => undefined).resume()).listen(port, '127.0.0.1', () =>
    console.log(port),
  );
}
