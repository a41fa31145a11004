import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';

const folder = join(import.meta.dirname, 'fixtures');

/** Versions of the program whose files are kept. */
export const VERSIONS: readonly string[] = existsSync(folder) ? readdirSync(folder).sort() : [];

/** State files that every version writes. */
export const STATE_FILES = [
  'hash-seed',
  'learned-classes.json',
  'learned.json',
  'prefix-index.bin',
  'recording.bin',
  'tenants.json',
  'usage.ndjson',
] as const;

export function fixture(version: string, ...path: readonly string[]): string {
  return join(folder, version, ...path);
}

/** Configurations of a version that need nothing but themselves. */
export function configurationsOf(version: string): readonly string[] {
  const others = /(^|\/)endpoints[^/]*\.yaml$|(^|\/)(pools|tenants)\.yaml$/;
  return readdirSync(fixture(version, 'configurations'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.yaml') && !others.test(name))
    .sort();
}

/**
 * A kept prefix index with another time of saving, since one that is older than half an hour is not used. Knows no more
 * of the format than what docs/stability.md promises: magic, length of the head, CRC-32 of everything behind it, a head
 * in JSON.
 */
export function savedNow(file: string, nowMs: number): Uint8Array {
  const bytes = readFileSync(file);
  const end = 16 + bytes.readUInt32LE(8);
  const head = { ...(JSON.parse(bytes.toString('utf8', 16, end)) as object), savedAtMs: nowMs };
  const text = Buffer.from(JSON.stringify(head));
  const whole = Buffer.concat([bytes.subarray(0, 16), text, bytes.subarray(end)]);
  whole.writeUInt32LE(text.length, 8);
  whole.writeUInt32LE(crc32(whole.subarray(16)), 12);
  return whole;
}
