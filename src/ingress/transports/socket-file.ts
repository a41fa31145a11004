import { chmodSync, chownSync, lstatSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import type { SocketFile } from '../../contract/listen-settings.js';
import { errorMessage } from '../../runtime/error-message.js';

/** A listening Unix domain socket. */
export interface SocketListener {
  /** Accepts no more; connections go on. Removes the file. */
  stop(): void;
}

/**
 * Listens on a Unix domain socket with the mode and the owner that it is to have. A file that a process which is gone
 * has left behind is replaced. Rejects with a message that names the file.
 * @param accept takes a connection of which nothing has been read
 */
export async function listenOnFile(file: SocketFile, accept: (socket: Socket) => void): Promise<SocketListener> {
  await removeStale(file.path);
  const server = createServer({ pauseOnConnect: true }, accept);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(new Error(`--grpc-socket: ${file.path}: ${error.message}`)));
    server.listen({ path: file.path }, resolve);
  });
  server.removeAllListeners('error');
  // A failed accept (no file descriptors left) concerns one connection; its client sees it closed.
  server.on('error', () => undefined);
  try {
    chmodSync(file.path, file.mode);
    if (file.owner !== undefined) chownSync(file.path, file.owner.uid, file.owner.gid);
  } catch (error) {
    server.close();
    throw new Error(`--grpc-socket: ${file.path}: mode or owner cannot be set: ${errorMessage(error)}`);
  }
  return { stop: () => server.close() };
}

/** Removes a stale socket. @throws when a process listens on it, or the file is no socket */
async function removeStale(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) throw new Error(`--grpc-socket: ${path} exists and is no socket: choose another path`);
  if (await answers(path)) throw new Error(`--grpc-socket: ${path} is in use: choose another path or stop its owner`);
  unlinkSync(path);
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    const tell = (heard: boolean) => () => {
      socket.destroy();
      resolve(heard);
    };
    socket.once('connect', tell(true)).once('error', tell(false));
  });
}
