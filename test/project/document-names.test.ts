import { existsSync, globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { SERVE_FLAGS } from '../../dist/src/serve/flag-table.js';
import { ROUTER_FLAGS } from '../../dist/src/serve/router-flags.js';
import { COMMANDS } from '../../dist/tools/commands.js';

const root = new URL('../../', import.meta.url);
const text = (path: string) => readFileSync(new URL(path, root), 'utf8');
const PAGES = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', ...globSync('docs/**/*.md', { cwd: root })];
/** Pages without the comments that readers do not see. */
const prose = (path: string) => text(path).replace(/<!--[\s\S]*?-->/g, '');

const FOLDERS = '(?:src|test|assembly|tools|scripts|bench|deploy|examples|docs|bin|page)';

/** Programs of the checkout, in which the flags of commands and scripts are declared. */
const programs = globSync(['{src,tools,scripts,bench}/**/*.{ts,sh}', 'package.json'], { cwd: root })
  .map(text)
  .join('\n');

/** Flags of other programs that the documents show. */
const FOREIGN_FLAGS = new Set(
  (
    'server-side create-namespace force-conflicts reset-then-reuse-values reuse-values no-git-tag-version ' +
    'certificate-oidc-issuer certificate-identity build-arg omit block-size enable-prefix-caching kv-events-config ' +
    'enable-metrics enable-prompt-tokens-details worker-urls max-concurrent-requests jetstream trace-gc ' +
    'always-sparkplug no-lazy-feedback-allocation enable-scale-out stream-interval radix-eviction-policy ' +
    'enable-priority-scheduling initial-heap-size min-semi-space-size no-parallel-scavenge build-snapshot'
  ).split(' '),
);

/** Milliseconds, bytes or number of a figure in a text: `30 s`, `512 MiB`, `65,536`. */
function figureOf(figure: string): number {
  const [, number, unit = ''] = /^([\d,.]+) ?(ms|s|min|minutes|MiB|GiB|KiB)?$/.exec(figure) ?? [];
  const factor = { ms: 1, s: 1_000, min: 60_000, minutes: 60_000, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 }[unit] ?? 1;
  return Number(number!.replaceAll(',', '')) * factor;
}

describe('names in documents', () => {
  test.each(PAGES)('%s names only files that exist', (page) => {
    const named = [...prose(page).matchAll(new RegExp(`\`(${FOLDERS}/[\\w./*{},-]*)\``, 'g'))].map(([, path]) => path!);
    const exists = (path: string) =>
      /[*{]/.test(path) ? globSync(path, { cwd: root }).length > 0 : existsSync(new URL(path, root));
    expect(named.filter((path) => !exists(path))).toEqual([]);
  });

  test.each(PAGES)('%s names only metrics that the metrics page has', (page) => {
    const metrics = text('docs/reference/metrics.md');
    const named = [
      ...prose(page).matchAll(/\b(?:pointsman|llm_d_epp|inference_(?:extension|objective|pool))_[a-z_]*[a-z]\b/g),
    ];
    const names = named.map(([name]) => name.replace(/_(bucket|sum|count)$/, ''));
    expect([...new Set(names)].filter((name) => !metrics.includes(name))).toEqual([]);
  });

  test.each(PAGES)('%s names only flags that a program has', (page) => {
    const named = new Set([...prose(page).matchAll(/(?<![\w-])--([a-z][\w-]*\w)/g)].map(([, name]) => name!));
    const isKnown = (name: string) =>
      name in SERVE_FLAGS || ROUTER_FLAGS.has(name) || FOREIGN_FLAGS.has(name) || isDeclared(name);
    expect([...named].filter((name) => !isKnown(name))).toEqual([]);
  });

  test.each(PAGES)('%s names only commands of the program', (page) => {
    const named = [...prose(page).matchAll(/`pointsman ([a-z][\w-]*)/g)].map(([, name]) => name!);
    const names = new Set(COMMANDS.map(({ name }) => name));
    expect(named.filter((name) => !names.has(name))).toEqual([]);
  });
});

/** Whether a program of the checkout declares a flag, by its option or in the table of node:util. */
function isDeclared(name: string): boolean {
  return programs.includes(`--${name}`) || new RegExp(`^\\s*'?${name}'?: `, 'm').test(programs);
}

describe('figures in documents', () => {
  const FIGURE = /`--([a-z-]+)` \(([\d,.]+(?: (?:ms|s|min|minutes|MiB|GiB|KiB))?)[),;]/g;
  const figures = PAGES.flatMap((page) =>
    [...prose(page).replace(/\n/g, ' ').matchAll(FIGURE)].map(([, flag, figure]) => ({
      page,
      flag: flag!,
      figure: figure!,
    })),
  ).filter(({ flag }) => flag in SERVE_FLAGS);

  test('the documents tell the defaults of several flags', () => expect(figures.length).toBeGreaterThan(8));

  test.each(figures)('$page tells the default of --$flag: $figure', ({ flag, figure }) => {
    expect(SERVE_FLAGS[flag as keyof typeof SERVE_FLAGS].initial).toBe(figureOf(figure));
  });

  test('docs/compatibility.md tells the largest body by its default', () => {
    const [, figure] = /413 over `--max-request-body-size`; ([\d]+ MiB) unless/.exec(text('docs/compatibility.md'))!;
    expect(SERVE_FLAGS['max-request-body-size'].initial).toBe(figureOf(figure!));
  });

  test('docs/compatibility.md tells the number of configurations that both pickers were started on', () => {
    const [, count] = /how both start on (\d+) configurations/.exec(text('docs/compatibility.md'))!;
    const starts = JSON.parse(text('test/compatibility/router-starts.json')) as Record<string, unknown>;
    expect(Object.keys(starts)).toHaveLength(Number(count));
  });

  test('docs/compatibility.md names every flag of llm-d-router that has no effect', () => {
    const [list] = /- `--health-checking`[\s\S]*?are accepted without effect/.exec(text('docs/compatibility.md'))!;
    const named = [...list.matchAll(/`--([\w-]+)`/g)].map(([, name]) => name!);
    const inert = [...ROUTER_FLAGS].filter(([, { effect }]) => effect.startsWith('none')).map(([name]) => name);
    expect(named.sort()).toEqual(inert.sort());
  });
});
