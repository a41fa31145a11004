import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { loadConfiguration } from '../../dist/src/config/load.js';

const folder = fileURLToPath(new URL('../../examples/', import.meta.url));
const files = readdirSync(folder).filter((name) => name.endsWith('.yaml') && !name.startsWith('endpoints'));

describe('the sample configurations', () => {
  it('the sample configurations are there', () => {
    expect(files).toEqual(expect.arrayContaining(['active-blocks.yaml', 'labelled-pool.yaml', 'prefix-and-load.yaml']));
  });

  it.each(files)('%s loads without a warning and finds endpoints', (file) => {
    const options = { allowExperimental: false, registry: builtinPlugins };
    const configuration = loadConfiguration({ file: `${folder}${file}` }, options);
    expect(configuration.warnings).toEqual([]);
    expect(configuration.discovery?.type).toBe('file-discovery');
  });
});

const docs = fileURLToPath(new URL('../../docs/', import.meta.url));

/** Whole configurations in the YAML blocks of the documents. */
const written = readdirSync(docs, { recursive: true, encoding: 'utf8' })
  .filter((page) => page.endsWith('.md'))
  .flatMap((page) =>
    [...readFileSync(join(docs, page), 'utf8').matchAll(/^```yaml\n(.*?)^```$/gms)]
      .filter(([, text]) => /^kind: EndpointPickerConfig$/m.test(text!))
      .map(([, text]) => ({ page, text: text! })),
  );

describe('the configurations in the documents', () => {
  it('the documents have whole configurations', () => {
    expect(written.map(({ page }) => page)).toEqual(expect.arrayContaining(['configuration.md', 'guides/engines.md']));
  });

  it.each(written)('the configuration of $page loads without a warning', ({ text }) => {
    const options = { allowExperimental: true, registry: builtinPlugins };
    expect(loadConfiguration({ text }, options).warnings).toEqual([]);
  });
});
