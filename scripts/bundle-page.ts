// Puts the page of the metrics port (`/ui/`) into three files in dist/page/: no address beyond the port itself.
import { copyFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { build } from 'esbuild';

const page = resolve(import.meta.dirname, '../page');
const out = resolve(process.env.POINTSMAN_DIST ?? resolve(import.meta.dirname, '../dist'), 'page');

await build({
  entryPoints: { page: resolve(page, 'main.ts') },
  outdir: out,
  bundle: true,
  minify: true,
  format: 'esm',
  platform: 'browser',
  target: ['es2024'],
  legalComments: 'inline',
  logLevel: 'warning',
});
await build({
  entryPoints: [resolve(page, 'page.css')],
  outdir: out,
  bundle: true,
  minify: true,
  logLevel: 'warning',
});
await copyFile(resolve(page, 'index.html'), resolve(out, 'index.html'));
