import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { definePlugin } from '../../dist/src/scheduling/plugin.js';
import { poolsSchemaText, schemaText } from '../../dist/tools/schema/schema.js';
import { pluginPage } from '../../scripts/plugin-docs.ts';

const text = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

test('the plugin page is what the definitions say; "npm run plugin-docs" renews it', () => {
  expect(text('docs/plugins.md')).toBe(pluginPage());
});

test('the JSON Schema in docs is what "pointsman schema" prints; "npm run plugin-docs" renews it', () => {
  expect(text('docs/endpoint-picker-config.schema.json')).toBe(schemaText());
  expect(text('docs/pools.schema.json')).toBe(poolsSchemaText());
});

test('every type has a section with its stability and its source', () => {
  const page = pluginPage();
  for (const { type, stability } of builtinPlugins) {
    const section = page.slice(page.indexOf(`\n### ${type}\n`)).slice(0, 3000);
    expect(section, type).toMatch(new RegExp(`^\\n### ${type}\\n`));
    expect(section, type).toContain(`stability: ${stability}`);
    expect(section, type).toMatch(/Source: .+\./);
  }
});

test('parameters are shown with type, range, default and meaning, those of lists and mappings behind their own', () => {
  const definition = definePlugin({
    type: 'sample-scorer',
    kinds: ['scorer'],
    stability: 'Alpha',
    doc: 'Does this. And that.',
    source: 'a paper',
    parameters: z.strictObject({
      share: z.number().gt(0).max(1).default(0.5).describe('A share.'),
      rules: z.array(z.strictObject({ key: z.string().min(1).describe('A | key.') })).describe('Rules.'),
    }),
  });
  const page = pluginPage([definition]);
  expect(page).toContain('| [`sample-scorer`](#sample-scorer) | Alpha | Does this. |');
  expect(page).toContain('Kind: scorer · stability: Alpha. Source: a paper.');
  expect(page).toContain('| `share` | number > 0, ≤ 1 | `0.5` | A share. |');
  expect(page).toContain(
    '| `rules` | list of mappings | required | Rules. |\n| `rules[].key` | text, not empty | required | A \\| key. |',
  );
});
