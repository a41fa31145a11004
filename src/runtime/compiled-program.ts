import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Script } from 'node:vm';
import { threadId } from 'node:worker_threads';
import { crc32 } from 'node:zlib';
import { readPlainFileSync } from './plain-file.js';

/**
 * A program that scripts/bundle.ts has put into one file, as a function of what scripts have and of `import()`. Its
 * text is run as it was read: a thread has one copy of it.
 */
export interface CompiledProgram<Exports> {
  readonly exports: Exports;
  /**
   * Keeps the code that V8 has compiled of the program so far, the functions that have run included, for later starts.
   * Without effect when there is such code, and where the folder of the program cannot be written to.
   * @returns whether that is done; false = flags of V8 are changed for a while, and later starts would refuse the code
   */
  keep(): boolean;
}

/**
 * Bytes before the code: the checksum of its program, of which V8 compares the length only, and the checksum of the
 * code, which V8 does not check.
 */
const HEAD_BYTES = 8;
/** Bytes of a program, and of its code, with room to grow: both have a few million today. */
const PROGRAM_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Loads a program, with the code that was kept of it before: nothing is parsed and compiled then. V8 refuses code of
 * another version or of other flags.
 * @param require that of a script in the same folder: another one would load what reads modules, which a thread of
 * scripts does without
 * @param importModule `import()`, which the program has as `__import`: V8's own has no effect in it
 */
export function loadProgram<Exports>(
  file: string,
  require: (id: string) => unknown,
  importModule: (specifier: string) => Promise<unknown>,
): CompiledProgram<Exports> {
  const bytes = readPlainFileSync(file, PROGRAM_BYTES_MAX);
  const checksum = crc32(bytes);
  const kept = join(dirname(file), 'compiled', `${basename(file)}.${process.version}-${process.arch}`);
  const code = codeOf(kept, checksum);
  const flags = code === undefined ? flagsTag() : undefined;
  // Written in ASCII by scripts/bundle.ts.
  const script = new Script(bytes.toString('latin1'), {
    filename: file,
    ...(code === undefined ? {} : { cachedData: code }),
  });
  freeBuffer(bytes);
  if (code !== undefined) freeBuffer(code);
  const module = { exports: {} };
  const run = script.runInThisContext() as (...parts: readonly unknown[]) => void;
  run(module.exports, require, module, file, dirname(file), importModule);
  // Code that V8 refuses because of flags stays for starts without them.
  const keep = (): boolean => {
    if (code !== undefined) return true;
    if (flagsTag() !== flags) return false;
    write(kept, checksum, script.createCachedData());
    return true;
  };
  return { exports: module.exports as Exports, keep };
}

/** Version and flags of V8 that code belongs to. With kept code nothing asks for it, and its module is not loaded. */
function flagsTag(): number {
  return process.getBuiltinModule('node:v8').cachedDataVersionTag();
}

/**
 * Frees the memory of a file at once: a thread with little garbage would keep it for long. A plain file is read into
 * memory of its own.
 */
function freeBuffer({ buffer }: Buffer): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

function codeOf(kept: string, checksum: number): Buffer | undefined {
  let bytes: Buffer;
  try {
    bytes = readPlainFileSync(kept, PROGRAM_BYTES_MAX);
  } catch {
    return undefined;
  }
  if (bytes.length <= HEAD_BYTES || bytes.readUInt32LE(0) !== checksum) return undefined;
  const code = bytes.subarray(HEAD_BYTES);
  return bytes.readUInt32LE(4) === crc32(code) ? code : undefined;
}

/** Writes the file in one step: another process may read it in the meantime. */
function write(kept: string, checksum: number, code: Buffer): void {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32LE(checksum);
  head.writeUInt32LE(crc32(code), 4);
  const next = `${kept}.${process.pid}-${threadId}`;
  try {
    mkdirSync(dirname(kept), { recursive: true });
    // A link in its place is not followed.
    rmSync(next, { force: true });
    writeFileSync(next, Buffer.concat([head, code]), { flag: 'wx' });
    renameSync(next, kept);
  } catch {
    // A read-only file system: later starts compile again.
  }
}
