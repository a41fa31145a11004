// Reads the texts of all refusals and start-up errors from the sources, for the catalogue in docs/errors.md.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Rooms whose errors reach a client, or end a start or a command. */
const ROOMS = [
  'src/admission',
  'src/config',
  'src/flow-control',
  'src/ingress',
  'src/picker',
  'src/pool',
  'src/request',
  'src/scheduling',
  'src/serve',
  'tools/bench',
  'tools/command-line',
  'tools/doctor',
  'tools/envoy',
  'tools/explain',
  'tools/lint',
  'tools/preflight',
  'tools/replay',
  'tools/schema',
  'tools/top',
  'tools/weights',
  'tools/why',
];

/** Expressions in front of an error's text. */
const HEADS = [
  /\b(?:badRequest|overloaded|turnAway)\(\s*/g,
  /\bnew (?:FlagError|ConfigurationError|InvalidArgumentError)\(\s*/g,
  /\bdocument\.error\((?:[^,()[\]]|\[[^\]]*\]|\([^()]*\))+,\s*/g,
  /\bconst message =\s+/g,
  /\bthrow refuse\(\s*/g,
  /\bcode: '(?:BadRequest|Unauthorized|Forbidden|NotFound|PreconditionFailed|RequestTimeout|PayloadTooLarge|ResourceExhausted|Internal|ServiceUnavailable)',\s*message:\s*/g,
];

/** Files outside of the rooms that end a start or a command. */
const FILES = [
  'src/operations/recording/recording-reader.ts',
  'src/operations/tracing/exporters.ts',
  'src/runtime/optional-package.ts',
];
/** Files of commands, in rooms whose other errors are for who works on them. */
const COMMANDS = [
  'tools/commands.ts',
  'tools/demo/demo.ts',
  'tools/gateway/gateway-command.ts',
  'tools/main.ts',
  'tools/simulator/model-server.ts',
  'tools/simulator/results-file.ts',
  'tools/simulator/simulate.ts',
];
/** Files in which a plain Error ends a start or a command. */
const STARTS = [
  'src/serve/candidate.ts',
  'tools/envoy/configuration.ts',
  'tools/envoy/findings.ts',
  'tools/envoy/picker-filter.ts',
  'tools/preflight/envoy-admin.ts',
  'tools/replay/replay.ts',
  'tools/replay/replay-pool.ts',
  'src/serve/replica-settings.ts',
  'src/picker/control/hash-seed.ts',
  'src/picker/control/usage-files.ts',
  ...FILES,
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
    readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .sort()
      .map((name) => `${room}/${name}`),
  );
  return [...ofRooms, ...FILES, ...COMMANDS];
}

function headsOf(file: string): readonly RegExp[] {
  if (STARTS.includes(file)) return [...HEADS, ...PLAIN_HEADS];
  return REASONS.includes(file) ? [...HEADS, ...REASON_HEADS] : HEADS;
}
