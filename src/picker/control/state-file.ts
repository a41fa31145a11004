import { readFile, rename, writeFile } from 'node:fs/promises';

/** A file that is replaced as a whole. A reader finds the old text or the new one, also after a crash. */
export class StateFile {
  readonly #path: string;
  /** The last write; writes run one after another. */
  #last: Promise<void> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  get path(): string {
    return this.#path;
  }

  /** The text; undefined without a file. @throws when the file cannot be read */
  async read(): Promise<string | undefined> {
    try {
      return await readFile(this.#path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** The content; undefined without a file. @throws when the file cannot be read */
  async readBytes(): Promise<Uint8Array | undefined> {
    try {
      return await readFile(this.#path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** @throws when the file cannot be written; the old text is still there then */
  write(content: string | Uint8Array): Promise<void> {
    const next = async () => {
      const beside = `${this.#path}.new`;
      await writeFile(beside, content, { flush: true });
      await rename(beside, this.#path);
    };
    const written = this.#last.then(next, next);
    this.#last = written.catch(() => undefined);
    return written;
  }
}
