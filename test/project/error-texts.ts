// Reads the texts of all refusals and start-up errors from the sources, for the catalogue in docs/errors.md.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Rooms whose errors reach a client, or end the start. */
const ROOMS = ['admission', 'cli', 'config', 'flow-control', 'ingress', 'picker', 'pool', 'request', 'scheduling'];

/** Expressions in front of an error's text. */
const HEADS = [
  /\b(?:badRequest|overloaded|turnAway)\(\s*/g,
  /\bnew (?:FlagError|ConfigurationError|InvalidArgumentError)\(\s*/g,
  /\bdocument\.error\((?:[^,()[\]]|\[[^\]]*\]|\([^()]*\))+,\s*/g,
  /\bconst message = /g,
  /\bcode: '(?:BadRequest|Unauthorized|Forbidden|NotFound|PreconditionFailed|RequestTimeout|PayloadTooLarge|ResourceExhausted|Internal|ServiceUnavailable)',\s*message:\s*/g,
];

/** Files outside of the rooms that end a start or a command. */
const FILES = [
  'operations/recording/recording-reader.ts',
  'operations/tracing/exporters.ts',
  'runtime/optional-package.ts',
];
/** Files in which a plain Error ends a start or a command. */
const STARTS = [
  'src/cli/candidate.ts',
  'src/cli/envoy/configuration.ts',
  'src/cli/envoy/findings.ts',
  'src/cli/envoy/picker-filter.ts',
  'src/cli/preflight/envoy-admin.ts',
  'src/cli/replay.ts',
  'src/cli/replay/replay-pool.ts',
  'src/cli/replica-settings.ts',
  'src/picker/control/hash-seed.ts',
  'src/picker/control/usage-files.ts',
  ...FILES.map((name) => `src/${name}`),
];
const PLAIN_HEADS = [
  /\bnew Error\(\s*/g,
  /\bnew Error\(\w+ \? (?:`[^`]*`|'[^']*') : /g,
  /\bnew Error\(\w+ \? /g,
  /\bsuper\(\s*/g,
];
/** Files whose errors are joined from reasons: the strings of these lists follow the last `: ` of the error. */
const REASONS = ['src/config/candidate.ts'];
const REASON_HEADS = [/\[\s*(?=['`])/g];

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
        if (depth === 0) text += source[end + 1];
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
  for (const file of sources()) {
    const source = readFileSync(join(root, file), 'utf8');
    for (const head of headsOf(file)) {
      for (const match of source.matchAll(head)) {
        const text = textAt(source, match.index + match[0].length);
        if (text !== undefined && /[a-z]{3}/.test(text)) found.set(text, { file, text });
      }
    }
  }
  return [...found.values()];
}

function sources(): readonly string[] {
  const ofRooms = ROOMS.flatMap((room) =>
    readdirSync(join(root, 'src', room), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .sort()
      .map((name) => `src/${room}/${name}`),
  );
  return [...ofRooms, ...FILES.map((name) => `src/${name}`)];
}

function headsOf(file: string): readonly RegExp[] {
  if (STARTS.includes(file)) return [...HEADS, ...PLAIN_HEADS];
  return REASONS.includes(file) ? [...HEADS, ...REASON_HEADS] : HEADS;
}
