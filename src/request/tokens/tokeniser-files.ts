import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TokeniserFiles } from './prompt-tokeniser.js';

/** Read the tokeniser files of a folder. @throws with one line that names the file */
export function readTokeniserFiles(folder: string): TokeniserFiles {
  const tokenizer = json(folder, 'tokenizer.json');
  if (tokenizer === undefined) throw new Error(`${join(folder, 'tokenizer.json')} does not exist`);
  return {
    tokenizer,
    config: (json(folder, 'tokenizer_config.json') ?? {}) as Readonly<Record<string, unknown>>,
    template: text(folder, 'chat_template.jinja'),
  };
}

function json(folder: string, name: string): object | undefined {
  const content = text(folder, name);
  if (content === undefined) return undefined;
  try {
    return JSON.parse(content) as object;
  } catch (error) {
    throw new Error(`${join(folder, name)} is no JSON: ${(error as Error).message}`);
  }
}

function text(folder: string, name: string): string | undefined {
  try {
    return readFileSync(join(folder, name), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`${join(folder, name)} cannot be read: ${(error as Error).message}`);
  }
}
