import { readPlainFile, replaceFile } from '../../runtime/plain-file.js';
import { readProblem } from '../../runtime/read-problem.js';

/** A file that is replaced as a whole. A reader finds the old text or the new one, also after a crash. */
export class StateFile {
  readonly #path: string;
  readonly #bytesMax: number;
  /** The last write; writes run one after another. */
  #last: Promise<void> = Promise.resolve();

  /** @param bytesMax bytes that the file can plausibly have; a larger one is not read */
  constructor(path: string, bytesMax: number) {
    this.#path = path;
    this.#bytesMax = bytesMax;
  }

  get path(): string {
    return this.#path;
  }

  /** The text; undefined without a file. @throws when the file cannot be read */
  async read(): Promise<string | undefined> {
    return (await this.readBytes())?.toString('utf8');
  }

  /** The content; undefined without a file. @throws when the file cannot be read, with `readProblem`'s reason */
  async readBytes(): Promise<Buffer | undefined> {
    try {
      return await readPlainFile(this.#path, this.#bytesMax);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw new Error(`${this.#path} ${readProblem(error)}`);
    }
  }

  /** @throws when the file cannot be written; the old text is still there then */
  write(content: string | Uint8Array): Promise<void> {
    const next = () => replaceFile(this.#path, content);
    const written = this.#last.then(next, next);
    this.#last = written.catch(() => undefined);
    return written;
  }
}
