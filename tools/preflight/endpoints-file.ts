import { readFile, rename, writeFile } from 'node:fs/promises';
import { endpointsYaml } from '../simulator/server/fleet.js';

/** An endpoints file that names the test endpoint alone for the time of a run. */
export class BorrowedFile {
  readonly #file: string;
  readonly #before: string;

  private constructor(file: string, before: string) {
    this.#file = file;
    this.#before = before;
  }

  /** Puts the endpoint in the place of the file's endpoints. @throws {Error} when the file cannot be read or written */
  static async take(file: string, place: { readonly address: string; readonly port: number }): Promise<BorrowedFile> {
    const borrowed = new BorrowedFile(file, await readFile(file, 'utf8'));
    await borrowed.#write(endpointsYaml([{ name: 'preflight', ...place }]));
    return borrowed;
  }

  /** Puts the file back as it was. */
  give(): Promise<void> {
    return this.#write(this.#before);
  }

  async #write(text: string): Promise<void> {
    await writeFile(`${this.#file}.preflight`, text);
    await rename(`${this.#file}.preflight`, this.#file);
  }
}
