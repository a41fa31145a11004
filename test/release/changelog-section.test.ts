import { describe, expect, it } from 'vitest';
import { changelogSection } from '../../scripts/release/changelog-section.ts';

const CHANGELOG =
  '# Changelog\n\n## Unreleased\n\n- later\n\n## 1.10.0 (2027-01-02)\n\n- ten\n\n### Removed\n\n- one\n\n## ' +
  '1.1.0\n\n- old\n\n## 1.0.0\n\n';

describe('the section of a changelog', () => {
  it('the section of a version ends before the next one and keeps its own headings', () => {
    expect(changelogSection(CHANGELOG, '1.10.0')).toBe('- ten\n\n### Removed\n\n- one\n');
    expect(changelogSection(CHANGELOG, '1.1.0')).toBe('- old\n');
  });

  it.each([
    ['2.0.0', 'CHANGELOG.md has no section "## 2.0.0"; its first one is "Unreleased"'],
    ['1.1', 'CHANGELOG.md has no section "## 1.1"'],
    ['1.0.0', 'the section "## 1.0.0" of CHANGELOG.md is empty'],
  ])('a section of %s is refused in words', (version, message) => {
    expect(() => changelogSection(CHANGELOG, version)).toThrow(message);
  });
});
