// Reads the texts of all refusals and start-up errors from the sources, for the catalogue in docs/errors.md.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Rooms whose errors reach a client, or end the start. */
const ROOMS = ['admission', 'cli', 'config', 'flow-control', 'ingress', 'picker', 'pool', 'request', 'scheduling'];

/** Expressions in front of an error's text. */
const HEADS = [
  /\b(?:badRequest|overloaded)\(\s*/g,
  /\bnew (?:FlagError|ConfigurationError|InvalidArgumentError)\(\s*/g,
  /\bdocument\.error\((?:[^,()[\]]|\[[^\]]*\]|\([^()]*\))+,\s*/g,
  /\bconst message = /g,
  /\bcode: '(?:BadRequest|Unauthorized|Forbidden|NotFound|PreconditionFailed|RequestTimeout|PayloadTooLarge|ResourceExhausted|Internal|ServiceUnavailable)',\s*message:\s*/g,
];

/** Text of the string expression at `from`, `…` for each inserted value; undefined when there is none. */
function textAt(source: string, from: number): string | undefined {
  let text = '';
  let at = from;
  for (;;) {
    const quote = source[at];
    if (quote !== "'" && quote !== '`') return text === '' ? undefined : text;
    let end = at + 1;
    let depth = 0;
    while (depth > 0 || source[end] !== quote) {
      if (source[end] === '\\') {
        text += source[end + 1];
        end += 2;
      } else if (quote === '`' && source.startsWith('${', end)) {
        if (depth++ === 0) text += '…';
        end += 2;
      } else if (depth > 0) {
        if (source[end] === '{') depth++;
        if (source[end] === '}') depth--;
        end++;
      } else text += source[end++];
    }
    const next = /^\s*\+\s*/.exec(source.slice(end + 1));
    if (next === null) return text;
    at = end + 1 + next[0].length;
  }
}

export interface ErrorText {
  readonly file: string;
  /** `…` stands for an inserted value. */
  readonly text: string;
}

/** Every text that stands directly in a refusal or a start-up error. */
export function errorTexts(): readonly ErrorText[] {
  const found = new Map<string, ErrorText>();
  for (const room of ROOMS) {
    for (const name of readdirSync(join(root, 'src', room), { recursive: true, encoding: 'utf8' }).sort()) {
      if (!name.endsWith('.ts')) continue;
      const file = `src/${room}/${name}`;
      const source = readFileSync(join(root, file), 'utf8');
      for (const head of HEADS) {
        for (const match of source.matchAll(head)) {
          const text = textAt(source, match.index + match[0].length);
          if (text !== undefined && /[a-z]{3}/.test(text)) found.set(text, { file, text });
        }
      }
    }
  }
  return [...found.values()];
}
