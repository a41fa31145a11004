/** Columns of the pictured terminal; longer lines are broken between words. */
const COLUMNS = 80;
const CHARACTER_PX = 7.8;
const LINE_PX = 19;
const MARGIN_PX = 16;
/** A line is continued below its last column that begins to the left of this one. */
const INDENT_MAX = 32;
/** Where a line may be broken: between words, and not inside of "< 1 %". */
const BREAK = /(?<!<) (?!%)/g;

export interface TerminalText {
  /** What was typed. */
  readonly command: string;
  /** What the command printed. */
  readonly output: string;
}

const STYLE = `rect{fill:#f6f8fa;stroke:#d0d7de}
text{fill:#1f2328;font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation \
Mono',monospace;white-space:pre}
.command{font-weight:700}
.bad{fill:#b3261e}
.warning{fill:#8a5a00}
.good{fill:#1a7f37}
.note{fill:#0a58ca}
@media (prefers-color-scheme:dark){
rect{fill:#0d1117;stroke:#30363d}
text{fill:#e6edf3}
.bad{fill:#ff7b72}
.warning{fill:#e3b341}
.good{fill:#56d364}
.note{fill:#79c0ff}
}`;

/** Colours of the words that begin a line, or follow a place in a file. */
const WORDS: Readonly<Record<string, string>> = {
  error: 'bad',
  'error:': 'bad',
  failed: 'bad',
  warning: 'warning',
  'warning:': 'warning',
  ok: 'good',
  note: 'note',
  'note:': 'note',
};

/**
 * A command and its output as an SVG in the colours of the reader's scheme. Screen readers get the text whole: the
 * command is its title, the output its description.
 */
export function terminalPicture({ command, output }: TerminalText): string {
  const text = output.trimEnd();
  const lines = [...broken(`$ ${command}`), ...text.split('\n').flatMap(broken)];
  const typed = broken(`$ ${command}`).length;
  const [width, height] = [2 * MARGIN_PX + COLUMNS * CHARACTER_PX, 2 * MARGIN_PX + lines.length * LINE_PX];
  const rows = lines.map((line, row) => rowOf(line, row, row < typed));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" \
height="${height}" role="img" aria-labelledby="t d">
<title id="t">${escaped(command)}</title>
<desc id="d" xml:space="preserve">${escaped(text)}</desc>
<style>${STYLE}</style>
<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8"/>
${rows.filter((row) => row !== '').join('\n')}
</svg>
`;
}

/** The command and the output of a picture. @throws when it is no picture of a terminal */
export function terminalText(svg: string): TerminalText {
  const [, command, output] = /<title id="t">(.*?)<\/title>\n<desc [^>]*>(.*?)<\/desc>/s.exec(svg) ?? [];
  if (command === undefined || output === undefined) throw new Error('not a picture of a terminal');
  return { command: unescaped(command), output: unescaped(output) };
}

/** Text of an SVG's element. */
export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** The text that was escaped. */
export function unescaped(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
}

function rowOf(line: string, row: number, isTyped: boolean): string {
  if (line.trim() === '') return '';
  const [, before, word, rest] = /^(\S+:\d+:\d+: | *)(\S+)(.*)$/.exec(line)!;
  const colour = isTyped ? undefined : WORDS[word!];
  const shown =
    colour === undefined
      ? escaped(line)
      : `${escaped(before!)}<tspan class="${colour}">${word}</tspan>${escaped(rest!)}`;
  const y = MARGIN_PX + row * LINE_PX + 14;
  // Every monospace font fills the same width.
  const width = tenths(line.length * CHARACTER_PX);
  const place = `x="${MARGIN_PX}" y="${y}" textLength="${width}" lengthAdjust="spacingAndGlyphs"`;
  return `<text ${isTyped ? 'class="command" ' : ''}xml:space="preserve" ${place}>${shown}</text>`;
}

function tenths(value: number): number {
  return Math.round(value * 10) / 10;
}

/** The line in parts of at most COLUMNS characters. Continuations stand below the last column of a table. */
function broken(line: string): string[] {
  const gaps = [...line.slice(0, INDENT_MAX).matchAll(/\S( {2,})(?=\S)/g)];
  const last = gaps.at(-1);
  const indent = ' '.repeat(last === undefined ? line.search(/\S/) + 2 : last.index + last[0].length);
  const parts: string[] = [];
  let rest = line;
  while (rest.length > COLUMNS) {
    const breaks = [...rest.matchAll(BREAK)].map(({ index }) => index);
    const end = Math.max(...breaks.filter((index) => index <= COLUMNS));
    // A word without an end on this line is cut.
    const cut = end > indent.length ? end : COLUMNS;
    parts.push(rest.slice(0, cut).trimEnd());
    rest = indent + rest.slice(cut).trimStart();
  }
  return [...parts, rest];
}
