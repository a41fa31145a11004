// The fenced blocks of a document that users follow: commands, the files that they need, and what they print. Comments
// before a fence, which readers do not see, say how the tests run it:
//
//   <!-- needs: envoy -->                   runs where this component is (envoy, nats, otelcol, kubernetes, linux)
//   <!-- not run: REASON -->                cannot be run by a test; test/documents/commands.test.ts lists these
//   <!-- before: COMMAND -->                runs first, with the functions of test/documents/settings.sh
//   <!-- alone: REASON -->                  what earlier blocks have started is ended first
//   <!-- instead: TEXT -> OTHER -->         OTHER runs in the place of TEXT: a shorter run, an address of this machine
//   <!-- shows: TEXT -->                    the output has a line with TEXT; … in it stands for any text
//   <!-- until: TEXT -->                    the same, within a minute: a background block runs on, another is run again
//   <!-- exit: 1 -->                        the exit code, which is 0 otherwise
//   <!-- file: NAME -->                     no command: the block is the content of this file
//
// A block ```sh background keeps running while those below it are run. A block ```text behind a command is what it
// shows.

/** Parts of a machine that not every machine has. */
export const COMPONENTS = ['envoy', 'nats', 'otelcol', 'kubernetes', 'linux'] as const;
export type Component = (typeof COMPONENTS)[number];

export interface FileBlock {
  readonly line: number;
  readonly file: string;
  readonly text: string;
}

export interface CommandBlock {
  /** Line of the fence, from 1. */
  readonly line: number;
  readonly text: string;
  readonly stays: boolean;
  readonly alone: boolean;
  readonly needs: readonly Component[];
  /** Reason; undefined = it is run. */
  readonly notRun: string | undefined;
  readonly before: readonly string[];
  readonly instead: readonly (readonly [string, string])[];
  readonly shows: readonly string[];
  readonly until: string | undefined;
  readonly exit: number;
}

interface Fence {
  readonly line: number;
  readonly kind: string;
  readonly text: string;
  readonly tags: readonly (readonly [string, string])[];
}

const TAGS = ['needs', 'not run', 'before', 'alone', 'instead', 'shows', 'until', 'exit', 'file'];
/** Languages of fences that are shells, by any of their names. */
const SHELLS = /^(sh|bash|shell|console|zsh)\b/;

/** @throws a comment that is no tag, a fence of a shell that is not called `sh` */
export function blocksOf(page: string): readonly (CommandBlock | FileBlock)[] {
  const fences = fencesOf(page);
  return fences.flatMap((fence, index): (CommandBlock | FileBlock)[] => {
    const [file] = valuesOf(fence, 'file');
    if (file !== undefined) return [{ line: fence.line, file, text: fence.text }];
    if (!SHELLS.test(fence.kind)) {
      if (fence.tags.some(([name]) => TAGS.includes(name)))
        throw new Error(`line ${fence.line}: tags of a block that is no command`);
      return [];
    }
    const shown = fences[index + 1]?.kind === 'text' ? fences[index + 1]!.text : '';
    return [commandOf(fence, shown)];
  });
}

function commandOf(fence: Fence, shown: string): CommandBlock {
  const { line, kind, text, tags } = fence;
  const stray = tags.find(([name]) => !TAGS.includes(name));
  if (stray !== undefined) throw new Error(`line ${line}: no tag is called ${stray[0]}; there are ${TAGS.join(', ')}`);
  if (kind !== 'sh' && kind !== 'sh background') throw new Error(`line ${line}: write \`\`\`sh for \`\`\`${kind}`);
  const [exit = '0'] = valuesOf(fence, 'exit');
  const instead = valuesOf(fence, 'instead').map((value) => {
    const [from, to] = value.split(' -> ');
    if (to === undefined) throw new Error(`line ${line}: <!-- instead: TEXT -> OTHER -->, got ${value}`);
    if (!text.includes(from!)) throw new Error(`line ${line}: the block has no ${from}`);
    return [from!, to] as const;
  });
  const needs = valuesOf(fence, 'needs').flatMap((value) => value.split(', ')) as Component[];
  const unknown = needs.find((need) => !COMPONENTS.includes(need));
  if (unknown !== undefined) throw new Error(`line ${line}: there is no component ${unknown}`);
  return {
    ...{ line, text, instead, needs, exit: Number(exit) },
    stays: kind === 'sh background',
    alone: valuesOf(fence, 'alone').length > 0,
    notRun: valuesOf(fence, 'not run')[0],
    before: valuesOf(fence, 'before'),
    shows: [...shown.split('\n'), ...valuesOf(fence, 'shows')].filter((each) => each.replace('…', '').trim() !== ''),
    until: valuesOf(fence, 'until')[0],
  };
}

const valuesOf = ({ tags }: Fence, keyword: string): string[] =>
  tags.filter(([name]) => name === keyword).map(([, value]) => value);

function fencesOf(page: string): Fence[] {
  const fences: Fence[] = [];
  let tags: (readonly [string, string])[] = [];
  let open:
    | { readonly line: number; readonly indent: string; readonly kind: string; readonly text: string[] }
    | undefined;
  for (const [index, line] of page.split('\n').entries()) {
    const fence = /^( *)```(.*)$/.exec(line);
    if (open !== undefined) {
      if (fence === null) open.text.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line);
      else {
        fences.push({ line: open.line, kind: open.kind, text: `${open.text.join('\n')}\n`, tags });
        [open, tags] = [undefined, []];
      }
    } else if (fence !== null) {
      open = { line: index + 1, indent: fence[1]!, kind: fence[2]!, text: [] };
    } else {
      const [, keyword, value] = /^ *<!-- ([a-z ]+): (.+) -->$/.exec(line) ?? [];
      if (keyword !== undefined) tags.push([keyword, value!]);
      else {
        if (tags.some(([name]) => TAGS.includes(name)))
          throw new Error(`line ${index + 1}: a tag stands right before a fence`);
        tags = [];
      }
    }
  }
  return fences;
}

/** The first of the lines that an output lacks, in their order; … stands for any text. */
export function missingLine(output: string, lines: readonly string[]): string | undefined {
  let rest = output;
  for (const line of lines) {
    const pieces = line.trim().split('…');
    const pattern = pieces.map((piece) => piece.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.*');
    const found = new RegExp(pattern).exec(rest);
    if (found === null) return line;
    rest = rest.slice(found.index + found[0].length);
  }
  return undefined;
}
