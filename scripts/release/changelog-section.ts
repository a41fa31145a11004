// Prints the section of a version of CHANGELOG.md, as the text of its release: `node
// scripts/release/changelog-section.ts 1.2.0`.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Text of the section `## <version>` or `## <version> (<date>)`, without its heading.
 * @throws {Error} in one line when there is no such section, or nothing in it
 */
export function changelogSection(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m).slice(1);
  const headings = sections.map((section) => section.split('\n', 1)[0]!.trim());
  const at = headings.findIndex((heading) => heading.split(' ')[0] === version);
  if (at < 0) {
    const first = headings[0] ?? 'none';
    throw new Error(`CHANGELOG.md has no section "## ${version}"; its first one is "${first}"`);
  }
  const text = sections[at]!.slice(sections[at]!.indexOf('\n') + 1).trim();
  if (text === '') throw new Error(`the section "## ${version}" of CHANGELOG.md is empty`);
  return `${text}\n`;
}

if (process.argv[1] === import.meta.filename) {
  const changelog = readFileSync(join(import.meta.dirname, '../../CHANGELOG.md'), 'utf8');
  process.stdout.write(changelogSection(changelog, process.argv[2] ?? ''));
}
