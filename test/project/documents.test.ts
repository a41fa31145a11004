import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { memoryMap } from '../../scripts/memory-map.ts';
import { notice } from '../../scripts/notice.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const text = (path: string) => readFileSync(join(root, path), 'utf8');
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'SECURITY.md',
  ...readdirSync(join(root, 'docs'), { recursive: true }).map((f) => `docs/${f}`),
].filter((path) => path.endsWith('.md'));

describe('documents', () => {
  test('the memory map is what the code says; "npm run memory-map" renews it', () => {
    expect(text('docs/memory-map.md')).toBe(memoryMap());
  });

  test.each(['COMMIT_LOCK', 'INDEX_LOCK'])('docs/internals/core.md names every file that takes the %s', (lock) => {
    const files = readdirSync(join(root, 'assembly'), { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && text(`assembly/${file}`).includes(`lockAcquire(${lock}`),
    );
    const name = lock.replace('_LOCK', '').toLowerCase();
    const rows = text('docs/internals/core.md')
      .split('\n')
      .filter((line) => line.startsWith(`| ${name} |`));
    const named = rows.flatMap((row) => [...row.matchAll(/`([\w/-]+\.ts)`/g)].map((match) => match[1]!));
    expect(named.sort()).toEqual(files.sort());
  });

  test('every memory region, header word and endpoint column is on the map', () => {
    const sources = text('assembly/memory.ts') + text('assembly/endpoints.ts');
    const names = [...sources.matchAll(/^export const (?:REGION|HEADER|COLUMN)_(\w+):/gm)].map((match) => match[1]!);
    const map = text('docs/memory-map.md');
    expect(names.filter((name) => name !== 'COUNT' && !map.includes(`\`${name}\``))).toEqual([]);
  });

  test.each(pages)('%s has no dead link to a file of the project', (page) => {
    const links = [...text(page).matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)].map((match) => match[1]!);
    expect(links.filter((link) => !existsSync(join(root, dirname(page), link)))).toEqual([]);
  });

  test.each(pages)('every table of %s begins with a row of titles', (page) => {
    const lines = text(page).split('\n');
    const begins = (line: string, i: number) => line.startsWith('|') && !(lines[i - 1] ?? '').startsWith('|');
    const untitled = lines.filter((line, i) => begins(line, i) && !/^\|[ :|-]+\|$/.test(lines[i + 1] ?? ''));
    expect(untitled).toEqual([]);
  });

  test.each(['kubernetes', 'soundness'])('docs/internals/%s.md names tests that exist', (page) => {
    const named = [...text(`docs/internals/${page}.md`).matchAll(/\]\(\.\.\/\.\.\/(test\/[^)]+)\) `([^`]+)`/g)];
    const missing = named.filter(([, file, title]) => !text(file!).includes(title!)).map(([, ...names]) => names);
    expect(named.length).toBeGreaterThan(50);
    expect(missing).toEqual([]);
  });

  test.each(pages)('%s names only npm scripts that exist', (page) => {
    const { scripts } = JSON.parse(text('package.json')) as { scripts: Record<string, string> };
    const named = [...text(page).matchAll(/npm run (?:-s )?([\w:-]+)/g)].map((match) => match[1]!);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });

  test('docs/README.md lists every page', () => {
    const index = text('docs/README.md');
    const listed = pages.filter((page) => page.startsWith('docs/') && page !== 'docs/README.md');
    expect(listed.filter((page) => !index.includes(`(${page.replace('docs/', '')}`))).toEqual([]);
  });

  test('comments that give a document as their source name a page of this project', () => {
    const sources = ['src', 'tools', 'assembly'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts'))
        .map((file) => `${folder}/${file}`),
    );
    const vague = sources.filter((file) => /design §|design notes|design document/i.test(text(file)));
    const named = sources.flatMap((file) => [...text(file).matchAll(/docs\/[\w/-]+\.md/g)].map((match) => match[0]));
    expect(vague).toEqual([]);
    expect([...new Set(named)].filter((page) => !existsSync(join(root, page)))).toEqual([]);
  });

  test('the NOTICE carries the licence of every bundled package; "npm run notice" renews it', () => {
    expect(text('NOTICE')).toBe(notice());
  });

  test('the README shows the command that runs it and the command that tests it', () => {
    const readme = text('README.md');
    expect(readme).toContain('npm ci && npm start');
    expect(readme).toContain('npm ci && npm test');
  });

  test('the README lists every sample configuration', () => {
    const readme = text('README.md');
    const samples = readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.yaml'));
    expect(
      samples.filter(
        (name) => !readme.includes(`| \`examples/${name}\``) && !readme.includes(`, \`examples/${name}\``),
      ),
    ).toEqual([]);
  });

  test('the licence is Apache 2.0, in full, in the file and in the package', () => {
    const licence = text('LICENSE');
    expect(licence).toContain('Apache License');
    expect(licence).toContain('END OF TERMS AND CONDITIONS');
    expect((JSON.parse(text('package.json')) as { license: string }).license).toBe('Apache-2.0');
  });
});

describe('container image', () => {
  const lines = text('Dockerfile').split('\n');
  const finalStage = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM '))).join('\n');

  test('container image runs the program in exec form, so that the container arguments are the program’s', () => {
    expect(finalStage).toContain('ENTRYPOINT ["node", "/app/bin/pointsman.js"]');
    expect(finalStage).not.toMatch(/^CMD /m);
  });

  /** Sources of COPY lines that come from the checkout. */
  const copied = lines
    .filter((line) => line.startsWith('COPY ') && !line.includes('--from='))
    .flatMap((line) => line.split(/\s+/).slice(1, -1));

  test('container image copies nothing that .dockerignore leaves out', () => {
    const ignore = text('.dockerignore').split('\n');
    expect(ignore).toContain('*');
    expect(copied.filter((source) => !ignore.includes(`!${source.split('/')[0]}`))).toEqual([]);
    expect(copied.filter((source) => !existsSync(join(root, source)))).toEqual([]);
  });

  test('container image copies every script that the build runs', () => {
    const { scripts } = JSON.parse(text('package.json')) as { scripts: Record<string, string> };
    const build = Object.entries(scripts).filter(([name]) => name.startsWith('build:'));
    const run = build.flatMap(([, command]) => [...command.matchAll(/scripts\/[\w.-]+/g)].map((match) => match[0]));
    expect(run).not.toEqual([]);
    expect(run.filter((script) => !copied.some((source) => script.startsWith(source)))).toEqual([]);
  });

  test('container image runs as a user that is not root, named by number', () => {
    expect(finalStage).toMatch(/^USER 65532:65532$/m);
  });

  test('container image installs nothing in the final stage', () => {
    expect(finalStage).not.toMatch(/^RUN .*(npm|apt)/m);
  });
});
