import { execFile } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { versionProblems } from '../../scripts/release/check-version.ts';
import type { Bom } from '../../scripts/release/sbom.ts';
import { helmSkipReason } from '../charts/helm.ts';
import { root, workflow } from './workflows.ts';

const run = promisify(execFile);
const STEPS_MS_MAX = 180_000;

/** Steps of the job that do what the suite or .ci/run has done already. */
const DONE_BEFORE = ['install', 'build', 'install Helm'];

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { readonly version: string };
let folder: string;
const inTree = (...path: string[]) => join(folder, 'tree', ...path);
const inRelease = (...path: string[]) => join(folder, 'release', ...path);

/** A copy of what a release is made of, whose changelog has a section of this version. */
function copyTree(): void {
  const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly files: readonly string[];
  };
  const packed = files.filter((name) => !name.startsWith('!'));
  for (const name of [...packed, 'package.json', 'package-lock.json', 'scripts', 'test/compatibility']) {
    cpSync(join(root, name), inTree(name), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), inTree('node_modules'));
  const changelog = readFileSync(inTree('CHANGELOG.md'), 'utf8');
  writeFileSync(inTree('CHANGELOG.md'), changelog.replace(/^## .*$/m, `## ${version} (2026-11-23)`));
}

const environment = (): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}`,
  HELM_BIN: process.env.HELM_BIN ?? join(root, '.tools/helm/helm'),
  TAG: `v${version}`,
  REPOSITORY: 'owner/pointsman',
  RELEASE: inRelease(),
});

describe.skipIf(helmSkipReason !== '')(`the job that packs a release${helmSkipReason}`, () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'release-'));
    copyTree();
    for (const { name, run: script } of workflow('release.yml').jobs.pack!.steps!) {
      if (script === undefined || DONE_BEFORE.includes(name!)) continue;
      const bash = ['--noprofile', '--norc', '-eo', 'pipefail', '-c', script];
      await run('bash', bash, { cwd: inTree(), env: environment() }).catch((error: Error) => {
        throw new Error(`the step "${name}" failed: ${error.message}`);
      });
    }
  }, STEPS_MS_MAX);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('the job makes the package, its list of contents, both charts, the notes and the checksums', async () => {
    expect((await readdir(inRelease())).sort()).toEqual([
      'SHA256SUMS',
      'notes.md',
      `pointsman-${version}.cdx.json`,
      `pointsman-${version}.tgz`,
      `pointsman-gateway-${version}.tgz`,
      `pointsman-standalone-${version}.tgz`,
    ]);
  });

  it('the checksums hold for every file that is published', async () => {
    const { stdout } = await run('sha256sum', ['--check', 'SHA256SUMS'], { cwd: inRelease() });
    expect(stdout.trim().split('\n')).toHaveLength(4);
  });

  it('the packed package names the repository that its provenance names', async () => {
    const { stdout } = await run('tar', ['-xzOf', inRelease(`pointsman-${version}.tgz`), 'package/package.json']);
    expect(JSON.parse(stdout)).toMatchObject({
      version,
      repository: { type: 'git', url: 'git+https://github.com/owner/pointsman.git' },
    });
  });

  it('the notes are the section of the changelog', async () => {
    const notes = await readFile(inRelease('notes.md'), 'utf8');
    expect(notes).not.toMatch(/^## /m);
    expect(readFileSync(inTree('CHANGELOG.md'), 'utf8')).toContain(notes.trim());
  });

  it.each(['gateway', 'standalone'])(
    'the packed chart %s has the version and brings its library along',
    async (name) => {
      const file = inRelease(`pointsman-${name}-${version}.tgz`);
      const inside = (path: string) => run('tar', ['-xzOf', file, `pointsman-${name}/${path}`]);
      expect(parse((await inside('Chart.yaml')).stdout)).toMatchObject({ version, appVersion: version });
      expect((await inside('charts/router/Chart.yaml')).stdout).toContain('name: router');
    },
  );

  it('the list of contents has every package that NOTICE has, and no tool of the build', async () => {
    const bom = JSON.parse(await readFile(inRelease(`pointsman-${version}.cdx.json`), 'utf8')) as Bom;
    const listed = new Set(bom.components.map((one) => one['bom-ref']));
    const notice = readFileSync(join(root, 'NOTICE'), 'utf8');
    const bundled = [...notice.matchAll(/^(\S+) (\d\S*) · /gm)].map(([, name, number]) => `${name}@${number}`);
    expect(bundled.length).toBeGreaterThan(8);
    expect(bundled.filter((one) => !listed.has(one))).toEqual([]);
    expect([...listed].filter((one) => /^(vitest|typescript|esbuild|@biomejs\/)/.test(one))).toEqual([]);
  });

  it('the list of contents is CycloneDX whose every reference has its component', async () => {
    const bom = JSON.parse(await readFile(inRelease(`pointsman-${version}.cdx.json`), 'utf8')) as Bom;
    expect([bom.bomFormat, bom.specVersion, bom.version]).toEqual(['CycloneDX', '1.6', 1]);
    const known = [bom.metadata.component, ...bom.components].map((one) => one['bom-ref']);
    expect(new Set(known).size).toBe(known.length);
    expect(bom.dependencies.map(({ ref }) => ref).sort()).toEqual([...known].sort());
    expect(bom.dependencies.flatMap(({ dependsOn }) => dependsOn).filter((ref) => !known.includes(ref))).toEqual([]);
    expect(bom.components.filter(({ purl }) => !/^pkg:npm\/(%40[\w.-]+\/)?[\w.-]+@\d/.test(purl))).toEqual([]);
  });

  it.each([
    ['v9.9.9', /package\.json has version .*, and the tag says 9\.9\.9/],
    ['1.0', /is not v<major>\.<minor>\.<patch>/],
    ['v9.9.9', /fixtures\/9\.9\.9 is missing/],
    ['v9.9.9', /CHANGELOG\.md has no section "## 9\.9\.9"/],
    ['v9.9.9', /Chart\.yaml \(dependency router\) has version/],
  ])('a release of the tag %s is refused: %s', (tag, problem) => {
    expect(versionProblems(inTree(), tag).join('\n')).toMatch(problem);
  });
});
