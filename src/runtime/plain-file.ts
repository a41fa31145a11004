import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readSync,
  renameSync,
  type Stats,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { type FileHandle, lstat, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** Bytes of a text that is written by hand, or that Kubernetes mounts (etcd's bound): configurations, endpoints. */
export const TEXT_BYTES_MAX = 1024 * 1024;
/** Bytes of certificates, with all authorities of a machine, and of a kubeconfig that holds some. */
export const PEM_BYTES_MAX = 4 * 1024 * 1024;
/** Bytes of a token, password or key. */
export const SECRET_BYTES_MAX = 64 * 1024;

/** Bytes of what was learned, or used by tenants on one day. */
export const STATE_BYTES_MAX = 64 * 1024 * 1024;

/** Flag without which the opening of a pipe or a device would wait for the other end, without a bound. */
const READING = constants.O_RDONLY | constants.O_NONBLOCK;
/** A link in the place of the file is not followed, and neither is a file used that is there already. */
const CREATING = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const MODE = 0o666;
/** Age from which on a new file that never took its place was left by a process that was killed. */
const LEFT_MS = 3_600_000;

/**
 * Reads a regular file, also behind links, as Kubernetes mounts them. What is none is not opened (a pipe may have
 * no writer, a device no end), and what is above the bound is not read.
 * @throws an error for `readProblem`
 */
export async function readPlainFile(path: string, bytesMax: number): Promise<Buffer> {
  refuse(await stat(path), bytesMax);
  const file = await open(path, READING);
  try {
    const content = new BoundedContent(await file.stat(), bytesMax);
    while (content.take((await file.read(content.buffer, content.length)).bytesRead));
    return content.bytes;
  } finally {
    await file.close();
  }
}

/** As `readPlainFile`, at once: for the start, and for small files. */
export function readPlainFileSync(path: string, bytesMax: number): Buffer {
  refuse(statSync(path), bytesMax);
  const file = openSync(path, READING);
  try {
    const content = new BoundedContent(fstatSync(file), bytesMax);
    while (content.take(readSync(file, content.buffer, { offset: content.length })));
    return content.bytes;
  } finally {
    closeSync(file);
  }
}

/** As `readPlainFileSync`, as UTF-8 text. */
export function readPlainText(path: string, bytesMax: number): string {
  return readPlainFileSync(path, bytesMax).toString('utf8');
}

/**
 * As `readPlainText`, of a document that people write.
 * @throws an error for `readProblem`, also where bytes are no UTF-8: a parser's message would be about its first line
 */
export function readUtf8Text(path: string, bytesMax: number): string {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readPlainFileSync(path, bytesMax));
}

function refuse(stats: Stats, bytesMax: number): void {
  if (stats.isDirectory()) throw new Error('is a folder: name a file');
  if (!stats.isFile()) throw new Error(`is ${kindOf(stats)}, no regular file: name a file`);
  if (stats.size > bytesMax) throw tooLarge(stats.size, bytesMax);
}

function kindOf(stats: Stats): string {
  if (stats.isFIFO()) return 'a pipe';
  return stats.isSocket() ? 'a socket' : 'a device';
}

function tooLarge(bytes: number, bytesMax: number): Error {
  return new Error(`has ${bytes} bytes, and at most ${bytesMax} are read: is it the right file?`);
}

/** The content of a file, up to the last byte read. A file may grow meanwhile, and some tell no size (`/proc`). */
class BoundedContent {
  readonly #bytesMax: number;
  buffer: Buffer;
  length = 0;

  constructor(stats: Stats, bytesMax: number) {
    // Once more, of the file that was opened: another one may have taken the name.
    refuse(stats, bytesMax);
    this.#bytesMax = bytesMax;
    this.buffer = Buffer.allocUnsafeSlow(stats.size + 1);
  }

  get bytes(): Buffer {
    return this.buffer.subarray(0, this.length);
  }

  /** @returns whether there may be more */
  take(bytesRead: number): boolean {
    this.length += bytesRead;
    if (this.length > this.#bytesMax) throw tooLarge(this.length, this.#bytesMax);
    if (bytesRead === 0) return false;
    if (this.length === this.buffer.length) this.#grow();
    return true;
  }

  #grow(): void {
    const larger = Buffer.allocUnsafeSlow(Math.min(2 * this.length + 4096, this.#bytesMax + 1));
    this.buffer.copy(larger);
    this.buffer = larger;
  }
}

/**
 * Replaces a file as a whole: a reader finds the old content or the new one, also after a crash, a full disk or a
 * signal, or when two write it at once: the one that ends last wins. What was written by then is removed, and what
 * killed processes left is an hour later.
 * @param mode rights of the new file, as far as the process's mask leaves them
 */
export async function replaceFile(path: string, content: string | Uint8Array, mode = MODE): Promise<void> {
  const beside = besideOf(path);
  await removeLeft(path);
  try {
    await writeAndClose(await open(beside, CREATING, mode), content);
    await rename(beside, path);
  } catch (error) {
    await unlink(beside).catch(() => undefined);
    throw named(error, beside, path);
  }
}

/** As `replaceFile`, at once: for the start, and for small files. */
export function replaceFileSync(path: string, content: string | Uint8Array, mode = MODE): void {
  const beside = besideOf(path);
  try {
    writeAndCloseSync(openSync(beside, CREATING, mode), content);
    renameSync(beside, path);
  } catch (error) {
    removeQuietly(beside);
    throw named(error, beside, path);
  }
}

/** A name that nobody else writes or can foresee. */
function besideOf(path: string): string {
  return `${path}.${randomBytes(8).toString('hex')}.new`;
}

/** The error by the name of the file itself: one that comes again has the same text, and is logged once. */
function named(error: unknown, beside: string, path: string): unknown {
  if (error instanceof Error) error.message = error.message.replaceAll(beside, path);
  return error;
}

/** Files whose leftovers this thread has removed. */
const cleaned = new Set<string>();

async function removeLeft(path: string): Promise<void> {
  if (cleaned.has(path)) return;
  cleaned.add(path);
  const [folder, beginning] = [dirname(path), `${basename(path)}.`];
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((each) => each.startsWith(beginning) && each.endsWith('.new'))) {
    const left = join(folder, name);
    const { mtimeMs } = await lstat(left).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs > LEFT_MS) await unlink(left).catch(() => undefined);
  }
}

async function writeAndClose(file: FileHandle, content: string | Uint8Array): Promise<void> {
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

function writeAndCloseSync(file: number, content: string | Uint8Array): void {
  try {
    writeFileSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // The error of the write matters more.
  }
}
