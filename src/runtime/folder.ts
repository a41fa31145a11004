import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder, with those above it, and checks whether files can be written there. What Node.js offers for this
 * tries without an end where the system says that a folder which exists does not (`/proc`, some mounts).
 * @throws an error for `folderProblem`
 */
export function usableFolder(path: string): void {
  makeFolder(path);
  // Also of a file system that is mounted read-only.
  accessSync(path, constants.W_OK | constants.X_OK);
}

function makeFolder(path: string): void {
  if (isFolder(path)) return;
  const above = dirname(path);
  if (above !== path && !isFolder(above)) makeFolder(above);
  try {
    mkdirSync(path);
  } catch (error) {
    // Another process was faster.
    if (!isFolder(path)) throw error;
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** What is wrong with a folder that cannot be used, and what to do. */
export function folderProblem(folder: string, error: unknown): string {
  const { code, path, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'EEXIST':
    case 'ENOTDIR':
      return path === folder ? `${folder} is a file: name a folder` : `${folder} lies below a file: correct the path`;
    case 'ENOENT':
      return `${folder} cannot be made there: name a folder of another file system`;
    case 'EACCES':
    case 'EPERM':
      return `${folder} may not be written: give this process the right, or name another folder`;
    case 'EROFS':
      return `${folder} is on a file system that is mounted read-only: name another folder`;
    default:
      return `${folder} cannot be used: ${message}`;
  }
}
