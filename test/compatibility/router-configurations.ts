import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Outcome } from './router-start.ts';

const EXAMPLES = fileURLToPath(new URL('../../examples/llm-d-router', import.meta.url));
const RECORDED = new URL('router-starts.json', import.meta.url);

/** How both pickers start on one configuration. */
export interface RouterStart {
  readonly 'llm-d-router': Outcome;
  readonly pointsman: Outcome;
}

/** The recorded starts by name of the configuration. */
export function recordedStarts(): Readonly<Record<string, RouterStart>> {
  return existsSync(RECORDED) ? JSON.parse(readFileSync(RECORDED, 'utf8')) : {};
}

/** The kept configurations, and those of `folder`: names begin with `examples/` or `llm-d-router/`. */
export function configurations(
  folder: string | undefined,
): readonly { readonly name: string; readonly text: string }[] {
  const read = (from: string, prefix: string) =>
    readdirSync(from)
      .filter((name) => name.endsWith('.yaml') && !name.startsWith('endpoints'))
      .sort()
      .map((name) => ({ name: `${prefix}/${name}`, text: readFileSync(join(from, name), 'utf8') }));
  return [...read(EXAMPLES, 'examples'), ...(folder === undefined ? [] : read(folder, 'llm-d-router'))];
}
