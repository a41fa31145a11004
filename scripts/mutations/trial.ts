// A copy of the repository in a folder of its own, in which tests run against mutated modules.
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export type Outcome = 'passed' | 'failed' | 'timeout';

export interface TestRun {
  readonly outcome: Outcome;
  readonly seconds: number;
}

/** Folders that tests need and that no test changes. */
const LINKED = ['node_modules', '.tools'];

/** Holds the copy; the working tree is only read. */
export class Trial {
  readonly #root: string;

  /** Copies the tracked files, the new ones that git does not ignore, and dist/. @param from a working tree, built */
  constructor(from: string) {
    this.#root = mkdtempSync(join(tmpdir(), 'mutations-'));
    const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: from, encoding: 'utf8' });
    for (const path of listed.split('\n').filter((line) => line !== '' && existsSync(join(from, line)))) {
      mkdirSync(dirname(join(this.#root, path)), { recursive: true });
      cpSync(join(from, path), join(this.#root, path));
    }
    cpSync(join(from, 'dist'), join(this.#root, 'dist'), { recursive: true });
    for (const folder of LINKED.filter((name) => existsSync(join(from, name)))) {
      symlinkSync(join(from, folder), join(this.#root, folder));
    }
  }

  /** Runs test files with another text in the place of a module, which it puts back. */
  async withModule(module: string, text: string, files: readonly string[], limitSeconds: number): Promise<TestRun> {
    const path = join(this.#root, module);
    const before = readFileSync(path, 'utf8');
    writeFileSync(path, text);
    try {
      return await this.run(files, limitSeconds);
    } finally {
      writeFileSync(path, before);
    }
  }

  /** Runs test files one after the other, up to the first failure. */
  run(files: readonly string[], limitSeconds: number): Promise<TestRun> {
    const begin = performance.now();
    const vitest = join(this.#root, 'node_modules/vitest/vitest.mjs');
    const child = spawn(process.execPath, [vitest, 'run', '--bail=1', '--no-file-parallelism', ...files], {
      cwd: this.#root,
      detached: true,
      stdio: 'ignore',
    });
    return new Promise((resolve, reject) => {
      let late = false;
      // The group: tests start processes of their own.
      const end = () => {
        late = true;
        process.kill(-child.pid!, 'SIGKILL');
      };
      const timer = setTimeout(end, limitSeconds * 1_000);
      child.on('error', reject);
      child.on('exit', (code) => {
        clearTimeout(timer);
        const outcome = late ? 'timeout' : code === 0 ? 'passed' : 'failed';
        resolve({ outcome, seconds: (performance.now() - begin) / 1_000 });
      });
    });
  }

  remove(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }
}
