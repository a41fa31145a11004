import type { TokeniseTask } from './local-source.js';
import { PromptTokeniser } from './prompt-tokeniser.js';
import { readTokeniserFiles } from './tokeniser-files.js';

/** The tokenisers of this thread by folder: a configuration has one. */
const tokenisers = new Map<string, PromptTokeniser>();

/** Cut the prompt of one body. @throws with one line when it cannot be cut, or the files cannot be read */
export function tokeniseBody({ folder, what, body }: TokeniseTask): Uint32Array {
  let tokeniser = tokenisers.get(folder);
  if (tokeniser === undefined) {
    tokeniser = new PromptTokeniser(readTokeniserFiles(folder));
    tokenisers.set(folder, tokeniser);
  }
  if (what === 'load') return new Uint32Array(0);
  const parsed = JSON.parse(Buffer.from(body).toString('utf8')) as Readonly<Record<string, unknown>>;
  return what === 'chat' ? tokeniser.chat(parsed) : tokeniser.completion(parsed);
}
