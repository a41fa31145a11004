// Results of chapters on their way to the page: one file for each chapter, in a folder of the commit that it measured.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Noise } from './performance-doc.ts';

export interface ChapterResult {
  /** Noise of the machine before and after the chapter. */
  readonly noise: readonly [Noise, Noise];
  readonly rows: readonly unknown[];
}

/** What decides the figures; documents may differ. */
const MEASURED = ['src', 'tools', 'assembly', 'bench', 'bin', 'package-lock.json'];

/**
 * The commit that a checkout would measure.
 * @throws when what is measured differs from the commit: its name would stand beside figures of something else
 */
export function measuredCommit(root: string): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  const changed = git('status', '--porcelain', '--', ...MEASURED);
  if (changed !== '') throw new Error(`figures name a commit: commit these first\n${changed}`);
  return git('log', '-1', '--format=%h', '--', ...MEASURED);
}

export class ResultFolder {
  readonly #path: string;

  constructor(root: string, commit: string) {
    this.#path = join(root, 'performance-results', commit);
  }

  /** @returns undefined = the chapter was not measured at this commit */
  read(chapter: string): ChapterResult | undefined {
    const file = join(this.#path, `${chapter}.json`);
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as ChapterResult) : undefined;
  }

  write(chapter: string, result: ChapterResult): void {
    mkdirSync(this.#path, { recursive: true });
    writeFileSync(join(this.#path, `${chapter}.json`), JSON.stringify(result));
  }
}
