import { escaped } from './terminal-picture.ts';

/** A figure without the gate and with it. */
interface Pair {
  readonly without: number;
  readonly held: number;
}

/** One load of the guide's table. */
export interface AgentLoad {
  readonly load: number;
  readonly turns: Pair;
  readonly turnP99: Pair;
  readonly firstTokenP99: Pair;
}

/** The loads of the table in docs/guides/agents.md, which the simulator has made. */
export function loadsOf(guide: string): readonly AgentLoad[] {
  const rows = guide.split('\n').filter((line) => /^\| \d[\d.]* \| [\d.]+ → /.test(line));
  return rows.map((row) => {
    const cells = row.split('|').map((cell) => cell.trim());
    return {
      load: Number(cells[1]),
      turns: pairOf(cells[2]!),
      turnP99: pairOf(cells[5]!),
      firstTokenP99: pairOf(cells[7]!),
    };
  });
}

function pairOf(cell: string): Pair {
  const [without, held] = cell.split('→').map((text) => Number.parseFloat(text));
  if (without === undefined || held === undefined || Number.isNaN(without + held)) throw new Error(`${cell}: no pair`);
  return { without, held };
}

const [WIDTH, HEIGHT] = [900, 330];
const PANELS = 3;
const MARGIN_PX = 16;
const PANEL_PX = (WIDTH - 2 * MARGIN_PX) / PANELS;
/** Of the bars in a panel. */
const [TOP_PX, FLOOR_PX] = [84, 268];
const BAR_PX = 16;

const SOURCE =
  'Load: sessions / sessions that fit into the KV caches. Simulated: four endpoints, workload W7, six seeds of 20 ' +
  'minutes.';

const STYLE = `.page{fill:#f6f8fa;stroke:#d0d7de}
.without{fill:#8c959f}
.held{fill:#2f6db3}
.floor{stroke:#d0d7de}
text{fill:#1f2328;font:13px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
.title{font-weight:600}
.small{font-size:11px}
.middle{text-anchor:middle}
@media (prefers-color-scheme:dark){
.page{fill:#0d1117;stroke:#30363d}
.without{fill:#6e7681}
.held{fill:#58a6ff}
.floor{stroke:#30363d}
text{fill:#e6edf3}
}`;

/** What holding turns wins and what it costs, as an SVG: bars by load. Its description has the same as text. */
export function agentsPicture(loads: readonly AgentLoad[]): string {
  const panels = [
    { title: 'Turns a minute', pick: ({ turns }: AgentLoad) => turns },
    { title: 'Longest turns: p99, s', pick: ({ turnP99 }: AgentLoad) => turnP99 },
    { title: 'The price: first token p99, s', pick: ({ firstTokenP99 }: AgentLoad) => firstTokenP99 },
  ];
  const told = panels.map(({ title, pick }) => {
    const pairs = loads.map((each) => `at ${each.load}: ${pick(each).without} and ${pick(each).held}`);
    return `${title}, without holding and with it ${pairs.join(', ')}.`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" \
role="img" aria-labelledby="t d">
<title id="t">What holding turns of agents wins, and what it costs</title>
<desc id="d">${escaped(told.join(' '))}</desc>
<style>
${STYLE}
</style>
<rect class="page" x="0.5" y="0.5" width="${WIDTH - 1}" height="${HEIGHT - 1}" rx="6"/>
${key()}
${panels.map(({ title, pick }, i) => panelOf(title, loads, pick, MARGIN_PX + i * PANEL_PX)).join('\n')}
<text class="small" x="${MARGIN_PX}" y="${HEIGHT - 14}">${SOURCE}</text>
</svg>
`;
}

function key(): string {
  return `<rect class="without" x="${MARGIN_PX}" y="16" width="12" height="12"/>
<text x="${MARGIN_PX + 18}" y="27">no turn is held</text>
<rect class="held" x="${MARGIN_PX + 140}" y="16" width="12" height="12"/>
<text x="${MARGIN_PX + 158}" y="27">sessions: { mode: on }</text>`;
}

function panelOf(title: string, loads: readonly AgentLoad[], pick: (load: AgentLoad) => Pair, left: number): string {
  const most = Math.max(...loads.flatMap((load) => [pick(load).without, pick(load).held]));
  const step = (PANEL_PX - MARGIN_PX) / loads.length;
  const groups = loads.map((load, i) => {
    const { without, held } = pick(load);
    const middle = Math.round(left + step * (i + 0.5));
    return `${barOf('without', without, most, middle - BAR_PX - 1)}
${barOf('held', held, most, middle + 1)}
<text class="middle" x="${middle}" y="${FLOOR_PX + 18}">${load.load}</text>`;
  });
  return `<text class="title" x="${left}" y="58">${escaped(title)}</text>
<line class="floor" x1="${left}" x2="${left + PANEL_PX - MARGIN_PX}" y1="${FLOOR_PX}" y2="${FLOOR_PX}"/>
${groups.join('\n')}`;
}

function barOf(kind: 'without' | 'held', value: number, most: number, x: number): string {
  const height = Math.round((value / most) * (FLOOR_PX - TOP_PX));
  const y = FLOOR_PX - height;
  return `<rect class="${kind}" x="${x}" y="${y}" width="${BAR_PX}" height="${height}"/>
<text class="small middle" x="${x + BAR_PX / 2}" y="${y - 4}">${Math.round(value)}</text>`;
}
