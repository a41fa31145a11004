import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const program = resolve(import.meta.dirname, '../../dist/program');

/** Environment variables that a package reads, and no other one. */
const MARKS = { 'grpc-js.cjs': 'GRPC_NODE_VERBOSITY', 'undici.cjs': 'UNDICI_NO_WASM_SIMD' };

const holds = (file: string, text: string) => readFileSync(resolve(program, file), 'utf8').includes(text);

describe('the way to the first answer', () => {
  it.each(['serve.cjs', 'shard.cjs'])('the program %s holds neither grpc-js nor undici', (file) => {
    for (const mark of Object.values(MARKS)) expect(holds(file, mark)).toBe(false);
    for (const rare of Object.keys(MARKS)) expect(holds(file, `require("./${rare}")`)).toBe(true);
  });

  it.each(['serve.cjs', 'shard.cjs'])('the program %s is written in ASCII', (file) => {
    expect(readFileSync(resolve(program, file)).findIndex((byte) => byte > 0x7f)).toBe(-1);
  });

  it.each(['serve.cjs', 'shard.cjs'])(
    'the program %s holds no messages of the schema library in other languages',
    (file) => {
      expect(holds(file, 'Ongeldige')).toBe(false);
    },
  );

  it('the packages that the programs do without are beside them', () => {
    for (const [file, mark] of Object.entries(MARKS)) expect(holds(file, mark)).toBe(true);
  });
});
