import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './served-pool.ts';

/** Names that users write into command lines, alerts, configurations and programs. */
export interface StableNames {
  readonly flags: readonly string[];
  readonly metrics: readonly string[];
  readonly plugins: readonly string[];
  readonly commands: readonly string[];
  readonly pages: readonly string[];
  readonly exports: readonly string[];
  readonly pluginApi: readonly string[];
}

/** Names of this version, by the generated references. */
export function stableNames(): StableNames {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, unknown>>;
  };
  return {
    flags: named('docs/reference/flags.md', /^\| `(--[\w-]+)/gm),
    metrics: named('docs/reference/metrics.md', /^\| `([a-z_]+)`/gm),
    plugins: named('docs/plugins.md', /^### ([\w-]+)/gm),
    commands: named('docs/reference/flags.md', /^\| `pointsman \[?([\w-]+)/gm),
    pages: named('docs/reference/http.md', /^\| `(\/[^`]*)`/gm),
    exports: Object.keys(exports).sort(),
    pluginApi: named(
      'dist/src/scheduling/plugin.d.ts',
      /^export (?:declare )?(?:const|function|interface|type|class) (\w+)/gm,
    ),
  };
}

function named(file: string, pattern: RegExp): readonly string[] {
  const names = [...readFileSync(join(root, file), 'utf8').matchAll(pattern)].map(([, name]) => name!);
  return [...new Set(names)].sort();
}
