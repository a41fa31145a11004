import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/config/builtin-plugins.js';
import { loadConfiguration } from '../../dist/config/load.js';

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
