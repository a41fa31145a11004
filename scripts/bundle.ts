// Puts the program and what it imports into few files in dist/program/: a start reads a handful of files instead of some
// nine hundred, and both threads' engines hold less. The compiled modules in dist/ stay as they are: they are the library,
// and what the tests import.
import { readFile } from 'node:fs/promises';
import { dirname, relative, resolve, sep } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { bundledPackages } from './bundled-packages.ts';

const root = resolve(import.meta.dirname, '..');
/** Folder of the modules; scripts/build.ts names another one until the build is whole. */
const dist = resolve(process.env.POINTSMAN_DIST ?? resolve(root, 'dist'));
const program = resolve(dist, 'program');

/** Each is started by its path: the command line by bin/, the others as the program of a thread. */
const entries = ['cli/main.js', 'picker/shards/shard.js', 'picker/jobs/job.js'];

/** Modules that start a thread name its program beside them, so they must see the bundled one. */
const threadStarters = new Set(['picker/shards/shard-threads.js', 'picker/jobs/job-pool.js']);

/** The others stay apart: they start threads from files of their own, bring native code, or are loaded only on demand. */
const manifest = JSON.parse(await readFile(resolve(root, 'package.json'), 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
};
const apart = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }).filter(
  (name) => !bundledPackages.includes(name),
);

/**
 * A module keeps the address it had before: what it finds beside itself (the Wasm core, package.json) is found from the
 * bundle as well.
 */
const addresses: Plugin = {
  name: 'addresses',
  setup(setup) {
    setup.onLoad({ filter: /\.js$/ }, async ({ path }) => {
      if (!path.startsWith(dist + sep)) return undefined;
      const source = forQuickStart(await readFile(path, 'utf8'));
      const module = relative(dist, path).replaceAll(sep, '/');
      const address = threadStarters.has(module)
        ? '__program.href'
        : `(new URL(${JSON.stringify(module)},__dist).href)`;
      return { contents: source.replaceAll('import.meta.url', address), resolveDir: dirname(path), loader: 'js' };
    });
  },
};

/**
 * A module in a form that loads quicker. Named by its members, the schema library leaves out what is not used: four fifths
 * of it are messages in other languages. An import of a module of Node.js reads all of its exports, and some of them load half
 * of the library, such as an HTTP client behind `node:http`; what is taken out of the module by hand does not.
 */
function forQuickStart(source: string): string {
  return source
    .replaceAll("import { z } from 'zod';", "import * as z from 'zod';")
    .replaceAll(/^import \{([^}]*)\} from '(node:[a-z_/]+)';$/gm, (_, names: string, from: string) => {
      return `const {${names.replaceAll(' as ', ': ')}} = process.getBuiltinModule('${from}');`;
    });
}

/** Every file of the bundle says where it lies, for the modules' addresses and for CommonJS packages. */
const banner = [
  'import{createRequire as __createRequire}from"node:module";',
  'const __dist=new URL("../",import.meta.url);',
  'const __program=new URL("./",import.meta.url);',
  'const require=__createRequire(import.meta.url);',
].join('');

await build({
  entryPoints: entries.map((entry) => resolve(dist, entry)),
  entryNames: '[name]',
  chunkNames: 'part-[hash]',
  outdir: program,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node22',
  // Names stay, for stack traces that can be read.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'linked',
  banner: { js: banner },
  external: apart,
  plugins: [addresses],
  logLevel: 'warning',
});

await import('./bundle-page.ts');
