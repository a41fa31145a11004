import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { CORE, type CoreConstant } from '../../dist/src/core/core-names.js';
import { attachCore, createPoolMemory, loadCoreModule } from '../../dist/src/core/memory.js';
import { constantValues, coreNames } from '../../scripts/core-names.ts';
import { smallSizes } from '../core/pool.ts';

const root = new URL('../../', import.meta.url);
const text = readFileSync(new URL('src/core/core-names.ts', root), 'utf8');
const module = loadCoreModule('release');

/** Parameters of every function of `CoreFunctions`, as the file writes them. */
const functions = new Map(
  [...text.slice(text.indexOf('interface CoreFunctions')).matchAll(/^ {2}(\w+)\(([^)]*)\): \w+;$/gm)].map(
    ([, name, parameters]) => [name!, parameters!.split(',').filter((one) => one.trim() !== '').length],
  ),
);

/** Source text of everything that may use the core, without comments and without the generated file. */
function sources(): string {
  const files = globSync(['{src,tools,test,bench,scripts}/**/*.ts'], { cwd: root });
  return files
    .filter((path) => !path.includes('core-names'))
    .map((path) => readFileSync(new URL(path, root), 'utf8'))
    .join('\n')
    .replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
}

/** Names that the sources take from an object: by a dot, or by destructuring it. */
function namesTakenFrom(object: string, all: string): Set<string> {
  const dotted = [...all.matchAll(new RegExp(`\\b${object}\\.(\\w+)`, 'g'))].map(([, name]) => name!);
  const taken = [...all.matchAll(new RegExp(`const \\{([^}]*)\\} = [\\w.#]*\\b${object};`, 'g'))];
  return new Set([...dotted, ...taken.flatMap(([, names]) => names!.match(/\w+/g) ?? [])]);
}

describe('src/core/core-names.ts', () => {
  test('src/core/core-names.ts holds every constant of the built module, with its value ("npm run build:wasm" renews it)', () => {
    // An unsigned integer above 2^31 comes out of the module as a negative one.
    const plain = (value: number | bigint) => (Number.isInteger(value) ? Number(value) >>> 0 : value);
    const ofModule = new Map([...constantValues(module)].map(([name, value]) => [name, plain(value)]));
    expect(new Map(Object.entries(CORE).map(([name, value]) => [name, plain(value)]))).toEqual(ofModule);
  });

  test('src/core/core-names.ts holds every function of the built module, with as many parameters', () => {
    const { call } = attachCore(createPoolMemory(smallSizes, { module }), 0);
    const exported = Object.entries(call).filter(([, value]) => typeof value === 'function');
    expect(functions).toEqual(new Map(exported.map(([name, { length }]) => [name, length])));
  });

  test('src/core/core-names.ts names nothing that src, tools, test, bench and scripts have no use for', () => {
    const all = sources();
    const constants = namesTakenFrom('CORE', all);
    const operations = new Set([...all.matchAll(/\bOP_\w+/g)].map(([name]) => name));
    const calls = namesTakenFrom('call', all);
    expect(Object.keys(CORE).filter((name) => !constants.has(name) && !operations.has(name))).toEqual([]);
    expect([...functions.keys()].filter((name) => !calls.has(name))).toEqual([]);
  });
});

describe('a module of another build', () => {
  test('a module of another build is refused with the name of the first constant that differs', () => {
    const expected = CORE as Record<CoreConstant, number>;
    const built = expected.WAIT_SLOT_FLAGS++;
    try {
      const unchecked = loadCoreModule('release');
      expect(() => createPoolMemory(smallSizes, { module: unchecked })).toThrow(
        `the Wasm build has WAIT_SLOT_FLAGS = ${built}, expected ${built + 1}: run "npm run build"`,
      );
    } finally {
      expected.WAIT_SLOT_FLAGS = built;
    }
  });
});

describe('the text of core-names.ts', () => {
  const declarations = (variable: string) => `/** assembly/a/${variable} */
  export const ${variable}: {
    /** @type \`u32\` */
    get value(): number;
    set value(value: number);
  };`;

  test('the text of core-names.ts has no place for a variable of the module', () => {
    expect(() => coreNames(module, declarations('STATE'))).toThrow(
      'assembly exports the variable STATE: export a function that returns it',
    );
  });

  test('the text of core-names.ts needs a declaration of every export', () => {
    expect(() => coreNames(module, '')).toThrow(/^no declaration of \w+/);
  });
});
