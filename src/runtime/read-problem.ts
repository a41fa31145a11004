/** Reason why a file cannot be read, as the end of a sentence that begins with its path, and what to do. */
export function readProblem(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return 'does not exist: create it or correct the path';
  if (code === 'ENOTDIR') return 'does not exist, as a part of its path is no folder: correct the path';
  if (code === 'EACCES') return 'may not be read: check its permissions';
  if (code === 'EISDIR') return 'is a folder: name a file';
  if (code === 'ELOOP') return 'is a link that leads to itself: name a file';
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'is not UTF-8 text: save it as such, or correct the path';
  return message;
}
