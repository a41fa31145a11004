import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const bytes = readFileSync(new URL('../../dist/src/core/core.wasm', import.meta.url));
const SECTION_IMPORT = 2;
const SECTION_DATA = 11;

/** One unsigned LEB128 number. */
function leb(at: number): { value: number; next: number } {
  let value = 0;
  for (let shift = 0, next = at; ; shift += 7) {
    const byte = bytes[next++]!;
    value += (byte & 127) * 2 ** shift;
    if (byte < 128) return { value, next };
  }
}

function sections(): Map<number, Buffer> {
  const found = new Map<number, Buffer>();
  let at = 8;
  while (at < bytes.length) {
    const id = bytes[at]!;
    const { value: size, next } = leb(at + 1);
    found.set(id, bytes.subarray(next, next + size));
    at = next + size;
  }
  return found;
}

describe('the built Wasm module', () => {
  const module = new WebAssembly.Module(new Uint8Array(bytes));

  test('the built Wasm module imports the shared memory, at most an abort, and nothing else', () => {
    const imports = WebAssembly.Module.imports(module);
    expect(imports.filter(({ kind }) => kind === 'memory')).toEqual([
      { module: 'env', name: 'memory', kind: 'memory' },
    ]);
    const others = imports.filter(({ kind }) => kind !== 'memory').map(({ module: from, name }) => `${from}.${name}`);
    expect(others.filter((name) => name !== 'env.abort')).toEqual([]);
  });

  test('the built Wasm module declares its memory as shared', () => {
    const text = sections().get(SECTION_IMPORT)!;
    const at = text.indexOf(Buffer.from('\x06memory\x02', 'latin1'));
    const flags = text[at + 8]!;
    expect(flags & 2).toBe(2);
  });

  test('the built Wasm module has no data segment: every further instance would write it again over live memory', () => {
    expect(sections().has(SECTION_DATA)).toBe(false);
  });

  test('the built Wasm module exports functions and numbers only', () => {
    const exports = WebAssembly.Module.exports(module);
    expect(exports.filter(({ kind }) => kind !== 'function' && kind !== 'global')).toEqual([]);
  });
});

describe('the binaryen of the tests', () => {
  test('the binaryen of the tests, which counts the stores of the core, is the one that the compiler of the core takes', () => {
    const read = (path: string) => JSON.parse(readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8'));
    const { devDependencies } = read('package.json') as { devDependencies: Record<string, string> };
    const { dependencies } = read('node_modules/assemblyscript/package.json') as {
      dependencies: Record<string, string>;
    };
    expect(devDependencies.binaryen).toBe(dependencies.binaryen);
  });
});
