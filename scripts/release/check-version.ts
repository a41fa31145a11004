// Ends with exit code 1 when a tag is not the version of everything that is released: `node
// scripts/release/check-version.ts v1.2.0`.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { changelogSection } from './changelog-section.ts';

interface Chart {
  readonly version: string;
  readonly appVersion?: string;
  readonly dependencies?: readonly { readonly name: string; readonly version: string }[];
}

/** What keeps this tree from being released as `tag`; a line each. @param root folder with package.json */
export function versionProblems(root: string, tag: string): readonly string[] {
  const text = (path: string) => readFileSync(join(root, path), 'utf8');
  if (!/^v\d+\.\d+\.\d+$/.test(tag)) return [`the tag ${JSON.stringify(tag)} is not v<major>.<minor>.<patch>`];
  const version = tag.slice(1);
  const lock = JSON.parse(text('package-lock.json')) as { readonly version: string };
  const places = new Map([
    ['package.json', (JSON.parse(text('package.json')) as { readonly version: string }).version],
    ['package-lock.json', lock.version],
    ...chartVersions(root),
  ]);
  const problems = [...places]
    .filter(([, found]) => found !== version)
    .map(([place, found]) => `${place} has version ${found}, and the tag says ${version}`);
  if (!existsSync(join(root, 'test/compatibility/fixtures', version)))
    problems.push(`test/compatibility/fixtures/${version} is missing: run npm run compatibility-fixtures`);
  try {
    changelogSection(text('CHANGELOG.md'), version);
  } catch (error) {
    problems.push((error as Error).message);
  }
  return problems;
}

/** Versions of the charts, of the program that they run, and of the charts that they contain. */
function chartVersions(root: string): (readonly [string, string])[] {
  const folder = join(root, 'deploy/charts');
  return readdirSync(folder).flatMap((name) => {
    const path = `deploy/charts/${name}/Chart.yaml`;
    const { version, appVersion, dependencies = [] } = parse(readFileSync(join(root, path), 'utf8')) as Chart;
    return [
      [path, version] as const,
      ...(appVersion === undefined ? [] : [[`${path} (appVersion)`, appVersion] as const]),
      ...dependencies.map((one) => [`${path} (dependency ${one.name})`, one.version] as const),
    ];
  });
}

if (process.argv[1] === import.meta.filename) {
  const problems = versionProblems(join(import.meta.dirname, '../..'), process.argv[2] ?? '');
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
