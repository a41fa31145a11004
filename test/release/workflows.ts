import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export const root = fileURLToPath(new URL('../../', import.meta.url));
const FOLDER = join(root, '.github/workflows');

export interface Step {
  readonly name?: string;
  readonly uses?: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string | number>>;
}

export interface Job {
  readonly uses?: string;
  readonly needs?: readonly string[];
  readonly steps?: readonly Step[];
  readonly permissions?: Readonly<Record<string, string>>;
}

export interface Workflow {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

export const WORKFLOWS: readonly string[] = readdirSync(FOLDER).sort();

export const pathOf = (name: string) => join(FOLDER, name);

export function workflow(name: string): Workflow {
  return parse(readFileSync(pathOf(name), 'utf8')) as Workflow;
}
