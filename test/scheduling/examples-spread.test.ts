import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { loadConfiguration } from '../../dist/src/config/load.js';
import type { PluginDefinition } from '../../dist/src/scheduling/plugin.js';
import { ProfilePool, role } from './profile-pool.ts';

const folder = fileURLToPath(new URL('../../examples/', import.meta.url));
const PROMPTS = 300;

/** Configurations of a picker: neither lists of endpoints nor suites of the simulator. */
const files = ['', 'llm-d-router/', 'plugins/'].flatMap((part) =>
  readdirSync(`${folder}${part}`)
    .filter((name) => name.endsWith('.yaml') && !name.startsWith('endpoints'))
    .map((name) => part + name),
);

/** Three idle endpoints that can do everything. */
const ENDPOINTS = Array.from({ length: 3 }, () => role('encode-prefill-decode', { accelerator: 'h100' }));

/** Plugins of the examples themselves. */
async function examplePlugins(): Promise<readonly PluginDefinition[]> {
  const names = readdirSync(`${folder}plugins`).filter((name) => name.endsWith('.js'));
  const modules = await Promise.all(names.map((name) => import(`${folder}plugins/${name}`)));
  return modules.flatMap(({ plugins }: { plugins: readonly PluginDefinition[] }) => plugins);
}

const more = await examplePlugins();

function picksByProfile(file: string): Map<string, number[]> {
  const registry = [...builtinPlugins, ...more];
  const pool = new ProfilePool(
    loadConfiguration({ file: folder + file }, { allowExperimental: true, registry }),
    ENDPOINTS,
    more,
  );
  const counts = new Map<string, number[]>();
  for (let i = 0; i < PROMPTS; i++) {
    const picks = pool.picks({ prompt: `${i}. What is the square of ${i}?` });
    for (const [profile, name] of Object.entries(picks)) {
      const of = counts.get(profile) ?? ENDPOINTS.map(() => 0);
      of[Number(name.slice('pod-'.length))]!++;
      counts.set(profile, of);
    }
  }
  return counts;
}

describe('different short prompts, one after another', () => {
  it.each(files)('different short prompts, one after another spread over idle, equal endpoints with %s', (file) => {
    const counts = [...picksByProfile(file)];
    expect(counts.length).toBeGreaterThan(0);
    for (const [profile, picked] of counts) {
      expect(Math.max(...picked), `${profile}: ${picked}`).toBeLessThanOrEqual(2 * Math.min(...picked));
    }
  });
});
