import { chmodSync, chownSync, lstatSync, statSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { SocketFile } from '../../contract/listen-settings.js';
import { errorMessage } from '../../runtime/error-message.js';

/** A listening Unix domain socket. */
export interface SocketListener {
  /** Stops accepting; connections go on. Removes the file. */
  stop(): void;
}

/**
 * Listens on a Unix domain socket with the mode and the owner that it is to have. A file left behind by an ended
 * process is replaced. Rejects with a message that names the file.
 * @param accept takes an unread connection
 */
export async function listenOnFile(file: SocketFile, accept: (socket: Socket) => void): Promise<SocketListener> {
  await removeStale(file.path);
  const server = createServer({ pauseOnConnect: true }, accept);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(new Error(`--grpc-socket: ${file.path}: ${bindProblem(error, file.path)}`)));
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

/** The system reports a missing folder as one without write permission. */
function bindProblem(error: Error, path: string): string {
  const folder = dirname(path);
  const found = statSync(folder, { throwIfNoEntry: false });
  if (found === undefined) return `there is no folder ${folder}: make it, or choose another path`;
  if (!found.isDirectory()) return `${folder} is no folder: choose another path`;
  if ((error as NodeJS.ErrnoException).code !== 'EACCES') return error.message;
  return `the folder ${folder} may not be written: give this process the right, or choose another path`;
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
