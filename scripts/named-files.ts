// Refuses packages that name files beside themselves: in the bundle those files do not exist, and the name does not
// either where the bundle is of modules. Such a package works in every test that runs the modules of dist/, and in no
// program.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { sep } from 'node:path';
import { type OnLoadResult, type Plugin, transform } from 'esbuild';

/** Treatment of a file's name in a module of a bundled package. Keys are paths below node_modules. */
export type NamedFiles = Readonly<Record<string, NamedFile>>;
export type NamedFile =
  /** Another file is named, which the bundle has beside itself. */
  | { readonly text: string; readonly by: string; readonly file: string }
  /** The module is not in the bundle; its use throws this. */
  | { readonly leftOut: string }
  /** Nothing in the bundle comes to the name, or it is not read as a file; why. Only where such a name exists. */
  | { readonly unused: string };

/** Ways of a module to name a file beside itself. Globals and members are found where they are free. */
const NAMES = [
  '__dirname',
  '__filename',
  'import.meta.url',
  'import.meta.dirname',
  'import.meta.filename',
  'require.resolve',
];
const MARK = 'POINTSMAN_NAMES_A_FILE_';
const MARKS = Object.fromEntries(NAMES.map((name, index) => [name, JSON.stringify(`${MARK}${index}_`)]));

/**
 * Returns the names by which a module finds files beside itself; those in comments, texts and own variables do not
 * count.
 */
export async function fileNames(source: string): Promise<readonly string[]> {
  const candidates = NAMES.filter((name) => source.includes(name));
  if (candidates.length === 0) return [];
  const { code } = await transform(source, { define: MARKS, logLevel: 'silent' });
  return candidates.filter((name) => code.includes(`${MARK}${NAMES.indexOf(name)}_`));
}

/**
 * Fails the build at a module of a package that names a file beside itself and is not in `named`.
 * @param format of the bundle: modules have no `__dirname`, so none may be left in one
 * @param program folder of the bundle, where the files of `named` must lie when the bundle is written
 */
export function refuseNamedFiles(named: NamedFiles, format: 'esm' | 'cjs', program: string): Plugin {
  return {
    name: 'named-files',
    setup(setup) {
      const promised = new Set<string>();
      setup.onLoad({ filter: /[/\\]node_modules[/\\].*\.[cm]?js$/ }, async ({ path }) => {
        const module = path.split(`${sep}node_modules${sep}`).at(-1)!.replaceAll(sep, '/');
        const found = await load(path, module, named[module], format);
        if (found.promised !== undefined) promised.add(found.promised);
        return found.result;
      });
      setup.onEnd(() => {
        const missing = [...promised].filter((file) => !existsSync(`${program}/${file}`));
        return { errors: missing.map((file) => ({ text: `a package starts ${file}, which is not in ${program}` })) };
      });
    },
  };
}

interface Loaded {
  readonly result: OnLoadResult | undefined;
  readonly promised?: string;
}

async function load(path: string, module: string, rule: NamedFile | undefined, format: 'esm' | 'cjs'): Promise<Loaded> {
  const source = await readFile(path, 'utf8');
  if (rule !== undefined && 'leftOut' in rule) {
    return {
      result: { contents: `module.exports=()=>{throw new Error(${JSON.stringify(rule.leftOut)})}`, loader: 'js' },
    };
  }
  if (rule !== undefined && 'text' in rule) {
    const contents = source.replace(rule.text, rule.by);
    if (contents === source)
      return refused(`${module} does not name ${rule.text} any more: correct scripts/bundled-packages.ts`);
    if (format === 'esm') return refused(`${module} needs __dirname: give it a file of its own, as a rare package`);
    return { result: { contents, loader: 'js' }, promised: rule.file };
  }
  const names = await fileNames(source);
  if (names.length === 0 || (rule !== undefined && format === 'cjs')) return { result: undefined };
  return refused(
    `${module} names a file beside itself by ${names.join(' and ')}, and in the bundle there is none: say in ` +
      'scripts/bundled-packages.ts ' +
      `what takes its place${format === 'esm' ? ', or give the package a file of its own, as a rare package' : ''}`,
  );
}

const refused = (text: string): Loaded => ({ result: { errors: [{ text }] } });
