import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { errorTexts } from './error-texts.ts';

const page = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8');
/** Texts of the catalogue: the code span that stands for itself in a cell of its row. */
const listed = page
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| ---'))
  .flatMap((line) => {
    const cells = line.split(' | ').map((cell) => cell.replace(/^\| /, ''));
    const text = cells.find((cell) => /^`.*`$/.test(cell) && !/^`rejected-[a-z-]+`$/.test(cell));
    return text === undefined ? [] : [text.slice(1, -1)];
  });
const thrown = errorTexts();

describe('the catalogue of errors', () => {
  test('the catalogue of errors has every refusal and start-up error of the code', () => {
    expect(thrown.filter(({ text }) => !listed.includes(text)).map(({ file, text }) => `${file}: ${text}`)).toEqual([]);
  });

  test('the catalogue of errors lists no text that the code does not have', () => {
    const texts = new Set(thrown.map(({ text }) => text));
    expect(listed.filter((text) => !texts.has(text))).toEqual([]);
  });

  test('the catalogue of errors gives every row a remedy', () => {
    const rows = page.split('\n').filter((line) => /^\| .*`/.test(line));
    expect(rows.filter((line) => /\|\s*\|$/.test(line))).toEqual([]);
  });
});
