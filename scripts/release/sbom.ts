// Prints the packages that the npm package contains or needs at run time, as CycloneDX 1.6 in JSON: `node
// scripts/release/sbom.ts`. Made from package-lock.json alone and the same for the same lock file, so that two builds
// can be compared.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundledPackages } from '../bundled-packages.ts';

const SPECIFICATION = '1.6';
const MODULES = 'node_modules/';

interface LockedPackage {
  readonly name?: string;
  readonly version: string;
  readonly license?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly devOptional?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

export interface LockFile {
  readonly name: string;
  readonly version: string;
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

export interface Component {
  readonly type: 'library' | 'application';
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly scope?: 'required' | 'optional';
  readonly licenses?: readonly object[];
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}

export interface Bom {
  readonly bomFormat: 'CycloneDX';
  readonly specVersion: string;
  readonly version: number;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/**
 * Bill of materials of the package.
 * @param bundled names of packages whose code is in the package, also where package.json calls them development
 * dependencies
 * @throws {Error} in one line when a package that is needed is not locked
 */
export function bomOf(lock: LockFile, bundled: readonly string[]): Bom {
  const { packages } = lock;
  const own = packages['']!;
  const root = component('', { ...own, name: lock.name, version: lock.version }, 'application');
  const first = [...new Set([...namesOf(own), ...bundled])].map((name) => place(packages, '', name)!);
  const edges = new Map<string, readonly string[]>();
  for (const waiting = [...first]; waiting.length > 0; ) {
    const at = waiting.pop()!;
    if (edges.has(at)) continue;
    const next = needsOf(packages, at);
    edges.set(at, next);
    waiting.push(...next);
  }
  const ref = (at: string) => component(at, packages[at]!, 'library')['bom-ref'];
  const sorted = [...edges.keys()].sort();
  return {
    bomFormat: 'CycloneDX',
    specVersion: SPECIFICATION,
    version: 1,
    metadata: { component: root },
    components: unique(sorted.map((at) => component(at, packages[at]!, 'library'))),
    dependencies: merged([
      [root['bom-ref'], first.map(ref)],
      ...sorted.map((at) => [ref(at), edges.get(at)!.map(ref)] as const),
    ]),
  };
}

function namesOf({ dependencies, optionalDependencies }: LockedPackage): string[] {
  return Object.keys({ ...dependencies, ...optionalDependencies });
}

/** Folders of what the package in a folder needs. Optional packages of other platforms are not locked. */
function needsOf(packages: LockFile['packages'], at: string): string[] {
  const { dependencies = {}, optionalDependencies = {} } = packages[at]!;
  const required = Object.keys(dependencies).map((name) => place(packages, at, name)!);
  const optional = Object.keys(optionalDependencies).flatMap((name) => place(packages, at, name, true) ?? []);
  return [...new Set([...required, ...optional])];
}

/** Folder of the package that a package in the folder `from` gets by this name, as Node.js looks for it. */
function place(packages: LockFile['packages'], from: string, name: string, mayLack = false): string | undefined {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf(`/${MODULES}`)))) {
    const candidate = folder === '' ? `${MODULES}${name}` : `${folder}/${MODULES}${name}`;
    if (packages[candidate] !== undefined) return candidate;
    if (folder === '') break;
  }
  if (mayLack) return undefined;
  throw new Error(`package-lock.json has no ${name}, which ${from === '' ? 'the program' : from} needs`);
}

function component(at: string, locked: LockedPackage, type: Component['type']): Component {
  const name = locked.name ?? at.slice(at.lastIndexOf(MODULES) + MODULES.length);
  const { version, license, integrity, optional = false } = locked;
  return {
    type,
    'bom-ref': `${name}@${version}`,
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    ...(type === 'library' && { scope: optional ? 'optional' : 'required' }),
    ...(license !== undefined && { licenses: [licenceOf(license)] }),
    ...(integrity !== undefined && { hashes: integrity.split(' ').map(hashOf) }),
  };
}

/** A licence by its SPDX identifier, or an expression of several. */
function licenceOf(text: string): object {
  return /[ (]/.test(text) ? { expression: text } : { license: { id: text } };
}

/** @param integrity as in package-lock.json, `sha512-` and base64 */
function hashOf(integrity: string) {
  const [algorithm, digest] = integrity.split(/-(.*)/s) as [string, string];
  const names: Readonly<Record<string, string>> = {
    sha512: 'SHA-512',
    sha384: 'SHA-384',
    sha256: 'SHA-256',
    sha1: 'SHA-1',
  };
  return { alg: names[algorithm]!, content: Buffer.from(digest, 'base64').toString('hex') };
}

/** One component for each name and version: a package can lie in several folders. */
function unique(components: readonly Component[]): Component[] {
  return [...new Map(components.map((one) => [one['bom-ref'], one])).values()];
}

function merged(edges: readonly (readonly [string, readonly string[]])[]): Bom['dependencies'] {
  const found = new Map<string, Set<string>>();
  for (const [ref, needs] of edges) {
    const all = found.get(ref) ?? new Set();
    for (const one of needs) all.add(one);
    found.set(ref, all);
  }
  return [...found].map(([ref, needs]) => ({ ref, dependsOn: [...needs].sort() }));
}

if (process.argv[1] === import.meta.filename) {
  const lock = JSON.parse(readFileSync(join(import.meta.dirname, '../../package-lock.json'), 'utf8')) as LockFile;
  process.stdout.write(`${JSON.stringify(bomOf(lock, bundledPackages), null, 2)}\n`);
}
