import { join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { errorMessage } from '../../runtime/error-message.js';
import { readPlainText } from '../../runtime/plain-file.js';
import type { TokenisedTask, TokeniseTask } from './local-source.js';
import type { TokeniserFiles } from './prompt-tokeniser.js';
import { PromptTokeniser } from './prompt-tokeniser.js';

/** Bytes of a tokeniser's file; the largest ones of today's models have some 35 MB. */
const TOKENISER_BYTES_MAX = 256 * 2 ** 20;

/** The tokenisers of this thread by folder. A configuration has one. */
const tokenisers = new Map<string, PromptTokeniser>();

/** Tokenises the prompt of one body. @throws with one line when the prompt or the files cannot be read */
export function tokeniseBody(task: TokeniseTask): TokenisedTask {
  const { folder } = task;
  let tokeniser = tokenisers.get(folder);
  if (tokeniser === undefined) {
    tokeniser = new PromptTokeniser(readTokeniserFiles(folder));
    tokenisers.set(folder, tokeniser);
  }
  const ids = tokensOf(tokeniser, task);
  return { ids, thread: threadId, segments: tokeniser.segments };
}

function tokensOf(tokeniser: PromptTokeniser, { what, body }: TokeniseTask): Uint32Array {
  if (what === 'load') return new Uint32Array(0);
  const parsed = JSON.parse(Buffer.from(body).toString('utf8')) as Readonly<Record<string, unknown>>;
  return what === 'chat' ? tokeniser.chat(parsed) : tokeniser.completion(parsed);
}

/** Reads the tokeniser files of a folder. @throws with one line that names the file */
function readTokeniserFiles(folder: string): TokeniserFiles {
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
    throw new Error(`${join(folder, name)} is no JSON: ${errorMessage(error)}`);
  }
}

function text(folder: string, name: string): string | undefined {
  try {
    return readPlainText(join(folder, name), TOKENISER_BYTES_MAX);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`${join(folder, name)} cannot be read: ${errorMessage(error)}`);
  }
}
