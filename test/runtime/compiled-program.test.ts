import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { describe, expect, onTestFinished, test } from 'vitest';
import { loadProgram } from '../../dist/src/runtime/compiled-program.js';

interface Exports {
  readonly answer: () => number;
  readonly place: string;
  readonly join: typeof join;
  readonly later: () => Promise<typeof import('node:path')>;
}

const text = (answer: number) => `(function (exports, require, module, __filename, __dirname, __import) {
  exports.answer = () => ${answer};
  exports.place = __filename;
  exports.join = require('node:path').join;
  exports.later = () => __import('node:path');
})`;

const load = (file: string) => loadProgram<Exports>(file, createRequire(file), (specifier) => import(specifier));

function folderWith(program: string): { readonly file: string; readonly kept: () => string } {
  const folder = mkdtempSync(join(tmpdir(), 'compiled-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'program.cjs');
  writeFileSync(file, program);
  const kept = () => {
    const files = readdirSync(join(folder, 'compiled'));
    expect(files).toEqual([`program.cjs.${process.version}-${process.arch}`]);
    return join(folder, 'compiled', files[0]!);
  };
  return { file, kept };
}

describe('a program with kept code', () => {
  test('the program has its exports, its place, require() and import() on the first load and on later ones', async () => {
    const { file } = folderWith(text(42));
    for (let i = 0; i < 3; i++) {
      const { exports, keep } = load(file);
      expect(exports.answer()).toBe(42);
      expect(exports.place).toBe(file);
      expect(exports.join('a', 'b')).toBe('a/b');
      expect((await exports.later()).join('a', 'b')).toBe('a/b');
      keep();
    }
  });

  test('a load that uses kept code does not write it again', () => {
    const { file, kept } = folderWith(text(42));
    load(file).keep();
    const before = statSync(kept()).ino;
    load(file).keep();
    expect(statSync(kept()).ino).toBe(before);
  });

  test('kept code holds the functions that have run', () => {
    const { file, kept } = folderWith(text(42));
    load(file).keep();
    const without = readFileSync(kept()).length;
    rmSync(kept());
    const { exports, keep } = load(file);
    exports.answer();
    keep();
    expect(readFileSync(kept()).length).toBeGreaterThan(without);
  });

  test('a changed program of the same length runs, and its code takes the place of the old one', () => {
    const { file, kept } = folderWith(text(42));
    load(file).keep();
    const before = readFileSync(kept());
    writeFileSync(file, text(43));
    const { exports, keep } = load(file);
    expect(exports.answer()).toBe(43);
    keep();
    expect(readFileSync(kept())).not.toEqual(before);
  });

  test.each([0, 5, 100])('kept code that ends after %i bytes is refused and replaced', (bytes) => {
    const { file, kept } = folderWith(text(42));
    load(file).keep();
    const whole = statSync(kept()).size;
    truncateSync(kept(), bytes);
    const { exports, keep } = load(file);
    expect(exports.answer()).toBe(42);
    keep();
    expect(statSync(kept()).size).toBeGreaterThanOrEqual(whole);
  });

  test('code is not kept while a flag of V8 is changed, since later starts would refuse it', () => {
    const { file, kept } = folderWith(text(42));
    const { keep } = load(file);
    setFlagsFromString('--semi-space-growth-factor=1');
    const keptMeanwhile = keep();
    setFlagsFromString('--semi-space-growth-factor=2');
    expect([keptMeanwhile, readdirSync(join(file, '..'))]).toEqual([false, ['program.cjs']]);
    expect([keep(), statSync(kept()).size > 0]).toEqual([true, true]);
  });

  test('a place that cannot be written to keeps nothing', () => {
    const { file } = folderWith(text(42));
    writeFileSync(join(file, '..', 'compiled'), 'a file in the place of the folder');
    const { exports, keep } = load(file);
    keep();
    expect(exports.answer()).toBe(42);
  });
});
