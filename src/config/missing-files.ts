import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import type { ConfigurationDocument } from './document.js';
import type { ConfigurationError } from './error.js';
import type { NamedFile } from './plugin-set.js';

/** Files that a configuration names and that are not there. */
export interface MissingFiles {
  /** Relative names: they belong to the configuration. */
  readonly errors: readonly ConfigurationError[];
  /** Absolute names: they may be there where the picker runs. */
  readonly warnings: readonly string[];
}

/** Looks for the files and folders that the parameters of plugins name. */
export function missingFiles(files: readonly NamedFile[], document: ConfigurationDocument): MissingFiles {
  const missing = files.filter(({ file }) => !existsSync(file));
  const own = missing.filter(({ given }) => !isAbsolute(given));
  const elsewhere = missing.filter(({ given }) => isAbsolute(given));
  return {
    errors: own.map(({ path, file }) =>
      document.error(path, `there is no ${file}: paths count from the configuration's folder`),
    ),
    warnings: elsewhere.map(({ path, file }) => document.warning(path, `there is no ${file} on this machine`)),
  };
}
