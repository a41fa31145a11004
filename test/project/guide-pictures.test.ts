import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { Recording } from '../../dist/src/operations/recording/recording-reader.js';
import { usageLines } from '../../dist/src/operations/usage/daily-usage.js';
import type { PickerReading } from '../../dist/tools/doctor/condition.js';
import { diagnosis } from '../../dist/tools/doctor/diagnosis.js';
import { doctorText } from '../../dist/tools/doctor/doctor-text.js';
import { readSamples } from '../../dist/tools/doctor/exposition.js';
import type { EnvoyFinding } from '../../dist/tools/envoy/finding.js';
import { type Verdict, verdictText } from '../../dist/tools/preflight/verdict.js';
import { replayText } from '../../dist/tools/replay/replay-text.js';
import { agentsPicture, loadsOf } from '../../scripts/agents-picture.ts';
import { envoyWithSmallBounds } from '../../scripts/small-bounds-envoy.ts';
import { terminalPicture, terminalText } from '../../scripts/terminal-picture.ts';
import { drawnSpans, tracePicture, treeOf } from '../../scripts/trace-picture.ts';
import { PROGRAM } from '../picker/serving.ts';

const guides = fileURLToPath(new URL('../../docs/guides/', import.meta.url));
const read = (name: string) => readFileSync(join(guides, name), 'utf8');
const TERMINALS = ['doctor', 'lint-envoy', 'preflight', 'replay', 'usage'];

/** A text without its figures and the widths of its columns. */
function shape(text: string): string[] {
  const lines = text.trimEnd().split('\n');
  return lines.map((line) =>
    line
      .replaceAll(/< 1 %|[+-]?\d+(\.\d+)? %/g, 'n %')
      .replaceAll(/[+-]?\d+(\.\d+)?/g, 'n')
      .replaceAll(/ +/g, ' '),
  );
}

/** A finding as preflight writes it. */
function findingOf(line: string): EnvoyFinding {
  const [, severity = 'error', setting, limits, remedy, path] =
    /^ {2}(?:limited by |(error|warning): )(\S+): (.*); (.*?) \((\S+)\)$/.exec(line) ?? [];
  const steps = [...path!.matchAll(/\["(.*?)"\]|\[(\d+)\]|([\w@-]+)/g)];
  return {
    severity: severity as EnvoyFinding['severity'],
    ...{ setting: setting!, limits: limits!, remedy: remedy! },
    path: steps.map(([, quoted, index, name]) => quoted ?? name ?? Number(index)),
  };
}

describe('pictures of the guides', () => {
  test.each(readdirSync(guides).filter((name) => /\.(svg|png)$/.test(name)))(
    '%s is linked from a guide with a text of its own',
    (name) => {
      const pages = readdirSync(guides).filter((page) => page.endsWith('.md'));
      const texts = pages.flatMap((page) =>
        [...read(page).matchAll(/!\[([^\]]*)\]\(([^)]+)\)/g)].filter(([, , file]) => file === name),
      );
      expect(texts.length).toBeGreaterThan(0);
      expect(texts.filter(([, text]) => text!.length < 15)).toEqual([]);
    },
  );

  test.each([...TERMINALS, 'tracing', 'replicas', 'agents'])(
    '%s.svg is smaller than 30 KB and names no font or file of another host',
    (name) => {
      expect(statSync(join(guides, `${name}.svg`)).size).toBeLessThan(30_000);
      expect(read(`${name}.svg`).replace('xmlns="http://www.w3.org/2000/svg"', '')).not.toMatch(
        /https?:\/\/(?!127\.0\.0\.1)|@import|url\((?!#)|<image/,
      );
    },
  );

  test.each(['pools.png', 'shadow.png'])('%s is smaller than 100 KB', (name) => {
    expect(statSync(join(guides, name)).size).toBeLessThan(100_000);
  });

  test.each(TERMINALS)('%s.svg is what the script draws of its text; "npm run pictures" renews it', (name) => {
    const svg = read(`${name}.svg`);
    expect(svg).toBe(terminalPicture(terminalText(svg)));
  });

  test('agents.svg is what the script draws of the table of its guide; "npm run pictures -- agents" renews it', () => {
    const loads = loadsOf(read('agents.md'));
    expect(loads.map(({ load }) => load)).toEqual(expect.arrayContaining([0.7, 1, 1.5, 2, 3]));
    expect(read('agents.svg')).toBe(agentsPicture(loads));
  });

  test('tracing.svg is what the script draws of its spans, and the guide names each of them', () => {
    const svg = read('tracing.svg');
    const spans = drawnSpans(svg);
    expect(svg).toBe(tracePicture(spans));
    const guide = read('tracing.md');
    const names = spans.map(({ name }) => (name.startsWith('llm_d.epp.scorer.') ? 'llm_d.epp.scorer.…' : name));
    expect(names.filter((name) => !guide.includes(`| \`${name}\` |`) && !guide.includes(`─ ${name} `))).toEqual([]);
    expect(names).toEqual(
      expect.arrayContaining(['gateway.request', 'flow_control_wait', 'pick_endpoints', 'gateway.response']),
    );
  });

  test('doctor.svg has no line but those of the command for a pool with an endpoint that takes no connections', () => {
    const page = (scrapes: number) => `pointsman_endpoint_inflight_requests{endpoint="server-0"} 1
pointsman_endpoint_inflight_requests{endpoint="server-1"} 0
pointsman_endpoint_inflight_requests{endpoint="server-2"} 0
pointsman_endpoint_signal_age_seconds{endpoint="server-0"} 0.04
pointsman_endpoint_signal_age_seconds{endpoint="server-1"} 0.05
pointsman_endpoint_ejection_state{endpoint="server-2"} 3
pointsman_ledger_entries 1
pointsman_scrape_errors_total ${scrapes}
llm_d_epp_request_total{model_name="m"} 50
process_max_fds 1000
process_open_fds 10
`;
    const bound = (name: string) => ({ name, used: 1, limit: 10, setting: '', fills: false });
    const given: PickerReading = {
      samples: readSamples(page(9)),
      earlier: readSamples(page(7)),
      health: {
        ...{ timeMs: 0, pool: 'batch', version: '0.1.0', uptimeSeconds: 40, unready: [], stalenessMs: 2_000 },
        refreshMs: 50,
        bounds: ['endpoints', 'streams', 'charged requests', 'prefix index'].map(bound),
        memory: { resident: 1e8, limit: 1e9, needs: [] },
        plugins: [],
        traffic: { windowSeconds: 60, decided: 0, refused: {}, endpoints: [], leaning: null, explained: 0 },
        lastMinute: {},
        scorers: ['queue-scorer', 'kv-cache-utilization-scorer', 'prefix-cache-scorer'].flatMap((scorer) =>
          [0, 9].map((apart) => ({ scorer, decisions: 50, apart, decided: 0 })),
        ),
        readsAnswers: true,
        configuration: { lastReload: null, warnings: [] },
      },
      unreadable: undefined,
      waiting: undefined,
      otherPools: [],
      clock: { skewMs: 0, uncertainMs: 2 },
    };
    const { output } = terminalText(read('doctor.svg'));
    expect(output).toContain('take no connections: server-2');
    expect(shape(doctorText(given, diagnosis(given), true))).toEqual(expect.arrayContaining(shape(output)));
  });

  test('replay.svg has the lines of the command', () => {
    const { output } = terminalText(read('replay.svg'));
    const endpoints = [...output.matchAll(/^(\S+server-\d)/gm)].map(([endpoint]) => ({
      endpoint,
      recorded: 0.5,
      other: 0.5,
    }));
    const half = { recorded: 0.5, other: 0.6 };
    const group = { priority: 0, decisions: 10, different: 5, unplaced: 0, cost: half, cached: half };
    const header = { pool: 'chat', wallMs: 0 } as Recording['header'];
    const trailer = { seconds: 20, dropped: 0 } as Recording['trailer'];
    const result = { decisions: 10, reproduced: 1, total: group, priorities: [group], endpoints };
    expect(endpoints).toHaveLength(4);
    expect(shape(output)).toEqual(shape(replayText({ header, trailer } as Recording, result)));
  });

  test('lint-envoy.svg is what the command prints of an Envoy with small bounds; "npm run pictures -- lint" renews it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pictures-'));
    writeFileSync(join(folder, 'envoy.yaml'), await envoyWithSmallBounds(8081, 19000, 9002));
    const { stdout } = spawnSync(process.execPath, [PROGRAM, 'lint', '--envoy', 'envoy.yaml'], {
      cwd: folder,
      encoding: 'utf8',
    });
    rmSync(folder, { recursive: true });
    expect(terminalText(read('lint-envoy.svg')).output).toBe(stdout.trimEnd());
    expect(stdout).toMatch(/: error: timeout: 3 s:.*: error: max_requests: 100 of the picker:/s);
  });

  test('preflight.svg is what the command prints of its probes and of the findings of the dump', () => {
    const { output } = terminalText(read('preflight.svg'));
    const verdicts: Verdict[] = [];
    const rest: EnvoyFinding[] = [];
    for (const line of output.split('\n')) {
      const [, result, probe, text] = /^(ok|failed) +(\S.*?) {2,}(\S.*)$/.exec(line) ?? [];
      const [, settings] = /^ {2}limited by (?:one of )?([\w, -]+)$/.exec(line) ?? [];
      if (probe !== undefined) {
        verdicts.push({ ok: result === 'ok', probe, text: text!, suspects: [], settings: [], findings: [] });
      } else if (settings !== undefined) {
        verdicts.push({ ...verdicts.pop()!, settings: settings.split(', ') });
      } else if (line.startsWith('  limited by ')) {
        const last = verdicts.pop()!;
        verdicts.push({ ...last, findings: [...last.findings, findingOf(line)] });
      } else if (line.startsWith('  ')) rest.push(findingOf(line));
    }
    expect(verdicts.filter(({ ok }) => !ok).flatMap(({ findings }) => findings.map(({ setting }) => setting))).toEqual(
      expect.arrayContaining(['max_requests', 'timeout']),
    );
    expect(output).toBe(verdictText(verdicts, rest).trimEnd());
  });

  test('usage.svg has columns of the daily file, and a row for each tenant', () => {
    const { output } = terminalText(read('usage.svg'));
    const [head, ...rows] = output.split('\n').map((line) => line.trim().split(/ +/));
    const totals = {
      requests: 1,
      errors: 0,
      inputTokens: 10,
      outputTokens: 1,
      estimatedOutputTokens: 0,
      cachedTokens: 5,
      waits: 0,
      waitSeconds: 0,
    };
    const line = JSON.parse(usageLines('chat', '2026-11-22', new Map([['team-search', totals]])));
    expect(head!.filter((field) => !(field in line))).toEqual([]);
    expect(rows.map(([tenant]) => tenant)).toEqual(
      expect.arrayContaining(['team-search', 'team-support', 'team-docs']),
    );
    expect(rows.filter((row) => row.length !== head!.length)).toEqual([]);
  });
});

describe('picture of a terminal', () => {
  const drawn = (output: string) =>
    [...terminalPicture({ command: 'c', output }).matchAll(/<text[^>]*>(.*)<\/text>/g)].map(([, line]) => line);

  test('a long line goes on below its last column, every part within 80 characters', () => {
    const text = `warning  signals  ${'word '.repeat(30).trimEnd()}`;
    const lines = drawn(text)
      .slice(1)
      .map((line) => line!.replaceAll(/<[^>]+>/g, ''));
    expect(lines.length).toBe(3);
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    expect(lines.slice(1).filter((line) => !/^ {18}word/.test(line))).toEqual([]);
    expect(lines.map((line) => line.trim()).join(' ')).toBe(text);
  });

  test('a share stays in one piece', () => {
    const text = `bounds: ${'x'.repeat(68)} < 1 % y`;
    expect(drawn(text).slice(1)).toEqual([`bounds: ${'x'.repeat(68)}`, '  &lt; 1 % y']);
  });

  test('markup in the output is shown as text', () => {
    const text = { command: 'a && b', output: '<b>&amp;</b>' };
    expect(terminalText(terminalPicture(text))).toEqual(text);
    expect(drawn(text.output)[1]).toBe('&lt;b&gt;&amp;amp;&lt;/b&gt;');
  });
});

describe('picture of a trace', () => {
  const span = (id: string, parent: string | undefined, at: number, ms: number) => ({
    ...{ span: `s-${id}`, trace_id: 't', span_id: id, start: new Date(at).toISOString(), duration_ms: ms },
    ...(parent === undefined ? {} : { parent_id: parent }),
  });

  test('spans come in the order of their tree, whatever order they were written in, with times since the first', () => {
    const written = [
      span('c', 'b', 1_010, 2),
      span('b', 'a', 1_005, 20),
      span('d', 'a', 1_030, 5),
      span('a', 'client', 1_000, 40),
    ];
    expect(treeOf(written)).toEqual([
      { name: 's-a', depth: 0, startMs: 0, durationMs: 40 },
      { name: 's-b', depth: 1, startMs: 5, durationMs: 20 },
      { name: 's-c', depth: 2, startMs: 10, durationMs: 2 },
      { name: 's-d', depth: 1, startMs: 30, durationMs: 5 },
    ]);
  });
});
