// A copy of the repository in a folder of its own, in which tests run against mutated modules.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export type Outcome = 'passed' | 'failed' | 'timeout';

export interface TestRun {
  readonly outcome: Outcome;
  readonly seconds: number;
}

/** Configuration of the repository's own tests with what a mutation run adds; a copy without one has none. */
const CONFIG = 'scripts/mutations/vitest.config.ts';
/** Folders that tests need and that no test changes. */
const LINKED = ['node_modules', '.tools'];

/** Holds the copy; the working tree is only read. */
export class Trial {
  /** Root of the copy. */
  readonly root: string;
  #child: ChildProcess | undefined;

  /** Copies the tracked files, the new ones that git does not ignore, and dist/. @param from a working tree, built */
  constructor(from: string) {
    this.root = mkdtempSync(join(tmpdir(), 'mutations-'));
    const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: from, encoding: 'utf8' });
    for (const path of listed.split('\n').filter((line) => line !== '' && existsSync(join(from, line)))) {
      mkdirSync(dirname(join(this.root, path)), { recursive: true });
      cpSync(join(from, path), join(this.root, path));
    }
    cpSync(join(from, 'dist'), join(this.root, 'dist'), { recursive: true });
    for (const folder of LINKED.filter((name) => existsSync(join(from, name)))) {
      symlinkSync(join(from, folder), join(this.root, folder));
    }
  }

  /** Text of a file of the copy. */
  text(path: string): string {
    return readFileSync(this.path(path), 'utf8');
  }

  /** Path of a file of the copy. */
  path(path: string): string {
    return join(this.root, path);
  }

  /** Writes files into the copy. @param contents texts by path */
  write(contents: ReadonlyMap<string, string>): void {
    for (const [path, text] of contents) writeFileSync(this.path(path), text);
  }

  /** Does something with another content in the place of a file, which is put back. */
  async withFile<T>(path: string, content: string | Uint8Array, run: () => Promise<T>): Promise<T> {
    const at = this.path(path);
    const before = readFileSync(at);
    writeFileSync(at, content);
    try {
      return await run();
    } finally {
      writeFileSync(at, before);
    }
  }

  /** Runs a test file up to its first failure. */
  run(file: string, limitSeconds: number, env: Readonly<Record<string, string>> = {}): Promise<TestRun> {
    const begin = performance.now();
    const vitest = join(this.root, 'node_modules/vitest/vitest.mjs');
    const config = existsSync(join(this.root, CONFIG)) ? ['-c', CONFIG] : [];
    const child = spawn(process.execPath, [vitest, 'run', ...config, '--bail=1', file], {
      cwd: this.root,
      detached: true,
      stdio: 'ignore',
      env: { ...process.env, ...env },
    });
    this.#child = child;
    return new Promise((resolve, reject) => {
      let late = false;
      const end = () => {
        late = true;
        this.#endChild();
      };
      const timer = setTimeout(end, limitSeconds * 1_000);
      child.on('error', reject);
      child.on('exit', (code) => {
        clearTimeout(timer);
        this.#child = undefined;
        const outcome = late ? 'timeout' : code === 0 ? 'passed' : 'failed';
        resolve({ outcome, seconds: (performance.now() - begin) / 1_000 });
      });
    });
  }

  /** Removes the copy, after the end of a test that runs. */
  remove(): void {
    this.#endChild();
    rmSync(this.root, { recursive: true, force: true });
  }

  /** Ends the test that runs, with the processes that it has started. */
  #endChild(): void {
    if (this.#child?.pid !== undefined) process.kill(-this.#child.pid, 'SIGKILL');
  }
}
