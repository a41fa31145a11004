import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { folderProblem, usableFolder } from '../../runtime/folder.js';
import { readPlainText, replaceFileSync, SECRET_BYTES_MAX } from '../../runtime/plain-file.js';
import type { PickerOptions } from '../picker-options.js';

const FILE = 'hash-seed';

/**
 * Seed of the block hashes that a state folder keeps, so that a kept index still names the same blocks. Made at the
 * first start. Readable by the owner only: with the seed, collisions can be constructed.
 * @throws with one line when the folder cannot be used
 */
function keptSeed(folder: string): bigint {
  const path = join(folder, FILE);
  try {
    usableFolder(folder);
    const found = readSeed(path);
    if (found !== undefined) return found;
    const seed = newSeed();
    replaceFileSync(path, `${seedText(seed)}\n`, 0o600);
    return seed;
  } catch (error) {
    throw new Error(`--state-dir: ${folderProblem(folder, error)}`);
  }
}

function newSeed(): bigint {
  return randomBytes(8).readBigUInt64LE();
}

function readSeed(path: string): bigint | undefined {
  let text: string;
  try {
    text = readPlainText(path, SECRET_BYTES_MAX);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  if (!/^[0-9a-f]{16}\n$/.test(text)) throw new Error(`${FILE} is no seed: remove it`);
  return BigInt(`0x${text.trim()}`);
}

/** Seed of the block hashes of a group of replicas. Without a key, the seed follows from the group's name. */
function sharedSeed(group: string, hashKey: string): bigint {
  return createHash('sha256').update(`pointsman block hashes\0${group}\0${hashKey}`).digest().readBigUInt64LE();
}

/**
 * Seed of a pool's block hashes. Pools of one process share its seed, so that a body is scanned once for all of them;
 * replicas share that of their group. Without either it is a new one at every start, so that collisions cannot be
 * constructed.
 * @param ofProcess undefined = this is the process's own pool
 */
export function hashSeedOf(
  { replica, stateDir }: Pick<PickerOptions, 'replica' | 'stateDir'>,
  ofProcess: bigint | undefined,
): bigint {
  if (replica !== undefined) return sharedSeed(replica.group, replica.hashKey);
  return ofProcess ?? (stateDir === undefined ? newSeed() : keptSeed(stateDir));
}

/** A seed as hexadecimal digits. */
export function seedText(seed: bigint): string {
  return seed.toString(16).padStart(16, '0');
}
