// Puts the program and what it imports into few files in dist/program/: a start reads a handful of files instead of
// some nine hundred, and both threads' engines hold less. The compiled modules in dist/ stay as they are: they are the
// library, and what the tests import.
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, relative, resolve, sep } from 'node:path';
import { type BuildOptions, build, type Plugin } from 'esbuild';
import { bundledPackages, namedFiles } from './bundled-packages.ts';
import { refuseNamedFiles } from './named-files.ts';

const root = resolve(import.meta.dirname, '..');
/** Folder of the modules; scripts/build.ts names another one until the build is whole. */
const dist = resolve(process.env.POINTSMAN_DIST ?? resolve(root, 'dist'));
const program = resolve(dist, 'program');

/** Each is started by its path: the command line by bin/, the others as programs of threads. */
const entries = ['tools/main.js', 'src/picker/jobs/job.js', 'tools/simulator/suite/sweep-job.js'];

/** What a start of `pointsman serve` runs: one file each, so that the code compiled of it is one file as well. */
const quickEntries = { serve: 'src/serve/serve-program.js', shard: 'src/picker/shards/shard.js' };
/** What loads them, from bin/ and as the program of a thread. */
const starters = { 'start-serve': 'src/serve/start-serve.js', 'start-shard': 'src/picker/shards/start-shard.js' };

/** Packages that few starts use, one file each. */
const rarePackages = { 'grpc-js': '@grpc/grpc-js', undici: 'undici' };
/**
 * The program of modules has Piscina in such a file as well: a script knows its own folder, where the program of its
 * threads lies.
 */
const modulesApart = { ...rarePackages, piscina: 'piscina' };

/** Modules that name a program beside them, so they must see the bundled one. */
const programNamers = new Set([
  'src/picker/shards/shard-threads.js',
  'src/picker/jobs/job-pool.js',
  'tools/simulator/suite/sweep.js',
  ...Object.values(starters),
]);

/**
 * The others stay apart: they start threads from files of their own, bring native code, or are loaded only on demand.
 */
const manifest = JSON.parse(await readFile(resolve(root, 'package.json'), 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
};
const apart = [
  ...Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }).filter(
    (name) => !bundledPackages.includes(name),
  ),
  // Piscina loads it for a setting that is not used here.
  '@napi-rs/nice',
];

/**
 * A module keeps the address it had before: what it finds beside itself (the Wasm core, package.json) is found from the
 * bundle as well.
 */
const addresses: Plugin = {
  name: 'addresses',
  setup(setup) {
    setup.onLoad({ filter: /\.js$/ }, async ({ path }) => {
      if (!path.startsWith(dist + sep)) return undefined;
      const module = relative(dist, path).replaceAll(sep, '/');
      const source = forQuickStart(await readFile(path, 'utf8')).replace(
        "'./shard.js', import.meta",
        "'./start-shard.cjs', import.meta",
      );
      const address = programNamers.has(module) ? '__program.href' : `(new URL(${JSON.stringify(module)},__dist).href)`;
      return { contents: source.replaceAll('import.meta.url', address), resolveDir: dirname(path), loader: 'js' };
    });
  },
};

/** Packages that are files of their own, which are loaded when they are needed. */
const filesApart = (packages: Readonly<Record<string, string>>): Plugin => ({
  name: 'files-apart',
  setup(setup) {
    for (const [file, name] of Object.entries(packages)) {
      setup.onResolve({ filter: new RegExp(`^${name}$`) }, () => ({ path: file, namespace: 'apart' }));
    }
    setup.onResolve({ filter: /^\.\/.*\.cjs$/, namespace: 'apart' }, ({ path }) => ({ path, external: true }));
    setup.onLoad({ filter: /./, namespace: 'apart' }, ({ path }) => ({
      contents: `module.exports = require(${JSON.stringify(`./${path}.cjs`)});`,
      loader: 'js',
    }));
  },
});

/**
 * Modules of Node.js that most starts do without. In the programs they are loaded when a name of theirs is first used;
 * packages that only assert do so with a condition that holds.
 */
const lateModules = ['assert', 'https', 'tls', 'v8'];

/** A stand-in for each of them: its names are getters, which load it. */
const loadedLate: Plugin = {
  name: 'loaded-late',
  setup(setup) {
    const filter = new RegExp(`^(node:)?(${lateModules.join('|')})$`);
    setup.onResolve({ filter }, ({ path }) => ({ path: path.replace('node:', ''), namespace: 'late' }));
    setup.onLoad({ filter: /./, namespace: 'late' }, ({ path }) => {
      const whole = process.getBuiltinModule(`node:${path}`) as object;
      const getters = Object.keys(whole).map((name) => `get ${name}(){return whole().${name}}`);
      const members = `{${getters.join(',')}}`;
      const call = '(value,...rest)=>{if(!value)whole()(value,...rest)}';
      return {
        contents: `const whole=()=>process.getBuiltinModule('node:${path}');module.exports=${
          typeof whole === 'function'
            ? `Object.defineProperties(${call},Object.getOwnPropertyDescriptors(${members}))`
            : members
        };`,
        loader: 'js',
      };
    });
  },
};

/**
 * A logger asks V8 for the files of its callers, which only loggers on threads of their own need. V8 counts all lines
 * of the program for it: 4 ms of the control thread and 2 ms of a shard.
 */
const withoutCallers: Plugin = {
  name: 'without-callers',
  setup(setup) {
    setup.onLoad({ filter: /[\\/]pino[\\/]lib[\\/]caller\.js$/ }, () => ({
      contents: 'module.exports=()=>[];',
      loader: 'js',
    }));
  },
};

/**
 * A module in a form that loads quicker. Named by its members, the schema library leaves out what is not used: four
 * fifths of it are messages in other languages. An import of a module of Node.js reads all of its exports, and some of
 * them load half of the library, such as an HTTP client behind `node:http`; what is taken out of the module by hand
 * does not.
 */
function forQuickStart(source: string): string {
  return source
    .replaceAll("import { z } from 'zod';", "import * as z from 'zod';")
    .replaceAll(/^import \{([^}]*)\} from 'node:([a-z\d_/]+)';$/gm, (line: string, names: string, from: string) => {
      if (lateModules.includes(from)) return line;
      return `const {${names.replaceAll(' as ', ': ')}} = process.getBuiltinModule('node:${from}');`;
    });
}

/** Every file of the bundle says where it lies, for the modules' addresses and for CommonJS packages. */
const addressesOf = (url: string) => `const __dist=new URL("../",${url});const __program=new URL("./",${url});`;
const MODULE_BANNER = [
  'import{createRequire as __createRequire}from"node:module";',
  addressesOf('import.meta.url'),
  'const require=__createRequire(import.meta.url);',
].join('');
const SCRIPT_BANNER = `const __url=require("node:url").pathToFileURL(__filename);${addressesOf('__url')}`;

const common: BuildOptions = {
  outdir: program,
  bundle: true,
  platform: 'node',
  target: 'node22',
  // Names stay, for stack traces that can be read.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'linked',
  external: apart,
  logLevel: 'warning',
};

const scripts: BuildOptions = {
  ...common,
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
  banner: { js: SCRIPT_BANNER },
};
const scriptNames = refuseNamedFiles(namedFiles, 'cjs', program);
const inDist = (files: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(files).map(([name, file]) => [name, resolve(dist, file)]));

// First what the others start or load.
const thread = { 'piscina-thread': resolve(root, 'node_modules/piscina/dist/worker.js') };
await build({ ...scripts, entryPoints: thread, plugins: [scriptNames] });
await build({ ...scripts, entryPoints: modulesApart, plugins: [scriptNames] });
await build({
  ...common,
  entryPoints: entries.map((entry) => resolve(dist, entry)),
  entryNames: '[name]',
  chunkNames: 'part-[hash]',
  splitting: true,
  format: 'esm',
  banner: { js: MODULE_BANNER },
  plugins: [addresses, filesApart(modulesApart), refuseNamedFiles(namedFiles, 'esm', program)],
});
await build({ ...scripts, entryPoints: inDist(starters), plugins: [addresses] });
await build({
  ...scripts,
  entryPoints: inDist(quickEntries),
  // The form in which src/runtime/compiled-program.ts runs it, so that no thread makes a second copy of the text.
  banner: { js: `(function(exports,require,module,__filename,__dirname,__import){${SCRIPT_BANNER}` },
  footer: { js: '})' },
  plugins: [addresses, filesApart(rarePackages), loadedLate, withoutCallers, scriptNames],
});
for (const name of Object.keys(quickEntries)) await finish(resolve(program, `${name}.cjs`));

await import('./bundle-page.ts');

/**
 * A program that is run as a script has no `import()`; what loads it hands one in (src/runtime/compiled-program.ts),
 * and reads it as ASCII: a byte a character. esbuild escapes what is not, but for the texts of regular expressions.
 */
async function finish(file: string): Promise<void> {
  const text = await readFile(file, 'utf8');
  const withImports = text.replaceAll(/(?<![\w$.#"'`])import\((?=[\w$]+\)|["'])/g, '__import(');
  await writeFile(
    file,
    withImports.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  );
}
