import { escaped, unescaped } from './terminal-picture.ts';

/** A span of a trace, in milliseconds since the trace began. */
export interface DrawnSpan {
  readonly name: string;
  /** Number of spans around it. */
  readonly depth: number;
  readonly startMs: number;
  readonly durationMs: number;
}

/** A span as OTEL_TRACES_EXPORTER=console writes it. */
export interface WrittenSpan {
  readonly span: string;
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_id?: string;
  readonly start: string;
  readonly duration_ms: number;
}

const WIDTH = 900;
const LINE_PX = 24;
const MARGIN_PX = 16;
const [NAMES_PX, TIMES_PX] = [430, 90];
const BAR_PX = WIDTH - 2 * MARGIN_PX - NAMES_PX - TIMES_PX;
/** A bar that can be seen. */
const BAR_MIN_PX = 2;

const STYLE = `.page{fill:#f6f8fa;stroke:#d0d7de}
.bar{fill:#2f6db3}
.way{fill:#e4e8ec}
text{fill:#1f2328;font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace}
.time{text-anchor:end}
@media (prefers-color-scheme:dark){
.page{fill:#0d1117;stroke:#30363d}
.bar{fill:#58a6ff}
.way{fill:#21262d}
text{fill:#e6edf3}
}`;

/** The spans of one trace in the order of a tree: each one behind its parent, siblings by their start. */
export function treeOf(written: readonly WrittenSpan[]): DrawnSpan[] {
  const ids = new Set(written.map(({ span_id: id }) => id));
  const sorted = [...written].sort((a, b) => Date.parse(a.start) - Date.parse(b.start));
  const roots = sorted.filter(({ parent_id: parent }) => parent === undefined || !ids.has(parent));
  const begun = Math.min(...roots.map(({ start }) => Date.parse(start)));
  const below = (span: WrittenSpan, depth: number): DrawnSpan[] => [
    { name: span.span, depth, startMs: Date.parse(span.start) - begun, durationMs: span.duration_ms },
    ...sorted.filter(({ parent_id: parent }) => parent === span.span_id).flatMap((child) => below(child, depth + 1)),
  ];
  return roots.flatMap((root) => below(root, 0));
}

/** One trace as an SVG: a bar for each span. Its description has the same as text. */
export function tracePicture(spans: readonly DrawnSpan[]): string {
  const end = Math.max(...spans.map(({ startMs, durationMs }) => startMs + durationMs));
  const height = 2 * MARGIN_PX + spans.length * LINE_PX;
  const rows = spans.map((span, row) => rowOf(span, MARGIN_PX + row * LINE_PX, BAR_PX / end));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" \
height="${height}" role="img" aria-labelledby="t d">
<title id="t">The spans of one request</title>
<desc id="d" xml:space="preserve">${escaped(spans.map(lineOf).join('\n'))}</desc>
<style>${STYLE}</style>
<rect class="page" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
${rows.join('\n')}
</svg>
`;
}

/** The spans of a picture. @throws when it is no picture of a trace */
export function drawnSpans(svg: string): DrawnSpan[] {
  const [, text] = /<desc [^>]*>(.*?)<\/desc>/s.exec(svg) ?? [];
  if (text === undefined) throw new Error('not a picture of a trace');
  return unescaped(text)
    .split('\n')
    .map((line) => {
      const [, indent, name, start, duration] = /^( *)(\S+): from ([\d.]+) ms, ([\d.]+) ms$/.exec(line)!;
      return { name: name!, depth: indent!.length / 2, startMs: Number(start), durationMs: Number(duration) };
    });
}

function lineOf({ name, depth, startMs, durationMs }: DrawnSpan): string {
  return `${'  '.repeat(depth)}${name}: from ${startMs} ms, ${durationMs} ms`;
}

function rowOf({ name, depth, startMs, durationMs }: DrawnSpan, y: number, scale: number): string {
  const wide = Math.max(BAR_MIN_PX, durationMs * scale);
  const left = Math.min(MARGIN_PX + NAMES_PX + startMs * scale, MARGIN_PX + NAMES_PX + BAR_PX - wide);
  const time = durationMs < 1 ? `${Math.round(durationMs * 1000)} µs` : `${durationMs.toFixed(1)} ms`;
  return [
    `<text x="${MARGIN_PX + depth * 16}" y="${y + 16}">${escaped(name)}</text>`,
    `<rect class="way" x="${MARGIN_PX + NAMES_PX}" y="${y + 11}" width="${BAR_PX}" height="1"/>`,
    `<rect class="bar" x="${left.toFixed(1)}" y="${y + 5}" width="${wide.toFixed(1)}" height="13" rx="1"/>`,
    `<text class="time" x="${WIDTH - MARGIN_PX}" y="${y + 16}">${time}</text>`,
  ].join('\n');
}
