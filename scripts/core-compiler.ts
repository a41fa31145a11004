// Compiles assembly/ in one of its two builds.

import asc from 'assemblyscript/asc';

const OPTIONS = [
  '--importMemory',
  '--noExportMemory',
  '--sharedMemory',
  '--initialMemory=2',
  '--maximumMemory=65536',
  '--enable=threads,simd,bulk-memory',
  '--runtime=stub',
  '--disableWarning=112',
  '--bindings=raw',
];

const BUILDS = {
  release: ['-O3', '--converge', '--noAssert'],
  /** Names of functions for stack traces; less optimised, since it is compiled at every build. */
  debug: ['-O1', '--debug'],
} as const;

export type CoreBuild = keyof typeof BUILDS;

export interface CompiledCore {
  readonly wasm: Uint8Array;
  /** TypeScript declarations of the exports. */
  readonly declarations: string;
}

/**
 * Compiles the core.
 * @param root the folder that holds assembly/
 * @throws Error with the messages of the compiler
 */
export async function compileCore(root: string, build: CoreBuild): Promise<CompiledCore> {
  const written = new Map<string, string | Uint8Array>();
  const args = ['assembly/index.ts', '--baseDir', root, '--outFile=core.wasm', ...OPTIONS, ...BUILDS[build]];
  const { error, stderr } = await asc.main(args, {
    writeFile: (name, contents) => void written.set(name, contents),
  });
  if (error !== null) throw new Error(`assembly/ does not compile:\n${stderr.toString()}`);
  return { wasm: written.get('core.wasm') as Uint8Array, declarations: String(written.get('core.d.ts')) };
}
