import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { serveHelp } from '../../dist/src/serve/flags.js';
import { flagsPage, metricsPage } from '../../scripts/reference-docs.ts';

const text = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

describe('the reference', () => {
  it('docs/reference/flags.md is what the table of flags says; "npm run reference-docs" renews it', () => {
    expect(text('docs/reference/flags.md')).toBe(flagsPage());
  });

  it('docs/reference/metrics.md is what the registrations say; "npm run reference-docs" renews it', () => {
    expect(text('docs/reference/metrics.md')).toBe(metricsPage());
  });

  it('docs/reference/flags.md has the flags of --help, and no others', () => {
    const flags = (page: string, pattern: RegExp) => [...page.matchAll(pattern)].map(([, name]) => name).sort();
    const [own] = text('docs/reference/flags.md').split('## Flags of llm-d-router');
    expect(flags(own!, /^\| `--([\w-]+)/gm)).toEqual(flags(serveHelp(), /^ {2}--([\w-]+)/gm));
  });
});
