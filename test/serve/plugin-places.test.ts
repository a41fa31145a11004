import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { PluginGuard } from '../../dist/src/scheduling/hooks/plugin-guard.js';
import { pointsman } from './program.ts';

const folder = mkdtempSync(join(tmpdir(), 'my plugins-'));
afterAll(() => rmSync(folder, { recursive: true }));

function module(name: string, text: string): { readonly path: string; readonly address: string } {
  const path = join(folder, name);
  writeFileSync(path, text);
  return { path, address: pathToFileURL(path).href };
}

describe('errors of plugins come with file, line and column', () => {
  it.each([
    ['syntax.mjs', 'const a = 1;\nconst = 2;\n', ':2:7: '],
    ['throws.mjs', '\n\nthrow new Error("not today");\n', ':3:7: not today'],
    ['unknown.mjs', 'import { nothing } from "node:fs";\n', ':1:10: '],
    ['undefined.mjs', 'export const plugins = [];\nplugins.push(unknownName());\n', ':2:9: unknownName is not defined'],
  ])('a module that cannot be loaded is placed: %s', (name, text, place) => {
    const { path } = module(name, text);
    const { status, stderr } = pointsman('lint', join(folder, 'none.yaml'), '--plugin', path);
    expect(stderr).toContain(`cannot be loaded: ${path}${place}`);
    expect(status).toBe(1);
  });

  it('a hook that throws is placed in the log', async () => {
    const { path, address } = module('hook.mjs', 'export const score = () => {\n  return undefined.length;\n};\n');
    const { score } = (await import(address)) as { score: () => number };
    const logged: { error?: string }[] = [];
    const log = { info: () => {}, warn: () => {}, error: (details: object) => logged.push(details) };
    const guard = new PluginGuard({ name: 'mine', budgetMs: 5, now: () => 0, failed: () => {}, log });
    while (!guard.disabled) guard.run('score', score, 0);
    expect(logged[0]!.error).toMatch(new RegExp(`^${path}:2:\\d+: Cannot read properties of undefined`));
  });
});
